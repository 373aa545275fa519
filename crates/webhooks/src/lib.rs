//! Webhooks: events delivered to endpoints over HTTP, signed as [Standard Webhooks](https://www.standardwebhooks.com)
//! specifies.
//!
//! Each endpoint is a separate durable consumer, so a slow or dead endpoint does not delay others. Endpoints come from the
//! settings and from the API. The store keeps those of the API; each replica polls it every two seconds.

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
