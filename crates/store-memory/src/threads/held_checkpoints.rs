use std::collections::BTreeMap;

use threadkeep_domain::heap::{self, Heap};
use threadkeep_domain::{
    CHECKPOINTS_MAX, CHECKPOINTS_MAX_BYTES, CheckpointImage, CheckpointImages, CheckpointName,
    Document, Refusal,
};
use threadkeep_store::{Checkpoint, CheckpointHead, StoreError, Whole};

const CORRUPT: StoreError = StoreError::Corrupt("a checkpoint that is no state");

/// The checkpoints of a live thread, by number. Each state is stored as JSON text, which is one block of memory, so
/// that all checkpoints can be freed quickly under the lock when the thread ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldCheckpoints {
    by_number: BTreeMap<u32, Checkpoint>,
    last: u32,
}

impl HeldCheckpoints {
    pub(crate) fn add(
        &mut self,
        name: Option<CheckpointName>,
        version: u64,
        content: Whole,
        now_ms: u64,
    ) -> Result<CheckpointHead, Refusal> {
        let bytes = self.by_number.values().map(held_bytes).sum::<u64>();
        let head = CheckpointHead {
            number: self.last + 1,
            name,
            version,
            size_bytes: content.state.len() as u64,
            created_ms: now_ms,
        };
        let new = Checkpoint {
            head: head.clone(),
            content,
        };
        if self.by_number.len() >= CHECKPOINTS_MAX as usize
            || bytes + held_bytes(&new) > CHECKPOINTS_MAX_BYTES
        {
            return Err(Refusal::TooManyCheckpoints {
                limit_checkpoints: CHECKPOINTS_MAX,
                limit_bytes: CHECKPOINTS_MAX_BYTES,
            });
        }
        self.last = head.number;
        self.by_number.insert(head.number, new);
        Ok(head)
    }

    /// Builds the checkpoints from an exported image. Returns `None` if the thread never had a checkpoint.
    pub(crate) fn of_image(image: &CheckpointImages) -> Option<Self> {
        let saved = image.saved.iter().map(|saved| {
            let checkpoint = Checkpoint {
                head: CheckpointHead {
                    number: saved.number,
                    name: saved.name.clone(),
                    version: saved.version,
                    size_bytes: saved.state.size_bytes(),
                    created_ms: saved.created_ms,
                },
                content: Whole {
                    state: saved.state.to_json().into(),
                    metadata: saved.metadata.clone(),
                },
            };
            (saved.number, checkpoint)
        });
        (image.last > 0).then(|| Self {
            by_number: saved.collect(),
            last: image.last,
        })
    }

    pub(crate) fn only(mut self, number: u32) -> Self {
        self.by_number.retain(|each, _| *each == number);
        self
    }

    /// Exports the checkpoints. Parses each state, which is slow, so do not call this under a lock.
    pub(crate) fn image(&self) -> Result<CheckpointImages, StoreError> {
        let read = |saved: &Checkpoint| {
            Ok(CheckpointImage {
                number: saved.head.number,
                name: saved.head.name.clone(),
                version: saved.head.version,
                created_ms: saved.head.created_ms,
                metadata: saved.content.metadata.clone(),
                state: read_state(&saved.content.state)?,
            })
        };
        Ok(CheckpointImages {
            last: self.last,
            saved: self
                .by_number
                .values()
                .map(read)
                .collect::<Result<_, StoreError>>()?,
        })
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Checkpoint> {
        self.by_number.get(&number)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Checkpoint> {
        self.by_number.remove(&number)
    }

    pub(crate) fn heads(&self) -> impl DoubleEndedIterator<Item = &CheckpointHead> {
        self.by_number.values().map(|saved| &saved.head)
    }
}

pub(crate) fn read_state(state: &[u8]) -> Result<Document, StoreError> {
    let text = str::from_utf8(state).map_err(|_| CORRUPT)?;
    Document::parse(text).map_err(|_| CORRUPT)
}

fn held_bytes(saved: &Checkpoint) -> u64 {
    let Whole { state, metadata } = &saved.content;
    (state.len() + metadata.as_str().len()) as u64
}

impl Heap for HeldCheckpoints {
    fn heap_bytes(&self) -> u64 {
        let held = |saved: &Checkpoint| {
            let name = saved.head.name.as_ref().map_or(0, Heap::heap_bytes);
            heap::block(saved.content.state.len()) + saved.content.metadata.heap_bytes() + name
        };
        let held = self.by_number.values().map(held).sum::<u64>();
        heap::tree::<(u32, Checkpoint)>(self.by_number.len()) + held
    }
}
