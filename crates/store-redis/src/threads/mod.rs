//! Threads as they lie in Redis, and the calls about them.

pub(super) mod archives;
pub(super) mod arguments;
mod checkpoints;
pub(super) mod ended_turns;
mod erasure;
mod glances;
pub(super) mod images;
mod operations;
mod owned_places;
mod owners;
mod reads;
pub(super) mod replies;
pub(super) mod slices;
mod store;
mod turns;
mod writes;
