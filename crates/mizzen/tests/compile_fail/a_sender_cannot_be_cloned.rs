use mizzen::Sender;

fn double(sender: &Sender) -> Sender {
    sender.clone()
}

fn main() {}
