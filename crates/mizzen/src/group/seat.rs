//! A member's place in its group: what it sends the others, and what it hears from them.
//!
//! Every message says which operation of the group it is of, by number and by [print](super::call::Call::print): one that is of another was sent by a member
//! that does something else. Messages of members that are ahead wait here.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};

use mizzen_core::service::{
    Address, Caller, Kind, Noted, Operation, SlateNumber, Slates, WaitsFor,
};
use mizzen_core::{
    Departure, Endpoint, Error, Gone, Incarnation, Incoming, Mailbox, MailboxRef, Message,
    PostError, ProcessId, Rank, ReachError, RetrieveError, UnpackError,
};
use mizzen_proto::group::schedule::Member;
use serde::{Deserialize, Serialize};

use super::agreements::{Agreements, Proposal, Told};
use super::call::{Call, Prints};
use super::choice::Choice;
use super::error::{Doing, GroupError};
use super::roster::{Roster, Way};

/// With more members than that, to read all slates takes longer than to go by a tree.
const MOST_MEMBERS: u32 = 16;

/// How long a member waits to hear what another does instead.
const EXPLANATION: Duration = Duration::from_secs(2);

/// How long a wait for a member is before it is asked whether it does the same.
pub(super) const LONG: Duration = Duration::from_secs(1);

pub(super) struct Seat {
    pub(super) process: Endpoint,
    pub(super) inbox: Mailbox,
    /// The slates of all members, when they are all on this host and it was looked at.
    pub(super) slates: Option<Slates>,
    has_looked_for_slates: bool,
    pub(super) has_looked_for_trays: bool,
    /// Its own slate, until they are opened, unless it is one that every process has.
    slate: Option<SlateNumber>,
    pub(super) me: Member,
    pub(super) roster: Roster,
    pub(super) choice: Choice,
    addresses: HashMap<Member, MailboxRef>,
    /// What came before it was wanted.
    early: HashMap<Member, VecDeque<Incoming<'static>>>,
    /// Who is ahead of this member, and in what, by number and print.
    ahead: VecDeque<(Member, u64, u64)>,
    /// Why the group ends, and with which operation: those before it go on, since who sent the notice had done its part of them.
    notices: VecDeque<(u64, Member, Notice)>,
    /// Who is gone. That ends an operation only where something of it is missing: what it sent before is there.
    gone: HashMap<Rank, Gone>,
    /// How many operations were begun.
    sequence: u64,
    /// The operation under way, and its print.
    call: Option<Call>,
    print: u64,
    prints: Prints,
    /// Why there is nothing to be done in this group any more.
    broken: Option<GroupError>,
    has_flooded: bool,
    /// Who has left the group, while its process goes on.
    left: BTreeSet<Member>,
    pub(super) agreements: Agreements,
    /// How many operations were done.
    done: u64,
}

/// What a message begins with: what it is and whose, of which operation, and that one's print.
type Head = [u64; 3];

const DATA: u64 = 0;
const NOTICE: u64 = 1;
/// The sender waits for this member, in the operation that the head says.
const WAITING: u64 = 2;
/// Of an agreement, by its number.
const AGREEMENT: u64 = 3;

/// How long a member waits, in times of [`LONG`]. It may hear something else meanwhile.
#[derive(Default)]
pub(super) struct Waiting {
    since: Option<Instant>,
    times: u32,
}

impl Waiting {
    /// It has slept for [`LONG`].
    pub(super) fn nap(&mut self) {
        self.since = self.since.or_else(|| Instant::now().checked_sub(LONG));
    }

    /// How many times it has lasted, if that is once more than before.
    pub(super) fn lasts(&mut self) -> Option<u32> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < LONG * (self.times + 1) {
            return None;
        }
        self.times += 1;
        Some(self.times)
    }
}

/// Whether slates were looked for just now, and found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Now,
    Before,
}

/// What a member hears.
enum Heard {
    /// Nothing, in time.
    Nothing,
    /// Something for later.
    Data,
    /// A member does something else than this one.
    Differs(Member),
    /// The group cannot go on.
    Notice(Member, Notice),
}

/// What members tell each other when the group cannot go on.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Notice {
    /// What the sender does, while another member does something else.
    Differs { call: String, other: u32 },
    /// A member is gone.
    Lost {
        member: u32,
        rank: u32,
        incarnation: u32,
        has_left: bool,
    },
    /// The sender does not want to go on.
    Revoked,
    /// What the sender was given does not fit.
    Misfit { what: String },
    /// The sender cannot go on.
    Panicked,
}

impl Seat {
    pub(super) fn new(
        process: Endpoint,
        inbox: Mailbox,
        slate: Option<SlateNumber>,
        me: Member,
        roster: Roster,
    ) -> Self {
        let (own, size) = (process.id().rank, roster.size());
        let mut before = None;
        for rank in roster.members().map(|member| roster.rank(member)) {
            if rank != own && before != Some(rank) {
                inbox.depend_on(rank);
            }
            before = Some(rank);
        }
        Self {
            process,
            inbox,
            slates: None,
            has_looked_for_slates: false,
            has_looked_for_trays: false,
            slate,
            me,
            roster,
            choice: Choice::default(),
            addresses: HashMap::new(),
            early: HashMap::new(),
            ahead: VecDeque::new(),
            notices: VecDeque::new(),
            gone: HashMap::new(),
            sequence: 0,
            call: None,
            print: 0,
            prints: Prints::default(),
            broken: None,
            has_flooded: false,
            left: BTreeSet::new(),
            agreements: Agreements::new(me, size),
            done: 0,
        }
    }

    /// Begins an operation.
    pub(super) fn begin(&mut self, call: Call) -> Result<(), GroupError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        self.sequence += 1;
        self.print = self.prints.of(&call);
        self.call = Some(call);
        if let Some((member, notice)) = self.find_notice() {
            let failed = self.handle_notice(member, notice);
            self.end(false);
            return Err(failed);
        }
        if let Some(other) = self.find_other() {
            let differs = self.differ(other);
            self.end(false);
            return Err(differs);
        }
        let size = self.roster.size();
        match call.root() {
            Some(root) if root >= size => {
                let refused = self.refuse(format!("there is no member {root} among {size}"));
                self.end(false);
                Err(refused)
            }
            _ => Ok(()),
        }
    }

    /// The operation is over, and done or not.
    pub(super) fn end(&mut self, is_done: bool) {
        self.call = None;
        self.done += u64::from(is_done);
    }

    /// How many operations were done.
    pub(super) fn done(&self) -> u64 {
        self.done
    }

    /// Ends the group for all.
    pub(super) fn revoke(&mut self) {
        let (member, call) = (self.me, self.doing());
        let error = GroupError::Revoked { member, call };
        self.fail(error, Some(&Notice::Revoked));
    }

    /// What this member was given does not fit: nobody has to wait for it.
    pub(super) fn refuse(&mut self, what: String) -> GroupError {
        let (member, call) = (self.me, self.doing());
        let notice = Notice::Misfit { what: what.clone() };
        self.fail(GroupError::Misfit { member, what, call }, Some(&notice))
    }

    /// Nobody goes on with what is under way: others wait for what a panic has kept this member from doing.
    pub(super) fn abandon(&mut self) {
        if self.call.is_some() && self.broken.is_none() {
            let (member, call) = (self.me, self.doing());
            self.fail(
                GroupError::Panicked { member, call },
                Some(&Notice::Panicked),
            );
        }
    }

    /// What goes before the data of a message.
    pub(super) fn head(&self) -> Head {
        self.head_of(DATA)
    }

    fn head_of(&self, kind: u64) -> Head {
        [kind | u64::from(self.me.0) << 8, self.sequence, self.print]
    }

    /// The address of a member, if it is there.
    pub(super) fn address(&mut self, member: Member) -> Result<Option<MailboxRef>, GroupError> {
        if let Some(known) = self.addresses.get(&member) {
            return Ok(Some(known.clone()));
        }
        let address = match self.roster.way(member) {
            Way::At(address) => address,
            Way::Of(rank, mailbox) => match self.process.reach(rank) {
                Ok(process) => Address { process, mailbox },
                Err(ReachError::Gone(gone)) => {
                    self.gone.insert(gone.rank(), gone);
                    return Ok(None);
                }
                Err(error) => return Err(self.break_off(error.to_string())),
            },
        };
        let address = MailboxRef::new(self.process.clone(), address);
        self.addresses.insert(member, address.clone());
        Ok(Some(address))
    }

    /// A message to a member could not be posted. If the member is gone, it need not have it; who misses something of it finds out.
    pub(super) fn not_posted(&mut self, member: Member, error: &Error) -> Result<(), GroupError> {
        match error {
            Error::Post(PostError::PeerGone(gone)) => {
                self.gone.insert(gone.rank(), *gone);
                Ok(())
            }
            Error::Post(PostError::Closed { .. }) => Ok(()),
            error => Err(self.break_off(format!("nothing reaches member {member}: {error}"))),
        }
    }

    /// A message of a member could not be read: perhaps it is gone, and the rest of it did not come.
    pub(super) fn not_unpacked(&mut self, member: Member, error: &Error) -> GroupError {
        match error {
            Error::Unpack(UnpackError::PeerGone(gone)) => self.lose(member, *gone),
            error => self.break_off(format!("of member {member}: {error}")),
        }
    }

    /// What this operation is, as a number.
    pub(super) fn print(&self) -> u64 {
        self.print
    }

    /// How a member went, if it is gone.
    pub(super) fn has_gone(&self, member: Member) -> Option<Gone> {
        if let Some(gone) = self.gone.get(&self.roster.rank(member)) {
            return Some(*gone);
        }
        let life = match self.roster.way(member) {
            Way::At(address) => address.process,
            Way::Of(rank, _) => ProcessId::new(rank, Incarnation(0)),
        };
        let has_left = self.left.contains(&member);
        has_left.then(|| Gone::new(life, Departure::Left))
    }

    /// Looks for the slates of all members, once: if they are all on this host, few enough, and have some. The same at all.
    pub(super) fn find_slates(&mut self) -> Result<Found, GroupError> {
        if core::mem::replace(&mut self.has_looked_for_slates, true) {
            return Ok(Found::Before);
        }
        self.slates = self.open_slates()?;
        Ok(if self.slates.is_some() {
            Found::Now
        } else {
            Found::Before
        })
    }

    #[cold]
    fn open_slates(&mut self) -> Result<Option<Slates>, GroupError> {
        let _call = self.caller();
        let size = self.roster.size();
        let numbers = if (2..=MOST_MEMBERS).contains(&size) {
            self.roster.slates()
        } else {
            None
        };
        let Some(numbers) = numbers else {
            return Ok(None);
        };
        let mut members = Vec::with_capacity(numbers.len());
        for (member, slate) in self.roster.members().zip(numbers) {
            let address = match self.roster.way(member) {
                Way::At(address) => address,
                Way::Of(_, mailbox) if member == self.me => Address {
                    process: self.process.id(),
                    mailbox,
                },
                Way::Of(rank, mailbox) => match self.process.reach(rank) {
                    Ok(process) => Address { process, mailbox },
                    // Who has left had done its part without slates: those with one leave when all have looked.
                    Err(ReachError::Gone(gone)) if !gone.is_failure() => return Ok(None),
                    Err(ReachError::Gone(gone)) => return Err(self.lose(member, gone)),
                    Err(error) => return Err(self.break_off(error.to_string())),
                },
            };
            members.push((address, slate));
        }
        match Slates::open(&self.process, self.me.index(), &mut self.slate, &members) {
            Ok(slates) => Ok(slates),
            Err(ReachError::Gone(gone)) if !gone.is_failure() => Ok(None),
            Err(ReachError::Gone(gone)) => {
                let member = self
                    .roster
                    .members()
                    .find(|member| self.roster.rank(*member) == gone.rank());
                Err(self.lose(member.unwrap_or(self.me), gone))
            }
            Err(error) => Err(self.break_off(error.to_string())),
        }
    }

    /// Takes what has come to the mailbox while this member waits for a slate.
    pub(super) fn take_word(&mut self) -> Result<(), GroupError> {
        match self.hear(Duration::ZERO)? {
            Heard::Nothing | Heard::Data => Ok(()),
            Heard::Differs(other) => Err(self.differ(other)),
            Heard::Notice(member, notice) => Err(self.handle_notice(member, notice)),
        }
    }

    /// This member has waited for another for so many times [`LONG`].
    pub(super) fn ask_once_more(&mut self, member: Member, times: u32) {
        self.ask(member);
        if times == 10 || times % 30 == 0 {
            self.inbox.tell_waited(LONG * times);
        }
    }

    /// The next message of a member in this operation.
    pub(super) fn receive(&mut self, from: Member) -> Result<Incoming<'static>, GroupError> {
        let (mut waiting, mut noted) = (Waiting::default(), Noted::default());
        loop {
            let next = self.early.get_mut(&from).and_then(VecDeque::pop_front);
            if let Some(incoming) = next {
                return Ok(incoming);
            }
            if let Some(gone) = self.has_gone(from) {
                return Err(self.lose(from, gone));
            }
            match self.hear(LONG)? {
                Heard::Nothing => waiting.nap(),
                Heard::Data => (),
                Heard::Differs(other) => return Err(self.differ(other)),
                Heard::Notice(member, notice) => return Err(self.handle_notice(member, notice)),
            }
            if let Some(times) = waiting.lasts() {
                self.ask_once_more(from, times);
                noted.keep_after(LONG * times, || self.waits_for(from));
            }
        }
    }

    /// Lets a member know that this one waits for it, so that it finds out if the two do different things. If it has left the group, this one finds out. If it takes
    /// still longer, the user is told.
    #[cold]
    pub(super) fn ask(&mut self, member: Member) {
        let call = self.doing();
        let waits = format!(
            "in {call}, for member {member} of a group, rank {}",
            self.roster.rank(member)
        );
        let waits = WaitsFor::one(Kind::Group, self.roster.rank(member), waits);
        self.inbox.wait_for_what(waits);
        let head = self.head_of(WAITING);
        let Ok(Some(address)) = self.address(member) else {
            return;
        };
        self.note_unsent(member, address.send(&head));
    }

    /// A member that was told something in vain is gone.
    fn note_unsent(&mut self, member: Member, sent: Result<(), Error>) {
        match sent {
            Err(Error::Post(PostError::Closed { .. })) => {
                self.left.insert(member);
            }
            Err(Error::Post(PostError::PeerGone(gone))) => {
                self.gone.insert(gone.rank(), gone);
            }
            _ => (),
        }
    }

    /// Tells members words of an agreement. Who is gone need not know.
    fn tell(&mut self, number: u64, told: Told) {
        let [what, ..] = self.head_of(AGREEMENT);
        for (member, word) in told {
            let Ok(Some(address)) = self.address(member) else {
                continue;
            };
            let mut message = Message::new();
            message.pack_safer(&[what, number, 0]);
            if message.pack_value(&word).is_ok() {
                let sent = address.post_timeout(&mut message, EXPLANATION);
                self.note_unsent(member, sent);
            }
        }
    }

    /// Proposes something to all members that are left: the number of that agreement.
    pub(super) fn propose(&mut self, proposal: Proposal) -> u64 {
        let (number, told) = self.agreements.call(proposal);
        self.tell(number, told);
        number
    }

    /// Takes part in agreements until something comes; not for [`LONG`], then `false`.
    pub(super) fn take_part(&mut self) -> Result<bool, GroupError> {
        self.lose_those_gone();
        match self.hear(LONG)? {
            Heard::Nothing => return Ok(false),
            // That ends the next operation, not this.
            Heard::Notice(member, notice) => self.notices.push_back((0, member, notice)),
            Heard::Data | Heard::Differs(_) => (),
        }
        Ok(true)
    }

    /// Agreements need not wait for those that are gone.
    pub(super) fn lose_those_gone(&mut self) {
        let gone = |member: &Member| self.has_gone(*member).is_some();
        let gone: Vec<Member> = self.roster.members().filter(gone).collect();
        for member in gone {
            let (number, told) = self.agreements.lose(member);
            self.tell(number, told);
        }
    }

    /// What this member waits for, for those who ask why nothing happens.
    #[cold]
    pub(super) fn waits_for(&self, member: Member) -> WaitsFor {
        let rank = self.roster.rank(member);
        let group = match self.roster.way(member) {
            Way::Of(..) => "the group of all".to_owned(),
            Way::At(_) => format!("a group of {} members", self.roster.size()),
        };
        let doing = self.doing();
        let name = doing
            .rsplit_once(" at ")
            .map_or(&doing[..], |(name, _)| name);
        let what = format!("in {name} for rank {rank}, member {member}");
        let mut waits = WaitsFor::one(Kind::Group, rank, what);
        waits.at = self.call.as_ref().map(|call| call.at);
        waits.operation = Some(Operation {
            group,
            number: self.sequence,
            name: name.to_owned(),
        });
        waits
    }

    /// Says to whatever waits inside of this operation where the program called it.
    pub(super) fn caller(&self) -> Option<Caller> {
        self.call.as_ref().map(|call| Caller::enter_at(call.at))
    }

    /// Takes the next message, whosever it is.
    fn hear(&mut self, patience: Duration) -> Result<Heard, GroupError> {
        match self.inbox.retrieve_timeout(patience) {
            Ok(incoming) => Ok(self.sort(incoming).unwrap_or(Heard::Data)),
            Err(Error::Retrieve(RetrieveError::TimedOut { .. })) => Ok(Heard::Nothing),
            Err(Error::Retrieve(RetrieveError::PeerGone(gone))) => {
                self.gone.insert(gone.rank(), gone);
                if !self.agreements.is_empty() {
                    self.lose_those_gone();
                }
                Ok(Heard::Data)
            }
            Err(error) => Err(self.break_off(error.to_string())),
        }
    }

    /// Puts data where they wait. What is not of a member is nobody's.
    fn sort(&mut self, mut incoming: Incoming<'static>) -> Option<Heard> {
        let [what, sequence, print] = incoming.unpack_express::<Head>().ok()?;
        let member = Member(u32::try_from(what >> 8).ok()?);
        if member.0 >= self.roster.size() || self.roster.rank(member) != incoming.source() {
            return None;
        }
        match what & 0xff {
            NOTICE => {
                let notice = incoming.unpack_value().ok()?;
                self.notices.push_back((sequence, member, notice));
                let (member, notice) = self.find_notice()?;
                return Some(Heard::Notice(member, notice));
            }
            DATA => self.early.entry(member).or_default().push_back(incoming),
            AGREEMENT => {
                let word = incoming.unpack_value().ok()?;
                let told = self.agreements.hear(sequence, member, word);
                self.tell(sequence, told);
                return None;
            }
            _ => (),
        }
        let [_, own, own_print] = self.head();
        if sequence > own {
            if self.ahead.back() != Some(&(member, sequence, print)) {
                self.ahead.push_back((member, sequence, print));
            }
            return None;
        }
        // Who waits may have waited for what was sent meanwhile.
        let is_known =
            sequence == own && print == own_print || sequence < own && what & 0xff == WAITING;
        (!is_known).then_some(Heard::Differs(member))
    }

    /// What ends the group with this operation, or has ended it with one before.
    fn find_notice(&mut self) -> Option<(Member, Notice)> {
        let [_, own, _] = self.head();
        let now = self.notices.iter().position(|(with, ..)| *with <= own)?;
        let (_, member, notice) = self.notices.remove(now)?;
        Some((member, notice))
    }

    /// A member that is ahead and does, at this point, something else than this one.
    fn find_other(&mut self) -> Option<Member> {
        let [_, own, print] = self.head();
        let now = self
            .ahead
            .iter()
            .find(|(_, sequence, theirs)| *sequence == own && *theirs != print);
        let found = now.map(|(member, ..)| *member);
        self.ahead.retain(|(_, sequence, _)| *sequence > own);
        found
    }

    fn handle_notice(&mut self, member: Member, notice: Notice) -> GroupError {
        let call = self.doing();
        match notice {
            Notice::Differs { call, other } => {
                let first = Doing {
                    member,
                    call: Some(call),
                };
                self.explain(first, Member(other))
            }
            Notice::Lost {
                member,
                rank,
                incarnation,
                has_left,
            } => {
                let life = ProcessId::new(Rank(rank), Incarnation(incarnation));
                let how = if has_left {
                    Departure::Left
                } else {
                    Departure::Died
                };
                let gone = self.process.gone(life).unwrap_or(Gone::new(life, how));
                let member = Member(member);
                self.fail(GroupError::Lost { member, gone, call }, None)
            }
            Notice::Misfit { what } => self.fail(GroupError::Misfit { member, what, call }, None),
            Notice::Revoked => self.fail(GroupError::Revoked { member, call }, None),
            Notice::Panicked => self.fail(GroupError::Panicked { member, call }, None),
        }
    }

    /// A member does something else than this one.
    pub(super) fn differ(&mut self, other: Member) -> GroupError {
        let own = Doing {
            member: self.me,
            call: Some(self.doing()),
        };
        self.tell_doing(other);
        self.explain(own, other)
    }

    /// Tells all what this member does.
    fn tell_doing(&mut self, other: Member) {
        let call = self.doing();
        let other = other.0;
        self.flood(&Notice::Differs { call, other });
    }

    /// One member does this, the other something else: what, it says if it is asked.
    fn explain(&mut self, first: Doing, other: Member) -> GroupError {
        let call = if other == self.me {
            self.tell_doing(first.member);
            Some(self.doing())
        } else {
            self.hear_doing(other)
        };
        let second = Doing {
            member: other,
            call,
        };
        let (first, second) = if first.member < second.member {
            (first, second)
        } else {
            (second, first)
        };
        self.fail(GroupError::Differs { first, second }, None)
    }

    /// What a member says that it does.
    fn hear_doing(&mut self, of: Member) -> Option<String> {
        let deadline = Instant::now() + EXPLANATION;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            match self.hear(left) {
                Ok(Heard::Notice(member, Notice::Differs { call, .. })) if member == of => {
                    return Some(call);
                }
                Ok(_) => (),
                Err(_) => return None,
            }
        }
    }

    /// A member is gone: nobody has to wait for what it had to send.
    pub(super) fn lose(&mut self, member: Member, gone: Gone) -> GroupError {
        if gone.is_failure() {
            return self.tell_lost(member, gone);
        }
        // Who leaves in the middle of something has mostly been told of a loss that is still to be told here.
        let deadline = Instant::now() + LONG;
        loop {
            let died = self.gone.values().find(|gone| gone.is_failure()).copied();
            if let Some(died) = died {
                let of = |member: &Member| self.roster.rank(*member) == died.rank();
                let member = self.roster.members().find(of).unwrap_or(member);
                return self.tell_lost(member, died);
            }
            if let Some((_, member, notice)) = self.notices.pop_front() {
                return self.handle_notice(member, notice);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return self.tell_lost(member, gone);
            }
            match self.hear(left) {
                Ok(Heard::Notice(member, notice)) => return self.handle_notice(member, notice),
                Ok(_) => (),
                Err(error) => return error,
            }
        }
    }

    fn tell_lost(&mut self, member: Member, gone: Gone) -> GroupError {
        let ProcessId { rank, incarnation } = gone.process();
        let notice = Notice::Lost {
            member: member.0,
            rank: rank.0,
            incarnation: incarnation.0,
            has_left: !gone.is_failure(),
        };
        let call = self.doing();
        self.fail(GroupError::Lost { member, gone, call }, Some(&notice))
    }

    pub(super) fn break_off(&mut self, cause: String) -> GroupError {
        let call = self.doing();
        self.fail(GroupError::Broken { cause, call }, Some(&Notice::Panicked))
    }

    fn doing(&self) -> String {
        let doing = |call: &Call| call.to_string();
        self.call
            .as_ref()
            .map_or_else(|| "the next operation".to_owned(), doing)
    }

    /// The group is over for this member, and for those whom it tells.
    fn fail(&mut self, error: GroupError, notice: Option<&Notice>) -> GroupError {
        let first = self.broken.get_or_insert(error).clone();
        if let Some(notice) = notice {
            self.flood(notice);
        }
        first
    }

    /// Tells all others, once. Who is gone need not know.
    fn flood(&mut self, notice: &Notice) {
        if core::mem::replace(&mut self.has_flooded, true) {
            return;
        }
        let [what, sequence, print] = self.head_of(NOTICE);
        // What is under way fails, or else the next one.
        let head = [what, sequence + u64::from(self.call.is_none()), print];
        for member in self.roster.members().filter(|member| *member != self.me) {
            let rank = self.roster.rank(member);
            if self.gone.contains_key(&rank) {
                continue;
            }
            let address = match self.roster.way(member) {
                Way::At(address) => address,
                Way::Of(rank, mailbox) => match self.process.reach_within(rank, EXPLANATION) {
                    Ok(process) => Address { process, mailbox },
                    Err(_) => continue,
                },
            };
            let mut message = Message::new();
            message.pack_safer(&head);
            if message.pack_value(notice).is_ok() {
                let address = MailboxRef::new(self.process.clone(), address);
                let _ = address.post_timeout(&mut message, EXPLANATION);
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.abandon();
    }
}
