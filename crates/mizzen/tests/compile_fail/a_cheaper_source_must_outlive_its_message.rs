use mizzen::Message;

fn pack<'m>() -> Message<'m> {
    let halo = [0.0f64; 64];
    let mut message = Message::new();
    message.pack_cheaper(&halo);
    message
}

fn main() {}
