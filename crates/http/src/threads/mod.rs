//! Threads: their lifecycle, state, history and archives.

mod archive_object;
mod archive_query;
pub(super) mod archives;
mod body;
mod checkpoint_object;
pub(super) mod checkpoints;
pub(super) mod compaction;
mod document;
pub(super) mod exports;
mod fork_body;
pub(super) mod history;
mod history_body;
mod history_page;
mod history_query;
pub(super) mod history_removal;
mod image_query;
pub(super) mod images;
pub(super) mod lifecycle;
mod list_query;
pub(super) mod lists;
mod object;
mod operations;
pub(super) mod owners;
pub(super) mod rotation;
pub(super) mod state;
pub(super) mod turns;
pub(super) mod writes;
