//! Drivers for tests: TCP as the bootstrap, on the loopback interface, and a way to break it.

#[path = "../../../tcp/tests/common/mod.rs"]
mod job;
mod skip;

use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use job::Job;
use mizzen_driver::conformance::Harness;
use mizzen_driver::{
    BodyId, Caps, ConnectError, Driver, DriverError, Event, Locator, Part, PartMut, PeerId, Refused,
};
use mizzen_ofi::{OfiDriver, OfiOptions};
use mizzen_tcp::{Records, Security, TcpDriver, TcpOptions};
pub(crate) use skip::skip;
use socket2::{Domain, Socket, Type};

/// A TCP driver that the test can still reach when it has been given away.
pub(crate) struct Shared(Arc<Inner>);

struct Inner {
    driver: Mutex<TcpDriver>,
    caps: Caps,
    locator: Locator,
    wakeup: OwnedFd,
}

impl Shared {
    /// A driver on the loopback interface.
    pub(crate) fn new(me: PeerId, security: Security) -> Self {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let driver = TcpDriver::new(TcpOptions::new(me, security).listen(anywhere));
        let driver = driver.expect("a free port on the loopback interface");
        let wakeup = driver.wakeup().expect("TCP can sleep");
        Self(Arc::new(Inner {
            caps: driver.caps().clone(),
            locator: driver.locator().clone(),
            wakeup: wakeup.try_clone_to_owned().expect("a descriptor"),
            driver: Mutex::new(driver),
        }))
    }

    /// Breaks the link to a peer.
    pub(crate) fn sever(&self, peer: PeerId) {
        self.lock().sever(peer);
    }

    fn lock(&self) -> MutexGuard<'_, TcpDriver> {
        self.0.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY (of the lending functions): the promises are passed on as they are.
#[allow(unsafe_code)]
impl Driver for Shared {
    fn caps(&self) -> &Caps {
        &self.0.caps
    }

    fn wakeup(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.wakeup.as_fd())
    }

    fn locator(&self) -> &Locator {
        &self.0.locator
    }

    fn connect(&mut self, peer: PeerId, at: &Locator) -> Result<(), ConnectError> {
        self.lock().connect(peer, at)
    }

    fn disconnect(&mut self, peer: PeerId) {
        self.lock().disconnect(peer);
    }

    fn send_frame(&mut self, peer: PeerId, frame: &[IoSlice<'_>]) -> Result<(), Refused> {
        self.lock().send_frame(peer, frame)
    }

    unsafe fn send_body(&mut self, _: PeerId, _: BodyId, _: &[Part]) -> Result<(), Refused> {
        panic!("a bootstrap carries no bodies");
    }

    unsafe fn recv_body(&mut self, _: PeerId, _: BodyId, _: &[PartMut]) -> Result<(), Refused> {
        panic!("a bootstrap carries no bodies");
    }

    fn poll(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Event<'_>),
    ) -> Result<usize, DriverError> {
        self.lock().poll(budget, sink)
    }
}

/// Drivers over one provider. Each harness is a job of its own.
pub(crate) struct Loopback {
    provider: &'static str,
    job: Job,
    /// Not kept alive: a driver that is dropped closes its sockets.
    bootstraps: Vec<(PeerId, Weak<Inner>)>,
    /// Ports that are taken, and at which nobody listens.
    deaf: Vec<Socket>,
}

impl Loopback {
    /// A network without drivers; none, and a word on stderr, where the provider is not installed.
    pub(crate) fn new(provider: &'static str) -> Option<Self> {
        match mizzen_ofi::providers() {
            Err(why) => {
                skip(&why);
                return None;
            }
            Ok(found)
                if !found
                    .iter()
                    .any(|offer| offer.usable && offer.name == provider) =>
            {
                eprintln!("skipped: this libfabric has no provider {provider:?}");
                return None;
            }
            Ok(_) => {}
        }
        static JOBS: AtomicU64 = AtomicU64::new(0);
        let mut number = [0; 16];
        let job = JOBS.fetch_add(1, Ordering::Relaxed);
        number[..8].copy_from_slice(&job.to_le_bytes());
        number[8..12].copy_from_slice(&std::process::id().to_le_bytes());
        Some(Self {
            provider,
            job: Job::new(number),
            bootstraps: Vec::new(),
            deaf: Vec::new(),
        })
    }
}

impl Harness for Loopback {
    type Driver = OfiDriver;

    fn driver(&mut self, me: PeerId) -> OfiDriver {
        let bootstrap = Shared::new(me, self.job.security(me, Records::Sealed));
        self.bootstraps.retain(|(id, _)| *id != me);
        self.bootstraps.push((me, Arc::downgrade(&bootstrap.0)));
        let here = IpAddr::from(Ipv4Addr::LOCALHOST);
        let options = OfiOptions::new().provider(self.provider).at(here);
        OfiDriver::new(Box::new(bootstrap), options).expect("a provider that opens")
    }

    fn nobody(&mut self) -> Locator {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&anywhere.into()).expect("a free port");
        let address = socket
            .local_addr()
            .ok()
            .and_then(|address| address.as_socket());
        let address = address.expect("a socket that is bound");
        self.deaf.push(socket);
        Locator::new(&address.to_string()).expect("an address is a locator")
    }

    fn cut(&mut self, (a, _): (PeerId, &mut OfiDriver), (b, _): (PeerId, &mut OfiDriver)) {
        let bootstrap = self.bootstraps.iter().find(|(id, _)| *id == a);
        let bootstrap = bootstrap.and_then(|(_, bootstrap)| bootstrap.upgrade());
        Shared(bootstrap.expect("a driver that lives")).sever(b);
    }
}
