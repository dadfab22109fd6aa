//! The driver whose links go through gateways keeps the contract of all drivers: over TCP on the loopback interface, through one gateway, and through
//! two in a row, with one connection between them and with three, and sealed from end to end.

mod common;

use common::Clusters;
use mizzen_driver::conformance::Harness;
use mizzen_driver::{Locator, PeerId};
use mizzen_networks::RelayedDriver;

impl Harness for Clusters {
    type Driver = RelayedDriver;

    fn driver(&mut self, me: PeerId) -> RelayedDriver {
        self.attach(me)
    }

    fn nobody(&mut self) -> Locator {
        Locator::new("4000").expect("a number is a locator")
    }

    fn cut(&mut self, (_, a): (PeerId, &mut RelayedDriver), (b, _): (PeerId, &mut RelayedDriver)) {
        a.sever(b);
    }
}

mod one_gateway {
    use super::*;

    mizzen_driver::conformance!(Clusters::new(1));
}

mod two_gateways {
    use super::*;

    mizzen_driver::conformance!(Clusters::new(2));
}

mod three_streams {
    use super::*;

    mizzen_driver::conformance!(Clusters::striped(3));
}

mod sealed {
    use super::*;

    mizzen_driver::conformance!(Clusters::striped(2).sealed(100));
}
