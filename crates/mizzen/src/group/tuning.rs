//! How a program says by what a group chooses.

use core::panic::Location;

use mizzen_core::Result;
use mizzen_proto::group::cost::{Costs, choose};
use mizzen_proto::group::plan::{Operation, Order, Way, ways};
use mizzen_proto::group::probe::Findings;
use mizzen_proto::group::schedule::Member;

use super::call::Call;
use super::member::Group;
use super::probing::known;

impl Group {
    /// Chooses by these costs from now on: those that member 0 gives, or what is measured now if it gives none. Returns them. All members call it.
    ///
    /// Without it, a group measures before it first needs to know, and reductions choose by constants, so that they come to the same bits from run to run. After it, reductions
    /// choose by these costs as well; who gives the same costs again gets the same bits again.
    ///
    /// ```
    /// mizzen::local(4, |deck| {
    ///     let mut group = deck.group()?;
    ///     let measured = group.tune(None)?;
    ///     assert!(measured.host.latency > 0);
    ///     assert_eq!(group.tune(Some(measured))?, measured);
    ///     Ok(())
    /// }).unwrap();
    /// ```
    ///
    /// # Errors
    ///
    /// [`GroupError`](super::GroupError).
    #[track_caller]
    pub fn tune(&mut self, costs: Option<Costs>) -> Result<Costs> {
        let call = Call::new("tune", Operation::Broadcast(Member(0)), Location::caller());
        let agreed = self.perform(call, |under| {
            let given = costs.filter(|_| under.seat.me == 0).map(Findings::from);
            let mut words = given.unwrap_or_default().0;
            under.whole(&mut words, None)?;
            let measured = known(under.seat)?;
            let agreed = Findings(words).costs(&measured);
            under.seat.choice.costs = Some(agreed);
            under.seat.choice.is_tuned = true;
            under.plans.forget();
            Ok(agreed)
        })?;
        Ok(agreed)
    }

    /// Carries operations out in this way, if they have it, and by messages; all members do the same. For measurements.
    #[doc(hidden)]
    pub fn force(&mut self, way: Option<Way>) {
        let (seat, plans) = self.parts();
        seat.choice.forced = way;
        plans.forget();
    }

    /// The ways of an operation whose data may be combined in any order, and the one that these costs say for so many bytes. For measurements.
    #[doc(hidden)]
    pub fn ways(
        &mut self,
        operation: Operation,
        bytes: usize,
        costs: &Costs,
    ) -> (Vec<Way>, Option<Way>) {
        let (seat, _) = self.parts();
        let (layout, order) = (&seat.roster.layout, Order::Any);
        let bytes = bytes.max(1).next_power_of_two() as u64;
        let chosen = choose(layout, operation, order, bytes, costs);
        (ways(layout, operation, order), chosen)
    }
}
