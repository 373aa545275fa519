use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use threadkeep_domain::{KeyedValues, Life, Sent, Snapshot, Stamp};

/// Maximum number of tracked states, including the latest.
const MOST_STATES: usize = 16;
/// Maximum size of the earlier states, in bytes.
const MAX_BYTES_OF_EARLIER: usize = 65_536;
/// Time for which a client may work on a snapshot after it received a newer one. A client that only reads never sends the
/// state back, so older snapshots count only for the usual time of work: otherwise a client that restores an array's earlier
/// value would seem to continue from there.
const LONGEST_WORK: Duration = Duration::from_secs(30);
/// Time for which a client may work on an empty state that it received because a read failed. The state that it sends back
/// resembles no other, so this is longer.
const LONGEST_WORK_ON_NOTHING: Duration = Duration::from_secs(300);
/// Overhead of a state, in bytes.
const BYTES_OF_A_STATE: usize = 256;

#[derive(Debug, Clone)]
pub(super) enum ClientView {
    /// No known snapshot: the client has read nothing, its read failed, or the snapshot was evicted.
    Nothing,
    /// The thread did not exist when the client read it.
    Absent,
    /// The snapshot that the client received, and its version.
    Snapshot(Stamp, Arc<Snapshot>),
    /// The client had a snapshot of this life and has destroyed it.
    Destroyed(Life),
}

/// Identifies an observation.
pub(super) type Number = u64;

/// The states of a thread that a client received, latest first. A client may work on several at once, and does not say which
/// of them a save is based on.
#[derive(Debug)]
pub(super) struct Entry {
    states: Vec<State>,
}

#[derive(Debug, Clone)]
struct State {
    known: ClientView,
    number: Number,
    at: Instant,
    /// The state expires then, unless the client is known to have it.
    until: Option<Instant>,
    /// Number of times that the state was sent to the client and not sent back.
    open: usize,
}

impl ClientView {
    /// Returns the base of a save.
    fn given(&self) -> Option<Arc<Snapshot>> {
        match self {
            Self::Snapshot(_, given) => Some(Arc::clone(given)),
            Self::Absent => Some(Arc::default()),
            Self::Nothing | Self::Destroyed(_) => None,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Snapshot(one, _), Self::Snapshot(other, _)) => one == other,
            (Self::Absent, Self::Absent) => true,
            _ => false,
        }
    }
}

impl State {
    fn bytes(&self) -> usize {
        BYTES_OF_A_STATE
            + match &self.known {
                ClientView::Snapshot(_, given) => given.bytes(),
                ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => 0,
            }
    }

    fn known(&self, at: Instant) -> ClientView {
        match self.until {
            Some(until) if at > until => ClientView::Nothing,
            _ => self.known.clone(),
        }
    }

    fn may_be_sent_back(&self, now: Instant) -> bool {
        let longest = match self.known {
            ClientView::Nothing => LONGEST_WORK_ON_NOTHING,
            ClientView::Absent | ClientView::Snapshot(..) => LONGEST_WORK,
            // a client that has read since continues with the state that it read
            ClientView::Destroyed(_) => return false,
        };
        self.open > 0 && now <= self.at + longest
    }
}

impl Entry {
    /// Creates an entry with a single state.
    pub(super) fn new(number: Number, known: ClientView, until: Option<Instant>) -> Self {
        let state = State {
            known,
            number,
            at: Instant::now(),
            until,
            open: 1,
        };
        Self {
            states: vec![state],
        }
    }

    /// Appends a newer snapshot, and drops those that can no longer be saved back.
    pub(super) fn followed_by(mut self, mut later: Self) -> Self {
        let now = Instant::now();
        self.states.retain(|state| state.may_be_sent_back(now));
        later.states.append(&mut self.states);
        later.states.truncate(MOST_STATES);
        while later.states[1..].iter().map(State::bytes).sum::<usize>() > MAX_BYTES_OF_EARLIER {
            later.states.pop();
        }
        later
    }

    pub(super) fn number(&self) -> Number {
        self.states[0].number
    }

    /// Returns the latest view of a client that sends a request at `at`.
    pub(super) fn last(&self, at: Instant) -> ClientView {
        self.states[0].known(at)
    }

    /// Finds the snapshot that a save sent at `at` is based on. Returns its number and the client's view.
    pub(super) fn basis(&self, sent: &KeyedValues, at: Instant) -> (Number, ClientView) {
        let mut known: Vec<_> = self.states.iter().map(|state| state.known(at)).collect();
        let given: Vec<_> = known.iter().map(ClientView::given).collect();
        let given: Vec<_> = given.iter().map(Option::as_deref).collect();
        let index = match given.len() {
            1 => 0,
            _ => Sent::new(sent).basis(&given),
        };
        (self.states[index].number, known.swap_remove(index))
    }

    /// Records that the client sent back a state based on `number`.
    pub(super) fn sent_back(&mut self, number: Number) {
        if let Some(index) = self.states.iter().position(|state| state.number == number) {
            self.states[index].open = self.states[index].open.saturating_sub(1);
            if index > 0 && self.states[index].open == 0 {
                self.states.remove(index);
            }
        }
    }

    /// Records that the client has state `number`, if it was received in time. Merges an equal state that is already
    /// confirmed.
    pub(super) fn received(&mut self, number: Number, at: Instant) {
        let index = self.states.iter().position(|state| state.number == number);
        let in_time = |index: &usize| self.states[*index].until.is_some_and(|until| at <= until);
        let Some(index) = index.filter(in_time) else {
            return;
        };
        self.states[index].until = None;
        let known = self.states[index].known.clone();
        let is_same = |state: &State| state.until.is_none() && state.known.is_same(&known);
        let same = self.states[index + 1..].iter().position(is_same);
        if let Some(same) = same {
            let same = self.states.remove(index + 1 + same);
            self.states[index].open += same.open;
        }
    }

    /// Approximate size in memory.
    pub(super) fn bytes(&self) -> usize {
        self.states.iter().map(State::bytes).sum()
    }
}
