use serde::Deserialize;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use super::webhook_error::url_error;
use crate::answer::ApiResult;
use crate::request::{
    IN_BODY, List, RawJson, body_object, invalid, optional_body_object, read, read_value,
};
use threadkeep_domain::{EventId, EventType, EventTypes};
use threadkeep_webhooks::{EndpointChange, EndpointUrl, Secret};

type TypeNames = List<String, 1, { EventType::ALL.len() }>;

/// The webhook endpoint to create.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewWebhookBody<'a> {
    /// An `http` or `https` URL without a user name and password. Private addresses require the setting
    /// `webhook_allow_private`.
    #[schema(max_length = 2048)]
    url: String,
    #[schema(value_type = Vec<EventTypeName>, min_items = 1, max_items = 9)]
    events: TypeNames,
    /// The signing secret: `whsec_` followed by 24 to 64 bytes in base64. By default, the server generates a secret.
    #[schema(value_type = Option<String>, pattern = "^whsec_[A-Za-z0-9+/]+={0,2}$")]
    #[serde(borrow)]
    secret: Option<RawJson<'a>>,
}

/// The changes to a webhook endpoint.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WebhookPatchBody<'a> {
    #[schema(nullable = false, max_length = 2048)]
    url: Option<String>,
    #[schema(nullable = false, value_type = Option<Vec<EventTypeName>>, min_items = 1, max_items = 9)]
    events: Option<TypeNames>,
    /// The new signing secret, or null to let the server generate a secret. Deliveries are also signed with the old
    /// secret for another 24 hours.
    #[schema(value_type = Option<String>, pattern = "^whsec_[A-Za-z0-9+/]+={0,2}$")]
    #[serde(borrow)]
    secret: Option<RawJson<'a>>,
}

/// The failed events to deliver again.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplayBody {
    /// The ids of the events to replay. By default, all failed events are replayed.
    #[schema(nullable = false, value_type = Option<Vec<String>>, min_items = 1, max_items = 100)]
    events: Option<List<String, 1, 100>>,
}

pub(super) struct NewEndpoint {
    pub(crate) url: EndpointUrl,
    pub(crate) types: EventTypes,
    pub(crate) secret: Option<Secret>,
}

pub(super) fn read_new_endpoint(body: &str) -> ApiResult<NewEndpoint> {
    let body = body_object(body, IN_BODY)?;
    let body: NewWebhookBody<'_> = read(&body)?;
    Ok(NewEndpoint {
        url: body.url.parse().map_err(url_error)?,
        types: read_types(body.events)?,
        secret: body.secret.map(read_secret).transpose()?,
    })
}

pub(super) fn read_endpoint_change(body: &str) -> ApiResult<EndpointChange> {
    let body = body_object(body, IN_BODY)?;
    let body: WebhookPatchBody<'_> = read(&body)?;
    Ok(EndpointChange {
        url: body
            .url
            .map(|url| url.parse().map_err(url_error))
            .transpose()?,
        types: body.events.map(read_types).transpose()?,
        secret: body.secret.map(read_secret).transpose()?,
    })
}

/// Parses the body of a replay. `None` means all failed events.
pub(super) fn read_replay(body: &str) -> ApiResult<Option<Vec<EventId>>> {
    let body = optional_body_object(body, IN_BODY)?;
    let ReplayBody { events } = read(&body)?;
    let parse = |text: String| {
        let id = text.parse();
        id.map_err(|error| invalid(format!("`events`: {error}")))
    };
    let parse_all = |List(events): List<_, 1, 100>| events.into_iter().map(parse).collect();
    events.map(parse_all).transpose()
}

fn read_secret(RawJson(json): RawJson<'_>) -> ApiResult<Secret> {
    if json == "null" {
        return Ok(Secret::random());
    }
    let text = read_value::<String>(json).map_err(|fault| fault.in_member("secret"))?;
    let secret = text.parse();
    secret.map_err(|error| invalid(format!("`secret`: {error}")))
}

fn read_types(List(names): TypeNames) -> ApiResult<EventTypes> {
    let types = names.iter().map(|name| name.parse());
    let types: Vec<EventType> = types.collect::<Result<_, _>>()?;
    let set: EventTypes = types.iter().copied().collect();
    if set.iter().count() < types.len() {
        return Err(invalid("`events` must name each event type once"));
    }
    Ok(set)
}

pub(crate) struct EventTypeName;

impl ToSchema for EventTypeName {}

impl PartialSchema for EventTypeName {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("The type of an event."))
            .enum_values(Some(EventType::ALL.map(EventType::as_str)))
            .into()
    }
}
