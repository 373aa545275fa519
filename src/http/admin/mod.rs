//! Probes and webhook endpoints, for operators.

pub(super) mod probes;
pub(super) mod readiness;
pub(super) mod webhook_body;
mod webhook_object;
pub(super) mod webhooks;
