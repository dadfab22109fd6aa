//! Whether what goes over a circuit is sealed from end to end, and how far its ends are with that.

use std::time::Duration;

use mizzen_identity::{Bond, Credentials, Seal, SealError, Shaking};
use mizzen_proto::relay::{Cover, FragmentHeader, Lane, Route};
use mizzen_proto::time::Time;

/// How processes seal what they say to each other through gateways: as whom, and for how long with one key.
#[derive(Debug, Clone)]
pub struct Sealing {
    credentials: Credentials,
    fragments: u64,
}

impl Sealing {
    /// As who has these credentials, which are those of a process.
    #[must_use]
    pub fn new(credentials: Credentials) -> Self {
        let fragments = u64::MAX;
        Self {
            credentials,
            fragments,
        }
    }

    /// With a new key after so many fragments, where the cipher does not ask for one before.
    #[must_use]
    pub fn fragments(self, fragments: u64) -> Self {
        Self { fragments, ..self }
    }
}

/// What is between the two ends.
pub(super) enum Guard {
    /// All networks on the way are trusted.
    None,
    /// The ends prove to each other who they are.
    Shaking(Box<Shaking>),
    /// Nobody on the way can read or change anything.
    Sealed {
        seal: Box<Seal>,
        /// Since when with this key.
        since: Time,
    },
}

/// What is to be done with a fragment that came.
pub(super) enum Uncovered<'a> {
    /// It is from the other end.
    Taken(&'a [u8]),
    /// It is not, or may not be: as if it had not come.
    Left,
    /// There were too many of those.
    Worn,
}

impl Guard {
    /// Of a new circuit; and the flight that is to be sent, if this end begins.
    pub(super) fn new(
        sealing: Option<&Sealing>,
        dialled: bool,
        route: Route,
        circuit: u64,
    ) -> Result<(Self, Option<Vec<u8>>), SealError> {
        let Some(Sealing { credentials, .. }) = sealing else {
            return Ok((Self::None, None));
        };
        let bond = Bond {
            peer: credentials
                .identity()
                .process(route.to.rank.0, route.to.incarnation.0),
            ours: purpose(route, circuit),
            theirs: purpose(route.back(), circuit),
        };
        let (shaking, flight) = if dialled {
            let mut shaking = Shaking::dial(credentials, bond)?;
            let flight = shaking.begin()?;
            (shaking, Some(flight))
        } else {
            (Shaking::accept(credentials, bond)?, None)
        };
        Ok((Self::Shaking(Box::new(shaking)), flight))
    }

    pub(super) fn is_shaking(&self) -> bool {
        matches!(self, Self::Shaking(_))
    }

    /// Whether the circuit is sealed, or will be.
    pub(super) fn is_any(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// How many fragments came that the other end did not send, or not so.
    pub(super) fn refused(&self) -> u64 {
        match self {
            Self::Sealed { seal, .. } => seal.refused(),
            Self::None | Self::Shaking(_) => 0,
        }
    }

    /// Takes in the other end's flight: what is to be sent then, if anything. If both have proved who they are, all that follows is sealed.
    pub(super) fn take_flight(
        &mut self,
        flight: &[u8],
        sealing: Option<&Sealing>,
        now: Time,
    ) -> Result<Option<Vec<u8>>, SealError> {
        let Self::Shaking(shaking) = self else {
            return Err(SealError::Flight);
        };
        let answer = shaking.take(flight)?;
        if !shaking.is_proved() {
            return Ok(answer);
        }
        let seal = shaking.finish().ok_or(SealError::Flight)?;
        let most = sealing.map_or(u64::MAX, |sealing| sealing.fragments);
        *self = Self::Sealed {
            seal: Box::new(seal.most(most)),
            since: now,
        };
        Ok(answer)
    }

    /// What the other end has put into a fragment. `room` is where it is opened. A flight stays as it is: it proves itself, and comes before all
    /// that is sealed.
    pub(super) fn uncover<'a>(
        &mut self,
        header: &FragmentHeader,
        bytes: &'a [u8],
        dialled: bool,
        room: &'a mut Vec<u8>,
    ) -> Uncovered<'a> {
        if !self.is_any() {
            return Uncovered::Taken(bytes);
        }
        let (phase, contents) = match Cover::decode(bytes) {
            Some(Cover::Flight(_)) if self.is_shaking() && header.number < flights(dialled) => {
                return Uncovered::Taken(bytes);
            }
            Some(Cover::Sealed { phase, contents }) => (phase, contents),
            _ => return Uncovered::Left,
        };
        room.clear();
        room.extend_from_slice(contents);
        let (number, header) = (header.number, header.lasting());
        let opened = match self {
            Self::Sealed { seal, .. } => seal.open(number, phase, &header, room),
            Self::Shaking(shaking) => shaking.open(number, phase, &header, room),
            Self::None => Err(SealError::Broken),
        };
        match opened {
            Ok(contents) => Uncovered::Taken(contents),
            Err(SealError::Worn) => Uncovered::Worn,
            Err(_) => Uncovered::Left,
        }
    }

    /// Has the key replaced if it is old.
    pub(super) fn handle_time(&mut self, now: Time) {
        if let Self::Sealed { seal, since } = self {
            if now.since(*since) >= AGE {
                *since = now;
                seal.rotate();
            }
        }
    }
}

/// What a handshake is for: this circuit, this way round.
fn purpose(route: Route, circuit: u64) -> Vec<u8> {
    let header = FragmentHeader {
        route,
        hop: 0,
        lane: Lane::Shared,
        circuit,
        number: 0,
    };
    header.lasting().to_vec()
}

/// Flights that come at this end: who was dialled gets a greeting and a proof, who dialled one answer.
fn flights(dialled: bool) -> u64 {
    if dialled { 1 } else { 2 }
}

/// How long one key is used.
const AGE: Duration = Duration::from_secs(600);
