//! Threads in this process' memory.

pub(super) mod answered;
mod archives;
pub(super) mod checkpoints;
pub(super) mod entry;
mod erasure;
pub(super) mod finals;
mod images;
pub(super) mod listed;
pub(super) mod living;
pub(super) mod moves;
mod owners;
pub(super) mod places;
pub(super) mod records;
pub(super) mod saved;
pub(super) mod turns;
