use std::time::{Duration, Instant};

use bytes::Bytes;

use super::content_id::ContentId;
use threadkeep_domain::heap::{self, Heap};
use threadkeep_domain::{Document, Json, Key, Operation, Owner, Slice, ThreadPolicy, Write};
use threadkeep_store::parts::{json, part};
use threadkeep_store::{Part, StateBody, Whole};

/// Maximum number of operations that a copy collects between reads. Because of this limit, the copy of a thread that is
/// written but never read is dropped.
const PENDING_MAX: usize = 256;
/// Maximum number of bytes by which the pending operations may exceed the size of the state.
const PENDING_BYTES_MAX: u64 = 4_096;
/// Maximum size of a state that is parsed to read single keys. Larger states are read faster from Redis.
const PARSED_BYTES_MAX: u64 = 65_536;
/// Minimum size of a state to compress. A smaller state fits into one or two network packets without compression.
const COMPRESSED_BYTES_MIN: usize = 1_024;
/// Minimum time between two reads that move a thread's expiry, while the expiry is at least `REMAINING_MIN` away.
const RENEWAL_INTERVAL: Duration = Duration::from_secs(1);
const REMAINING_MIN: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct ThreadCopy {
    content_id: ContentId,
    /// The rendered state; `None` after further operations.
    body: Option<Bytes>,
    compressed: Compressed,
    document: Option<Document>,
    /// Operations that have not been applied to `body` and `document` yet, in order.
    pending: Vec<Operation>,
    pending_bytes: u64,
    metadata: Json,
    owner: Option<Owner>,
    moved: Option<Moved>,
}

#[derive(Debug)]
enum Compressed {
    Unknown,
    /// Compression saves too little.
    Useless,
    Gzip(Bytes),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Parsed,
    About,
}

/// Records when a thread's expiry was last moved to at least [`REMAINING_MIN`] later.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moved {
    /// Taken before the call that moved the expiry.
    pub(crate) at: Instant,
    pub(crate) ahead_ms: u64,
}

impl Moved {
    /// Returns `None` if the thread expires in less than [`REMAINING_MIN`].
    pub(crate) fn lasting(self, left_ms: u64) -> Option<Self> {
        (Duration::from_millis(left_ms) >= REMAINING_MIN).then_some(self)
    }

    fn is_recent(&self, ahead_ms: u64) -> bool {
        self.ahead_ms == ahead_ms && self.at.elapsed() < RENEWAL_INTERVAL
    }
}

impl ThreadCopy {
    pub(crate) fn new(
        content_id: ContentId,
        content: Whole,
        owner: Option<Owner>,
        moved: Option<Moved>,
    ) -> Self {
        Self {
            content_id,
            body: Some(content.state),
            compressed: Compressed::Unknown,
            document: None,
            pending: Vec::new(),
            pending_bytes: 0,
            metadata: content.metadata,
            owner,
            moved,
        }
    }

    pub(super) fn empty(content_id: ContentId) -> Self {
        let content = Whole {
            state: Bytes::from_static(b"{}"),
            metadata: Json::empty_object(),
        };
        Self::new(content_id, content, None, None)
    }

    pub(super) fn content_id(&self) -> &ContentId {
        &self.content_id
    }

    pub(super) fn is_moved(&self, ahead_ms: u64) -> bool {
        self.moved.is_some_and(|moved| moved.is_recent(ahead_ms))
    }

    pub(super) fn note_moved(&mut self, moved: Moved) {
        self.moved = Some(moved);
    }

    /// Returns whether the copy has the state in this form, so that a read takes no longer than a lookup.
    pub(super) fn has(&self, form: Form) -> bool {
        let is_ready = match form {
            Form::Text => self.body.is_some(),
            Form::Parsed => self.document.is_some(),
            Form::About => return true,
        };
        is_ready && self.pending.is_empty()
    }

    /// Returns whether reading `form` from this copy is faster than reading it from Redis.
    pub(super) fn is_for(&self, form: Form) -> bool {
        let size_bytes = self.content_id.meta.size_bytes;
        form != Form::Parsed || self.document.is_some() || size_bytes <= PARSED_BYTES_MAX
    }

    /// Applies a write that resulted in `content_id`. Returns false if the copy must be dropped because the owner has
    /// changed, or because applying the pending writes would cost more than reading the thread again.
    pub(super) fn follow(&mut self, write: &Write<'_>, content_id: ContentId) -> bool {
        let has_new_owner = content_id.meta.owner != self.content_id.meta.owner;
        if has_new_owner || self.pending.len() + write.operations.len() > PENDING_MAX {
            return false;
        }
        let operations = write.operations.iter();
        let operations = operations.filter(|operation| !matches!(operation, Operation::Append(_)));
        for operation in operations {
            self.pending_bytes += bytes_of(operation);
            self.pending.push(operation.clone());
        }
        if let Some(change) = write.metadata {
            self.metadata = change.new.clone();
        }
        if self.pending_bytes > content_id.meta.size_bytes + PENDING_BYTES_MAX {
            return false;
        }
        if write.ttl.is_some() {
            self.moved = None;
        }
        self.content_id = content_id;
        true
    }

    /// Returns the state as compact JSON, or `None` if the copy is unusable.
    pub(crate) fn state(&mut self) -> Option<Bytes> {
        if !self.has(Form::Text) {
            self.body = Some(self.document()?.to_json().into());
        }
        self.body.clone()
    }

    pub(crate) fn state_body(&mut self) -> Option<StateBody> {
        let text = self.state()?;
        Some(match &self.compressed {
            Compressed::Gzip(gzip) => StateBody::Gzip(gzip.clone()),
            Compressed::Unknown if text.len() >= COMPRESSED_BYTES_MIN => {
                StateBody::Compressible(text)
            }
            Compressed::Unknown | Compressed::Useless => StateBody::Text(text),
        })
    }

    /// Returns whether the rendered state and `text` share the same memory.
    pub(super) fn is_rendered_as(&self, text: &Bytes) -> bool {
        let body = self.body.as_ref().filter(|_| self.has(Form::Text));
        body.is_some_and(|body| std::ptr::eq(&body[..], &text[..]))
    }

    /// Stores the compressed state if it is at least a tenth smaller. Otherwise, records that compression is useless.
    pub(super) fn keep_compressed(&mut self, gzip: Option<Bytes>) {
        let text_bytes = self.body.as_ref().map_or(0, Bytes::len);
        let shorter = gzip.filter(|gzip| gzip.len() <= text_bytes / 10 * 9);
        self.compressed = shorter.map_or(Compressed::Useless, Compressed::Gzip);
    }

    pub(crate) fn whole(&mut self) -> Option<Whole> {
        Some(Whole {
            state: self.state()?,
            metadata: self.metadata.clone(),
        })
    }

    pub(crate) fn values(&mut self, keys: &[Key]) -> Option<Vec<Option<Bytes>>> {
        let document = self.document()?;
        Some(keys.iter().map(|key| document.get(key).map(json)).collect())
    }

    pub(crate) fn has_key(&mut self, key: &Key) -> Option<bool> {
        Some(self.document()?.get(key).is_some())
    }

    pub(crate) fn part(&mut self, key: &Key, slice: Slice) -> Option<Option<Part>> {
        let value = self.document()?.get(key);
        Some(value.map(|value| part(value, Some(slice))))
    }

    /// Returns the keys in byte order.
    pub(crate) fn keys(&mut self) -> Option<Vec<Key>> {
        Some(
            self.document()?
                .iter()
                .map(|(key, _)| key.clone())
                .collect(),
        )
    }

    pub(crate) fn about(&self) -> (Json, Option<Owner>) {
        (self.metadata.clone(), self.owner.clone())
    }

    /// Returns the state with all pending operations applied.
    fn document(&mut self) -> Option<&Document> {
        let mut document = match (self.document.take(), &self.body) {
            (Some(document), _) => document,
            (None, Some(body)) => Document::parse(std::str::from_utf8(body).ok()?).ok()?,
            (None, None) => return None,
        };
        if !self.pending.is_empty() {
            (self.body, self.compressed) = (None, Compressed::Unknown);
            self.pending_bytes = 0;
            let pending = std::mem::take(&mut self.pending);
            // no limits apply, because Redis checked the limits when it accepted these operations
            let limits = ThreadPolicy {
                max_bytes: u64::MAX,
                max_keys: u32::MAX,
                ..ThreadPolicy::THREAD
            };
            document.apply(&pending, &limits).ok()?;
            let size = (document.size_bytes(), document.len());
            if size != (self.content_id.meta.size_bytes, self.content_id.meta.keys) {
                return None;
            }
        }
        Some(self.document.insert(document))
    }
}

fn bytes_of(operation: &Operation) -> u64 {
    let value = match operation {
        Operation::Set { value, .. } => value.heap_bytes(),
        Operation::Push { value, .. } => value.heap_bytes(),
        _ => 0,
    };
    operation.key().map_or(0, Heap::heap_bytes) + value
}

impl Heap for ThreadCopy {
    fn heap_bytes(&self) -> u64 {
        let block = |bytes: &Bytes| heap::block(bytes.len());
        let body = self.body.as_ref().map_or(0, block);
        let compressed = match &self.compressed {
            Compressed::Gzip(gzip) => block(gzip),
            Compressed::Unknown | Compressed::Useless => 0,
        };
        let document = self.document.as_ref().map_or(0, Heap::heap_bytes);
        let owner = self
            .owner
            .as_ref()
            .map_or(0, |owner| heap::block(owner.as_str().len()));
        body + compressed
            + document
            + self.metadata.heap_bytes()
            + owner
            + heap::array::<Operation>(self.pending.capacity())
            + self.pending_bytes
    }
}
