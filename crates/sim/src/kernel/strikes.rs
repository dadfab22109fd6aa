//! Faults: what goes wrong, when, and for how long.

use std::time::Duration;

use super::{Kernel, SeatState};
use crate::agenda::Class;
use crate::event::Event;
use crate::faults::Fault;
use crate::ids::{HostId, MachineId};
use crate::network::Leaving;
use crate::options::draw;
use crate::world::{Truth, Violation, World};

impl<W: World> Kernel<W> {
    pub(super) fn strike_later(&mut self, kind: Fault) {
        let mean = self.between[kind as usize].as_secs_f64();
        let wait = -mean * (1.0 - self.rng.f64()).ln();
        let at = self.now + Duration::from_secs_f64(wait.min(1e6));
        self.agenda.add(at, Class::News, Event::Strike(kind));
    }

    pub(super) fn strike(&mut self, kind: Fault) -> Result<(), Violation> {
        if self.is_calm {
            return Ok(());
        }
        self.strike_later(kind);
        match kind {
            Fault::Break => {
                if let Some(connection) = self.network.any_between_hosts() {
                    self.log_fault("breaks", &connection);
                    let lost =
                        self.network
                            .break_connection(self.now, connection, &mut self.agenda);
                    self.marks.add("a connection broke");
                    if lost > 0 {
                        self.marks.add("something under way was lost");
                    }
                }
                Ok(())
            }
            Fault::CutOneWay => {
                let (from, to) = (self.any_host(), self.any_host());
                if from == to {
                    return Ok(());
                }
                self.marks.add("a way was cut");
                self.cut(vec![(from, to)])
            }
            Fault::Partition => {
                let sides: Vec<bool> = self.hosts.iter().map(|_| self.rng.bool()).collect();
                let hosts = || (0..sides.len()).map(|index| HostId(index as u32));
                let pairs = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
                let across =
                    |pair: &(HostId, HostId)| sides[pair.0.index()] != sides[pair.1.index()];
                let ways: Vec<_> = pairs.filter(across).collect();
                if ways.is_empty() {
                    return Ok(());
                }
                self.marks.add("a partition");
                self.cut(ways)
            }
            Fault::Pause => self.pause(),
            Fault::Crash => self.crash(),
            Fault::PowerLoss => self.lose_power(),
            Fault::Restart | Fault::Drift | Fault::Slow => Ok(()),
        }
    }

    fn cut(&mut self, ways: Vec<(HostId, HostId)>) -> Result<(), Violation> {
        self.log_fault("cuts", &ways);
        for &(from, to) in &ways {
            self.network.cut(self.now, from, to);
            self.world.handle_truth(self.now, Truth::Cut(from, to))?;
        }
        let at = self.now + draw(&mut self.rng, &self.options.outage);
        let heal = Event::Heal(self.outages.len());
        self.agenda.add(at, Class::News, heal);
        self.outages.push(ways);
        Ok(())
    }

    pub(super) fn heal(&mut self, outage: usize) -> Result<(), Violation> {
        let ways = std::mem::take(&mut self.outages[outage]);
        if ways.is_empty() {
            return Ok(());
        }
        self.log_fault("heals", &ways);
        for (from, to) in ways {
            if self.network.heal(self.now, from, to, &mut self.agenda) {
                self.world.handle_truth(self.now, Truth::Healed(from, to))?;
            }
        }
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Violation> {
        let host = self.any_host();
        let state = &mut self.hosts[host.index()];
        if state.is_paused || state.is_down {
            return Ok(());
        }
        state.is_paused = true;
        self.marks.add("a host paused");
        self.log_fault("pauses", &host);
        let at = self.now + draw(&mut self.rng, &self.options.pause);
        self.agenda.add(at, Class::News, Event::Resume(host));
        self.world.handle_truth(self.now, Truth::Paused(host))
    }

    pub(super) fn resume(&mut self, host: HostId) -> Result<(), Violation> {
        let state = &mut self.hosts[host.index()];
        if !state.is_paused {
            return Ok(());
        }
        state.is_paused = false;
        let held = std::mem::take(&mut state.held);
        for event in held {
            let class = match event {
                Event::Timer(..) | Event::GiveUp(_) => Class::Timer,
                _ => Class::News,
            };
            self.agenda.add(self.now, class, event);
        }
        self.log_fault("resumes", &host);
        self.world.handle_truth(self.now, Truth::Resumed(host))
    }

    fn crash(&mut self) -> Result<(), Violation> {
        let may = |machine: &MachineId| {
            let state = &self.seats[machine.index()];
            state.seat.may_crash && self.lives[machine.index()].is_some()
        };
        let all: Vec<_> = (0..self.seats.len() as u32)
            .map(MachineId)
            .filter(may)
            .collect();
        let Some(machine) = self.rng.choice(all) else {
            return Ok(());
        };
        self.marks.add("a machine crashed");
        self.log_fault("crashes", &machine);
        self.end_life(machine, Leaving::Closed)?;
        if self.faults.has(Fault::Restart) && self.seats[machine.index()].seat.starts {
            let at = self.now + draw(&mut self.rng, &self.options.down);
            self.agenda.add(at, Class::News, Event::Start(machine));
        }
        Ok(())
    }

    fn lose_power(&mut self) -> Result<(), Violation> {
        let host = self.any_host();
        let here = |state: &&SeatState| state.seat.host == host;
        let may = self
            .seats
            .iter()
            .filter(here)
            .all(|state| state.seat.may_crash);
        if !may || self.hosts[host.index()].is_down {
            return Ok(());
        }
        self.marks.add("a host lost power");
        self.log_fault("loses power", &host);
        self.resume(host)?;
        self.hosts[host.index()].is_down = true;
        self.network.set_powered(host, false);
        for index in 0..self.seats.len() {
            if self.seats[index].seat.host == host {
                self.end_life(MachineId(index as u32), Leaving::Silent)?;
            }
        }
        if self.faults.has(Fault::Restart) {
            let at = self.now + draw(&mut self.rng, &self.options.down);
            self.agenda.add(at, Class::News, Event::PowerOn(host));
        }
        Ok(())
    }

    pub(super) fn power_on(&mut self, host: HostId) -> Result<(), Violation> {
        self.hosts[host.index()].is_down = false;
        self.network.set_powered(host, true);
        self.log_fault("has power again", &host);
        for index in 0..self.seats.len() {
            let seat = self.seats[index].seat;
            if seat.host == host && seat.starts {
                self.start(MachineId(index as u32), None)?;
            }
        }
        Ok(())
    }

    pub(super) fn calm_down(&mut self) -> Result<(), Violation> {
        self.log_fault("nothing goes wrong any more", &());
        for outage in 0..self.outages.len() {
            self.heal(outage)?;
        }
        for index in 0..self.hosts.len() {
            self.resume(HostId(index as u32))?;
        }
        self.is_calm = true;
        self.world.handle_truth(self.now, Truth::Calm)
    }

    fn any_host(&mut self) -> HostId {
        HostId(self.rng.u32(..self.hosts.len() as u32))
    }
}
