//! Threads in this process' memory.

pub(super) mod answered;
mod archives;
pub(super) mod checkpoints;
pub(super) mod ended_threads;
pub(super) mod entry;
mod erasure;
pub(super) mod former_ids;
pub(super) mod held_checkpoints;
mod images;
pub(super) mod live_thread;
pub(super) mod owner_reservations;
mod owners;
pub(super) mod records;
pub(super) mod thread_lists;
pub(super) mod turns;
