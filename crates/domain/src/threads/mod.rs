//! Defines threads, and the semantics of operations on threads.

pub(super) mod checkpoint;
pub(super) mod checkpoint_image;
pub(super) mod document;
pub mod effects;
pub(super) mod image;
pub(super) mod key;
pub mod named_secrets;
pub(super) mod operation;
pub(super) mod owner;
pub(super) mod reserved_keys;
pub(super) mod signature;
pub(super) mod thread;
pub(super) mod thread_id;
pub mod turn;
pub(super) mod write;
