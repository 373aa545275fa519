use super::records::Remembered;
use threadkeep_domain::heap::Heap;
use threadkeep_domain::scope::{Appended, Compacted, KvAnswer, ScopeWritten, StoredItem};
use threadkeep_domain::{Answer, Thread, TurnGranted, Written, heap};
use threadkeep_store as store;
use threadkeep_store::{CheckpointDeleted, CheckpointSaved, Destroyed, Rotated};

#[derive(Debug)]
pub(super) enum Answered {
    Written(Packed),
    Destroyed(Destroyed),
    Granted(TurnGranted),
    Saved(CheckpointSaved),
    Deleted(CheckpointDeleted),
    Rotated(Box<Rotated>),
}

/// The result of a write. If no operation has a result of its own, only the number of operations is stored.
#[derive(Debug)]
pub(super) struct Packed {
    written: Written,
    done: usize,
}

impl Packed {
    pub(crate) fn new(mut written: Written) -> Self {
        let mut done = 0;
        if written.answers.iter().all(|answer| *answer == Answer::Done) {
            done = written.answers.len();
            written.answers = Vec::new();
        }
        Self { written, done }
    }

    fn replay(&self) -> Written {
        let mut written = self.written.clone();
        written.replayed = true;
        written
            .answers
            .resize(written.answers.len() + self.done, Answer::Done);
        written
    }
}

/// Defines how a retry reads the remembered result. Each method returns `None` if the first request was of a different
/// kind.
macro_rules! replays {
    ($answered:ident { $($name:ident: $variant:ident($first:ident) => $again:expr, $answer:ty;)+ }) => {
        impl $answered {
            $(pub(crate) fn $name(&self) -> Option<$answer> {
                match self {
                    Self::$variant($first) => Some($again),
                    _ => None,
                }
            })+
        }
    };
}

replays!(Answered {
    written: Written(first) => first.replay(), Written;
    destroyed: Destroyed(first) => Destroyed { replayed: true, ..*first }, Destroyed;
    granted: Granted(first) => TurnGranted { replayed: true, ..*first }, TurnGranted;
    saved: Saved(first) => CheckpointSaved { replayed: true, ..first.clone() }, CheckpointSaved;
    deleted: Deleted(first) => CheckpointDeleted { replayed: true, ..*first }, CheckpointDeleted;
    rotated: Rotated(first) => Rotated { replayed: true, ..first.as_ref().clone() }, Rotated;
});

replays!(ScopeAnswered {
    written: Written(first) => ScopeWritten { replayed: true, ..first.clone() }, ScopeWritten;
    compacted: Compacted(first) => Compacted { replayed: true, ..*first }, Compacted;
    ended: Ended(first) => store::Answered::replay(*first), store::Answered<bool>;
});

fn popped_bytes(answer: &Answer) -> usize {
    match answer {
        Answer::Popped(elements) => elements.as_str().len(),
        _ => 0,
    }
}

fn metadata_bytes(thread: Option<&Thread>) -> u64 {
    thread.map_or(0, |thread| thread.metadata.as_str().len() as u64)
}

/// Counts the bytes of metadata and of removed elements, and 8 bytes per operation result.
impl Remembered for Answered {
    fn cost_bytes(&self) -> u64 {
        let written = match self {
            Self::Written(Packed { written, .. }) => written,
            Self::Rotated(rotated) => return metadata_bytes(rotated.thread.as_ref()),
            _ => return 0,
        };
        let results = written
            .answers
            .iter()
            .filter(|answer| **answer != Answer::Done);
        let popped: usize = written.answers.iter().map(popped_bytes).sum();
        (8 * results.count() + popped) as u64 + metadata_bytes(written.thread.as_ref())
    }
}

impl Heap for Answered {
    fn heap_bytes(&self) -> u64 {
        let written = match self {
            Self::Written(Packed { written, .. }) => written,
            Self::Saved(saved) => return saved.head.name.as_ref().map_or(0, Heap::heap_bytes),
            Self::Rotated(rotated) => {
                let thread = rotated.thread.as_ref();
                let metadata = thread.map_or(0, |thread| thread.metadata.heap_bytes());
                return heap::array::<Rotated>(1) + metadata;
            }
            _ => return 0,
        };
        let thread = written.thread.as_ref();
        let popped = written.answers.iter().map(|answer| match answer {
            Answer::Popped(elements) => elements.heap_bytes(),
            Answer::Appended(id, _) => id.heap_bytes(),
            _ => 0,
        });
        heap::array::<Answer>(written.answers.capacity())
            + popped.sum::<u64>()
            + thread.map_or(0, |thread| thread.metadata.heap_bytes())
    }
}

#[derive(Debug)]
pub(crate) enum ScopeAnswered {
    Written(ScopeWritten),
    Compacted(Compacted),
    Ended(bool),
}

impl Heap for ScopeAnswered {
    fn heap_bytes(&self) -> u64 {
        match self {
            Self::Written(written) => {
                heap::array::<KvAnswer>(written.answers.capacity())
                    + heap::array::<Appended>(written.appended.capacity())
                    + heap::array::<StoredItem>(written.taken.capacity())
                    + written.taken.iter().map(Heap::heap_bytes).sum::<u64>()
            }
            Self::Compacted(_) | Self::Ended(_) => 0,
        }
    }
}

/// Counts 8 bytes per operation result and appended item, and the size of each item taken from the history's end.
impl Remembered for ScopeAnswered {
    fn cost_bytes(&self) -> u64 {
        match self {
            Self::Written(written) => {
                let taken = written.taken.iter().map(StoredItem::cost_bytes);
                8 * (written.answers.len() + written.appended.len()) as u64 + taken.sum::<u64>()
            }
            Self::Compacted(_) | Self::Ended(_) => 8,
        }
    }
}
