//! Stores sessions, runs and state handles: scopes (sets of keys, tasks and a history) that requests create.

pub(super) mod catalog;
pub(super) mod making;
pub(super) mod messages;
pub(super) mod run;
pub(super) mod runs;
pub(super) mod session_metadata;
pub(super) mod sessions;
pub(super) mod state_events;
pub(super) mod state_handles;
pub(super) mod tool_state;
