//! Probes, webhook endpoints and API keys, for operators.

pub(super) mod api_keys;
pub(super) mod probes;
pub(super) mod readiness;
pub(super) mod webhook_body;
mod webhook_object;
pub(super) mod webhooks;
