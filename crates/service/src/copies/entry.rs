//! A client's snapshots of one thread.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use threadkeep_domain::{KeyedValues, Life, Sent, Snapshot, Stamp};

/// States that are known at once: the last one, and earlier ones.
const MOST_STATES: usize = 16;
/// Bytes that the earlier ones may take up.
const MAX_BYTES_OF_EARLIER: usize = 65_536;
/// How long a client may work on a snapshot after it received a newer one. A client that only looks at a state never
/// sends it back, so older snapshots count only for the usual time of work: a client that restores an array's earlier
/// value would seem to continue from there.
const LONGEST_WORK: Duration = Duration::from_secs(30);
/// How long a client may work on nothing, which it received instead of a state. The state that it sends back resembles
/// no other, so this counts for longer.
const LONGEST_WORK_ON_NOTHING: Duration = Duration::from_secs(300);
/// Bytes that a snapshot takes up in addition to its content.
const BYTES_OF_A_STATE: usize = 256;

/// A client's view of a thread.
#[derive(Debug, Clone)]
pub(super) enum ClientView {
    /// Nothing, or it was forgotten.
    Nothing,
    /// There was none when it looked.
    Absent,
    /// The snapshot that it received, and its version.
    Snapshot(Stamp, Arc<Snapshot>),
    /// It was given that life and has destroyed the thread itself.
    Destroyed(Life),
}

/// Something that was noted, by which it is found again.
pub(super) type Number = u64;

/// The states of a thread that a client was given, the last one first. It may work on several at
/// once, and does not say of which it sends back what.
#[derive(Debug)]
pub(super) struct Entry {
    states: Vec<State>,
}

/// A state that a client was given.
#[derive(Debug, Clone)]
struct State {
    known: ClientView,
    number: Number,
    at: Instant,
    /// From when on it does not count, unless the client is known to have it.
    until: Option<Instant>,
    /// How often it was given without being sent back.
    open: usize,
}

impl ClientView {
    /// The base of a save.
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

    /// The view of a client that sends a request at that moment.
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
            // a client that has read since continues with that state
            ClientView::Destroyed(_) => return false,
        };
        self.open > 0 && now <= self.at + longest
    }
}

impl Entry {
    /// This is what is known, whatever was noted before.
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

    /// Appends a later snapshot. Drops those that nobody works on any longer.
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

    /// By which the last one is found.
    pub(super) fn number(&self) -> Number {
        self.states[0].number
    }

    /// The latest view of a client that sends a request at that moment.
    pub(super) fn last(&self, at: Instant) -> ClientView {
        self.states[0].known(at)
    }

    /// The snapshot that a client's save at that moment is based on, and the rule that found it.
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

    /// Notes that something was sent back that was made of that.
    pub(super) fn sent_back(&mut self, number: Number) {
        if let Some(index) = self.states.iter().position(|state| state.number == number) {
            self.states[index].open = self.states[index].open.saturating_sub(1);
            if index > 0 && self.states[index].open == 0 {
                self.states.remove(index);
            }
        }
    }

    /// Notes that the client has what it was given, if it was in time. That it has the same more than
    /// once is known once.
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

    /// About what it takes up in memory.
    pub(super) fn bytes(&self) -> usize {
        self.states.iter().map(State::bytes).sum()
    }
}
