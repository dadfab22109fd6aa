use mizzen::Mailbox;

fn receive(inbox: &Mailbox) {
    let _receive = inbox.post_receive(vec![false; 100]);
}

fn main() {
    let _ = receive;
}
