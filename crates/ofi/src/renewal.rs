//! Which port a new link uses, and the end of ports that were replaced.

use std::io;

use mizzen_driver::PeerId;

use crate::driver::OfiDriver;
use crate::endpoint::Endpoint;
use crate::link::Stage;
use crate::port::Port;
use crate::ports::PortId;

impl OfiDriver {
    /// Opens what a peer that fell silent will need when it is back. A failure is found again then.
    pub(crate) fn prepare_return(&mut self, peer: PeerId, had_bodies: bool) {
        let _ = self.renew_port(peer);
        if had_bodies && self.spares.len() < MAX_SPARES {
            self.spares.extend(Endpoint::open(&self.domain));
        }
    }

    /// Opens a port for a peer that is about to have a link again. It takes `ofi_rxm` 50 ms, which are best spent
    /// while the peer cannot be reached.
    pub(crate) fn renew_port(&mut self, peer: PeerId) -> io::Result<()> {
        self.retire_ports();
        if !self.ports.needs_fresh(peer) {
            return Ok(());
        }
        let port = Port::open(&self.domain)?;
        self.has_descriptors &= self
            .wakeup
            .watch_queue(port.endpoint().wait(), self.has_edges);
        self.ports.add(port);
        // Who used the one before may have been the peer alone.
        self.retire_ports();
        Ok(())
    }

    /// Closes the ports that were replaced and that no link uses.
    pub(crate) fn retire_ports(&mut self) {
        while let Some(id) = self.ports.find_unused() {
            for slot in 0..self.links.len() {
                self.bury_with(slot, id);
            }
            self.ports.close(id);
        }
    }

    /// Frees the number of a link that has ended, if only this port still had something of it.
    fn bury_with(&mut self, slot: usize, port: PortId) {
        let link = self.links[slot].as_deref();
        if link.is_some_and(|link| link.port == port && matches!(link.stage, Stage::Gone(_))) {
            self.links[slot] = None;
            self.free.push(slot);
        }
    }
}

/// Endpoints for bodies that wait for a peer to come back: the next bodies use them, whoever sends them.
const MAX_SPARES: usize = 2;

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::time::{Duration, Instant};

    use mizzen_driver::Driver;

    use super::*;
    use crate::message::{Header, Kind};
    use crate::strangers::{describe, drivers};

    const ONE: PeerId = PeerId(1);
    const TWO: PeerId = PeerId(2);
    const THREE: PeerId = PeerId(3);

    /// Polls all drivers until the last events of each are these.
    fn until<const N: usize>(drivers: &mut [OfiDriver; N], wanted: [&[&str]; N]) {
        let late = Instant::now() + Duration::from_secs(30);
        let mut seen = [const { Vec::new() }; N];
        while seen != wanted {
            for (driver, seen) in drivers.iter_mut().zip(&mut seen) {
                let mut keep = |event: mizzen_driver::Event<'_>| seen.push(describe(event));
                driver.poll(16, &mut keep).expect("a network that works");
            }
            assert!(Instant::now() < late, "{seen:?} instead of {wanted:?}");
        }
    }

    fn connect(from: &mut OfiDriver, peer: PeerId, to: &OfiDriver) {
        from.connect(peer, to.locator()).expect("a locator");
    }

    fn name(driver: &OfiDriver) -> Vec<u8> {
        driver.port().endpoint().name().to_vec()
    }

    /// One that has links with two others, of which the first has come back.
    fn returned() -> Option<[OfiDriver; 3]> {
        let mut all = drivers([ONE, TWO, THREE])?;
        let [one, two, three] = &mut all;
        connect(one, TWO, two);
        connect(one, THREE, three);
        until(
            &mut all,
            [&["Connected"; 2], &["Connected"], &["Connected"]],
        );
        all[0].disconnect(TWO);
        until(&mut all, [&[], &["Lost"], &[]]);
        let [one, two, _] = &mut all;
        connect(one, TWO, two);
        until(&mut all, [&["Connected"], &["Connected"], &[]]);
        Some(all)
    }

    #[test]
    fn a_peer_that_comes_back_is_met_at_another_port() {
        let Some(mut all) = drivers([ONE, TWO]) else {
            return;
        };
        for round in 0..3 {
            let names = all.each_ref().map(name);
            let [one, two] = &mut all;
            connect(one, TWO, two);
            until(&mut all, [&["Connected"], &["Connected"]]);
            for (driver, old) in all.iter().zip(names) {
                assert_eq!(name(driver) == old, round == 0, "round {round}");
                assert_eq!(driver.ports.iter().count(), 1, "the old one is closed");
            }
            let sent = all[0].send_frame(TWO, &[IoSlice::new(b"again")]);
            sent.expect("an idle link");
            until(&mut all, [&[], &["Frame again"]]);
            all[0].disconnect(TWO);
            until(&mut all, [&[], &["Lost"]]);
        }
    }

    #[test]
    fn what_a_lost_peer_will_need_is_opened_while_it_is_away() {
        let Some(mut all) = drivers([ONE, TWO]) else {
            return;
        };
        let [one, two] = &mut all;
        connect(one, TWO, two);
        until(&mut all, [&["Connected"], &["Connected"]]);
        all[0].disconnect(TWO);
        until(&mut all, [&[], &["Lost"]]);
        let old = name(&all[0]);
        for _ in 0..2 * MAX_SPARES {
            all[0].prepare_return(TWO, true);
        }
        let ahead = name(&all[0]);
        assert_ne!(ahead, old);
        assert_eq!(all[0].spares.len(), MAX_SPARES);
        let [one, two] = &mut all;
        connect(one, TWO, two);
        until(&mut all, [&["Connected"], &["Connected"]]);
        assert_eq!(name(&all[0]), ahead, "no other is opened");
    }

    #[test]
    fn a_port_stays_as_long_as_a_link_uses_it() {
        let Some(mut all) = returned() else { return };
        assert_eq!(all[0].ports.iter().count(), 2);
        for peer in [TWO, THREE] {
            let sent = all[0].send_frame(peer, &[IoSlice::new(b"still here")]);
            sent.expect("an idle link");
        }
        until(
            &mut all,
            [&[], &["Frame still here"], &["Frame still here"]],
        );
        all[0].disconnect(THREE);
        until(&mut all, [&[], &[], &["Lost"]]);
        assert_eq!(all[0].ports.iter().count(), 1);
    }

    #[test]
    fn a_message_at_another_port_than_its_link_has_is_dropped() {
        let Some(mut all) = returned() else { return };
        let [one, two, _] = &mut all;
        let slot = one.peers[&TWO];
        let header = Header {
            key: one.link(slot).expect("a link").key,
            slot: slot as u32,
            serial: 1,
            kind: Kind::Frame,
            taken: 0,
            len: 0,
        };
        let newest = name(one);
        let old = one.ports.iter().map(|port| port.endpoint().name());
        let old = old.filter(|&other| other != newest).collect::<Vec<_>>();
        let to = two.port().endpoint().insert(old[0]).expect("a name");
        let late = Instant::now() + Duration::from_secs(30);
        // It connects first, and says that it is not ready until then.
        while all[1].port().inject(to, &header.encode()).expect("a way")
            != crate::endpoint::Posted::Yes
        {
            all[1].poll(1, &mut |_| ()).expect("a network that works");
            all[0].poll(1, &mut |_| ()).expect("a network that works");
            assert!(Instant::now() < late);
        }
        while all[0].strangers() == 0 {
            all[1].poll(1, &mut |_| ()).expect("a network that works");
            all[0].poll(1, &mut |_| ()).expect("a network that works");
            assert!(Instant::now() < late);
        }
        let sent = all[1].send_frame(ONE, &[IoSlice::new(b"honest")]);
        sent.expect("an idle link");
        until(&mut all, [&["Frame honest"], &[], &[]]);
    }
}
