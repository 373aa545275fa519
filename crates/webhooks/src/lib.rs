//! Delivers events to webhooks, which are HTTP endpoints. Deliveries are signed as [Standard
//! Webhooks](https://www.standardwebhooks.com) specifies.
//!
//! Each endpoint has its own durable consumer, so a slow or unavailable endpoint does not delay deliveries to other
//! endpoints. Endpoints come from the settings, or are created through the API and stored. Each replica polls the store
//! for endpoints every two seconds.

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
