//! The TCP driver keeps the contract, over the loopback interface, with sealed records and with clear ones.

mod common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

use common::Job;
use mizzen_driver::conformance::Harness;
use mizzen_driver::{Locator, PeerId};
use mizzen_tcp::{Records, TcpDriver, TcpOptions};
use socket2::{Domain, Socket, Type};

/// Each harness is a job of its own: a port that was ours may be another test's in a moment.
struct Loopback {
    job: Job,
    records: Records,
    /// Ports that are taken, and at which nobody listens.
    deaf: Vec<Socket>,
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
        }
    }
}

impl Harness for Loopback {
    type Driver = TcpDriver;

    fn driver(&mut self, me: PeerId) -> TcpDriver {
        let options = TcpOptions::new(me, self.job.security(me, self.records));
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        TcpDriver::new(options.listen(anywhere)).expect("a free port on the loopback interface")
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

mod clear {
    use super::*;

    mizzen_driver::conformance!(Loopback::new(Records::Clear));
}
