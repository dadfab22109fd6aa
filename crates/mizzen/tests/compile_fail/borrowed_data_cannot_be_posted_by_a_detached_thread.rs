use mizzen::{MailboxRef, Message};

fn send(to: MailboxRef) {
    let halo = vec![0.0f64; 4096];
    let mut message = Message::new();
    message.pack_cheaper(&halo[..]);
    std::thread::spawn(move || to.post(&mut message));
}

fn main() {}
