//! The simulated network keeps the contract, whether calm or rough.

use mizzen_driver::conformance::Harness;
use mizzen_driver::sim::{SimDriver, SimNet, SimOptions};
use mizzen_driver::{ConnectFailure, Driver, Event, Locator, PeerId};

struct Sim(SimNet);

impl Harness for Sim {
    type Driver = SimDriver;

    fn driver(&mut self, me: PeerId) -> SimDriver {
        self.0.driver(me)
    }

    fn nobody(&mut self) -> Locator {
        self.0.nowhere()
    }

    fn cut(&mut self, (a, _): (PeerId, &mut SimDriver), (b, _): (PeerId, &mut SimDriver)) {
        self.0.cut(a, b);
    }
}

mod calm {
    use super::*;
    mizzen_driver::conformance!(Sim(SimNet::new(SimOptions::calm(1))));
}

mod rough {
    use super::*;
    mizzen_driver::conformance!(Sim(SimNet::new(SimOptions::rough(2))));
}

const ONE: PeerId = PeerId(1);
const TWO: PeerId = PeerId(2);

#[test]
fn the_seed_decides_everything() {
    let history = |seed| {
        let net = SimNet::new(SimOptions::rough(seed));
        let (mut one, mut two) = (net.driver(ONE), net.driver(TWO));
        one.connect(TWO, two.locator()).unwrap();
        let mut history = Vec::new();
        for tick in 0_u8..200 {
            let accepted = one
                .send_frame(TWO, &[std::io::IoSlice::new(&[tick])])
                .is_ok();
            history.push(format!("{tick} {accepted}"));
            for driver in [&mut one, &mut two] {
                driver
                    .poll(8, &mut |event| history.push(format!("{event:?}")))
                    .unwrap();
            }
        }
        history
    };
    assert_eq!(history(5), history(5));
    assert_ne!(history(5), history(6));
}

#[test]
fn a_delay_is_kept() {
    let net = SimNet::new(SimOptions::calm(1));
    net.set_delay(ONE, TWO, 50);
    let (mut one, two) = (net.driver(ONE), net.driver(TWO));
    one.connect(TWO, two.locator()).unwrap();
    let mut up_at = None;
    while up_at.is_none() {
        one.poll(1, &mut |_| up_at = Some(net.now())).unwrap();
    }
    assert_eq!(up_at, Some(100), "50 ticks there and 50 back");
}

#[test]
fn a_process_that_refuses_is_not_reached() {
    let net = SimNet::new(SimOptions::calm(1));
    let (mut one, two) = (net.driver(ONE), net.driver(TWO));
    net.refuse(TWO);
    one.connect(TWO, two.locator()).unwrap();
    let mut failure = None;
    while failure.is_none() {
        let mut keep = |event: Event<'_>| match event {
            Event::ConnectFailed { reason, .. } => failure = Some(reason),
            other => panic!("{other:?}"),
        };
        one.poll(1, &mut keep).unwrap();
    }
    assert_eq!(failure, Some(ConnectFailure::Rejected));
    assert_eq!(net.links(), 0);
}
