//! What jobs of this site offer to others.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::meeting::Meeting;
use crate::refusal::Refusal;

/// What is offered now.
#[derive(Debug, Default)]
pub(crate) struct Offers {
    things: BTreeMap<(Meeting, String), (u64, SocketAddr)>,
}

impl Offers {
    /// Offers something, under a number by which it is taken back.
    pub(crate) fn offer(
        &mut self,
        number: u64,
        meeting: &Meeting,
        thing: &str,
        at: SocketAddr,
    ) -> Result<(), Refusal> {
        let key = (meeting.clone(), thing.to_owned());
        if self.things.contains_key(&key) {
            let sentence = format!(
                "\"{thing}\" of {meeting} is offered by somebody else of this site; call the job differently, or end the other one"
            );
            return Err(Refusal::new(Refusal::FORBIDDEN, sentence));
        }
        self.things.insert(key, (number, at));
        Ok(())
    }

    pub(crate) fn take_back(&mut self, number: u64) {
        self.things.retain(|_, (known, _)| *known != number);
    }

    pub(crate) fn find(&self, meeting: &Meeting, thing: &str) -> Option<SocketAddr> {
        let key = (meeting.clone(), thing.to_owned());
        self.things.get(&key).map(|(_, at)| *at)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Meeting, &str, SocketAddr)> {
        self.things
            .iter()
            .map(|((meeting, thing), (_, at))| (meeting, thing.as_str(), *at))
    }
}
