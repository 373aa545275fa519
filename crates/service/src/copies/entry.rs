use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use threadkeep_domain::{KeyedValues, Life, Sent, Snapshot, Stamp};

/// Maximum number of states to track per thread, including the latest.
const STATES_MAX: usize = 16;
/// Maximum total size of all tracked states except the latest, in bytes.
const EARLIER_STATES_MAX_BYTES: usize = 65_536;
/// Maximum age of a snapshot on which a save can be based, even if the client has since received a newer snapshot.
///
/// The limit is short because clients that only read never send their snapshots back, so old snapshots accumulate. If a
/// client then restores an earlier value of an array, the save would seem to be based on such an old snapshot.
const SNAPSHOT_MAX_AGE: Duration = Duration::from_secs(30);
/// Maximum time for which a client may work on an empty state after a failed read. Longer than [`SNAPSHOT_MAX_AGE`],
/// because a save based on an empty state cannot be mistaken for one based on a snapshot.
const EMPTY_STATE_MAX_AGE: Duration = Duration::from_secs(300);
/// Estimated overhead of a tracked state in memory, in bytes.
const STATE_OVERHEAD_BYTES: usize = 256;

#[derive(Debug, Clone)]
pub(super) enum ClientView {
    /// No snapshot is available: the client has read nothing, its read failed, or the snapshot was evicted.
    Nothing,
    /// The thread did not exist when the client read it.
    Absent,
    /// Version and content of the snapshot that the client received.
    Snapshot(Stamp, Arc<Snapshot>),
    /// The client has destroyed the thread. `Life` distinguishes that thread from later threads with the same id.
    Destroyed(Life),
}

/// Identifies a state that was sent to a client. Later states have higher numbers.
pub(super) type Number = u64;

/// The states of a thread that a client received, latest first. A client may work on several states at once, and a save
/// does not identify the state on which it is based.
#[derive(Debug)]
pub(super) struct Entry {
    states: Vec<State>,
}

#[derive(Debug, Clone)]
struct State {
    view: ClientView,
    number: Number,
    at: Instant,
    /// When the state expires unless the client confirms it; `None` if the state does not expire.
    until: Option<Instant>,
    /// Number of copies of the state that were sent to the client and have not been sent back yet.
    open: usize,
}

impl ClientView {
    /// Returns the snapshot to compare a save with.
    fn snapshot(&self) -> Option<Arc<Snapshot>> {
        match self {
            Self::Snapshot(_, snapshot) => Some(Arc::clone(snapshot)),
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
        STATE_OVERHEAD_BYTES
            + match &self.view {
                ClientView::Snapshot(_, snapshot) => snapshot.bytes(),
                ClientView::Nothing | ClientView::Absent | ClientView::Destroyed(_) => 0,
            }
    }

    fn view_at(&self, at: Instant) -> ClientView {
        match self.until {
            Some(until) if at > until => ClientView::Nothing,
            _ => self.view.clone(),
        }
    }

    fn may_be_sent_back(&self, now: Instant) -> bool {
        let longest = match self.view {
            ClientView::Nothing => EMPTY_STATE_MAX_AGE,
            ClientView::Absent | ClientView::Snapshot(..) => SNAPSHOT_MAX_AGE,
            // after a client has destroyed a thread, its saves are based only on states that it reads later
            ClientView::Destroyed(_) => return false,
        };
        self.open > 0 && now <= self.at + longest
    }
}

impl Entry {
    pub(super) fn new(number: Number, view: ClientView, until: Option<Instant>) -> Self {
        let state = State {
            view,
            number,
            at: Instant::now(),
            until,
            open: 1,
        };
        Self {
            states: vec![state],
        }
    }

    /// Puts the states of `later` first. Drops earlier states that the client can no longer send back.
    pub(super) fn followed_by(mut self, mut later: Self) -> Self {
        let now = Instant::now();
        self.states.retain(|state| state.may_be_sent_back(now));
        later.states.append(&mut self.states);
        later.states.truncate(STATES_MAX);
        while later.states[1..].iter().map(State::bytes).sum::<usize>() > EARLIER_STATES_MAX_BYTES {
            later.states.pop();
        }
        later
    }

    pub(super) fn number(&self) -> Number {
        self.states[0].number
    }

    /// Returns the client's latest state, or [`ClientView::Nothing`] if that state had expired by `at`.
    pub(super) fn last(&self, at: Instant) -> ClientView {
        self.states[0].view_at(at)
    }

    /// Finds the state on which a save sent at `at` is based. Returns the state's number and content.
    pub(super) fn basis(&self, sent: &KeyedValues, at: Instant) -> (Number, ClientView) {
        let mut views: Vec<_> = self.states.iter().map(|state| state.view_at(at)).collect();
        let snapshots: Vec<_> = views.iter().map(ClientView::snapshot).collect();
        let snapshots: Vec<_> = snapshots.iter().map(Option::as_deref).collect();
        let index = match snapshots.len() {
            1 => 0,
            _ => Sent::new(sent).basis(&snapshots),
        };
        (self.states[index].number, views.swap_remove(index))
    }

    /// Records that the client sent back a state based on state `number`.
    pub(super) fn sent_back(&mut self, number: Number) {
        if let Some(index) = self.states.iter().position(|state| state.number == number) {
            self.states[index].open = self.states[index].open.saturating_sub(1);
            if index > 0 && self.states[index].open == 0 {
                self.states.remove(index);
            }
        }
    }

    /// Records that the client has received state `number`, unless the state had expired by `at`. Merges the state with
    /// an earlier confirmed state of the same version.
    pub(super) fn received(&mut self, number: Number, at: Instant) {
        let index = self.states.iter().position(|state| state.number == number);
        let in_time = |index: &usize| self.states[*index].until.is_some_and(|until| at <= until);
        let Some(index) = index.filter(in_time) else {
            return;
        };
        self.states[index].until = None;
        let view = self.states[index].view.clone();
        let is_same = |state: &State| state.until.is_none() && state.view.is_same(&view);
        let same = self.states[index + 1..].iter().position(is_same);
        if let Some(same) = same {
            let same = self.states.remove(index + 1 + same);
            self.states[index].open += same.open;
        }
    }

    /// Approximate size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.states.iter().map(State::bytes).sum()
    }
}
