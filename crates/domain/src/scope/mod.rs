//! Defines scopes and the semantics of writes to them. A scope holds a small amount of state for a model, a tool or an
//! application.

mod compaction;
mod document;
mod error;
mod history;
mod id;
mod image;
mod key;
mod name;
mod operation;
mod policy;
mod task;
mod write;

pub use compaction::{
    Compacted, Compaction, DEFAULT_ORIGINALS_TTL, LATER_ITEMS_MAX, SEGMENTS_MAX, Segment,
};
pub use document::{Applied, ScopeDocument};
pub use error::{ScopeError, TaskError};
pub use history::{
    Appended, History, HistoryItem, HistoryLimit, HistorySummary, ItemId, Removal, StoredItem,
};
pub use id::{Scope, ScopeId};
pub use image::{KeyImage, ScopeImage};
pub use key::{KeyRule, ScopeKey, ScopeValue, VALUE_MAX_BYTES};
pub use name::ScopeName;
pub use operation::{KvAnswer, KvOperation};
pub use policy::{
    KV_MAX_BYTES, KV_MAX_KEYS, Lifetime, ScopePolicies, ScopePolicy, TASKS_MAX, TASKS_MAX_BYTES,
};
pub use task::{NewTask, Task, TaskChange, TaskList, TaskRef, TaskStatus};
pub use write::{RecordChange, ScopeWrite, ScopeWritten, TasksChange};
