//! Webhooks: events to endpoints by HTTP, signed by the rules of
//! [Standard Webhooks](https://www.standardwebhooks.com).
//!
//! Each endpoint is a durable consumer of its own, so that one that is slow or dead delays no
//! other. Endpoints come from the settings and from the API; the store keeps the latter, and each
//! replica looks there every two seconds.

mod delivery;
mod dispatcher;
mod endpoint;
mod endpoints;
mod error;
mod id;
mod secret;
mod secrets;
mod sender;
mod shared;
mod url;

use delivery::{Delivery, now_ms};
use sender::{SendError, Sender};
use shared::{Inner, KIND};

pub use endpoint::Endpoint;
pub use endpoints::{EndpointChange, Webhooks};
pub use error::WebhookError;
pub use id::{WebhookId, WebhookIdError};
pub use secret::{Secret, SecretError};
pub use shared::WebhookSettings;
pub use url::{EndpointUrl, EndpointUrlError};
