//! The TCP driver keeps the contract, over the loopback interface, with sealed records, with clear ones, and through a proxy.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use common::Job;
use mizzen_driver::conformance::Harness;
use mizzen_driver::{Locator, PeerId};
use mizzen_tcp::{Records, TcpDriver, TcpOptions, Through};
use socket2::{Domain, Socket, Type};

/// Each harness is a job of its own: a port that was ours may be another test's in a moment.
struct Loopback {
    job: Job,
    records: Records,
    /// Ports that are taken, and at which nobody listens.
    deaf: Vec<Socket>,
    through: Option<Through>,
}

impl Loopback {
    fn new(records: Records) -> Self {
        static JOBS: AtomicU64 = AtomicU64::new(0);
        let mut number = [0; 16];
        let job = JOBS.fetch_add(1, Ordering::Relaxed);
        number[..8].copy_from_slice(&job.to_le_bytes());
        number[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        Self {
            job: Job::new(number),
            records,
            deaf: Vec::new(),
            through: None,
        }
    }

    fn through_a_proxy() -> Self {
        Self {
            through: Some(Through::new(proxy())),
            ..Self::new(Records::Sealed)
        }
    }
}

impl Harness for Loopback {
    type Driver = TcpDriver;

    fn driver(&mut self, me: PeerId) -> TcpDriver {
        let options = TcpOptions::new(me, self.job.security(me, self.records));
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = options.listen(anywhere).through(self.through.clone());
        TcpDriver::new(options).expect("a free port on the loopback interface")
    }

    fn nobody(&mut self) -> Locator {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket
            .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
            .expect("a free port");
        let address = socket
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        let address = address.expect("a socket that is bound");
        self.deaf.push(socket);
        Locator::new(&address.to_string()).expect("an address is a locator")
    }

    fn cut(&mut self, (_, a): (PeerId, &mut TcpDriver), (b, _): (PeerId, &mut TcpDriver)) {
        a.sever(b);
    }
}

mod sealed {
    use super::*;

    mizzen_driver::conformance!(Loopback::new(Records::Sealed));
}

mod proxied {
    use super::*;

    mizzen_driver::conformance!(Loopback::through_a_proxy());
}

mod clear {
    use super::*;

    mizzen_driver::conformance!(Loopback::new(Records::Clear));
}

/// A proxy that connects with whatever it is asked for, until this program ends.
fn proxy() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let at = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || serve(socket));
        }
    });
    at
}

fn serve(mut from: TcpStream) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        from.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let to = head.split(' ').nth(1).unwrap_or_default();
    let Ok(mut there) = TcpStream::connect(to) else {
        return from.write_all(b"HTTP/1.1 502 it does not answer\r\n\r\n");
    };
    there.set_nodelay(true)?;
    from.set_nodelay(true)?;
    from.write_all(b"HTTP/1.1 200 Connected\r\nVia: 1.1 test\r\n\r\n")?;
    let (mut back, mut here) = (there.try_clone()?, from.try_clone()?);
    let copied = thread::spawn(move || {
        let copied = std::io::copy(&mut back, &mut here);
        // Cut at one side, cut at the other.
        let _ = here.shutdown(Shutdown::Both);
        copied
    });
    let _ = std::io::copy(&mut from, &mut there);
    let _ = there.shutdown(Shutdown::Both);
    let _ = copied.join();
    Ok(())
}
