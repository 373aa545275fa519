//! Probes and webhook endpoints, for operators.

pub(super) mod probes;
pub(super) mod readiness;
mod webhook_body;
pub(super) mod webhook_object;
pub(super) mod webhooks;
