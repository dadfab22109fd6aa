//! ipc-channel between two processes: `peer-ipcchannel small|copies`.
//!
//! The vector that `recv` returns is the user's memory: it is not copied once more.

use std::process::Command;

use ipc_channel::ipc::{self, IpcBytesReceiver, IpcBytesSender, IpcOneShotServer, IpcSender};
use peer_common::{LARGE, SMALL, Side, latency, limit_time, pin, rate};

struct Ends(IpcBytesSender, IpcBytesReceiver);

impl Side for Ends {
    fn send(&mut self, bytes: &[u8]) {
        self.0.send(bytes).expect("the other side is there");
    }

    fn receive(&mut self, into: &mut [u8]) {
        let message = self.1.recv().expect("the other side is there");
        into[..8].copy_from_slice(&message[..8]);
    }
}

fn main() {
    limit_time();
    let words: Vec<String> = std::env::args().collect();
    let test = words[1].as_str();
    if let Some(server) = words.get(2) {
        let (there, arriving) = ipc::bytes_channel().expect("a channel");
        let (back, returning) = ipc::bytes_channel().expect("a channel");
        let boot = IpcSender::connect(server.clone()).expect("the server is there");
        boot.send((there, returning)).expect("the server is there");
        return measure(test, false, Ends(back, arriving));
    }
    let (server, name) =
        IpcOneShotServer::<(IpcBytesSender, IpcBytesReceiver)>::new().expect("a server");
    let program = std::env::current_exe().expect("a path");
    let mut other = Command::new(program)
        .args([test, &name])
        .spawn()
        .expect("a process");
    let (_, (sender, receiver)) = server.accept().expect("the other side connects");
    measure(test, true, Ends(sender, receiver));
    other.wait().expect("it ends");
}

fn measure(test: &str, first: bool, mut ends: Ends) {
    pin(if first { "CORE_A" } else { "CORE_B" });
    match test {
        "small" => {
            SMALL
                .iter()
                .for_each(|size| latency(&mut ends, first, "lat", *size, 0.12));
            rate(&mut ends, first, 8, 0.035);
        }
        "copies" => LARGE
            .iter()
            .for_each(|size| latency(&mut ends, first, "lat", *size, 0.06)),
        other => panic!("unknown test {other}"),
    }
}
