use mizzen::Mailbox;

fn second_owner(inbox: &Mailbox) {
    let second: Mailbox = inbox.clone();
    drop(second);
}

fn main() {}
