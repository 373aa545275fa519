use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{ApiResult, json, mark_replay};
use crate::problems::{ReadProblems, WriteProblems};
use crate::request::{
    IN_BODY, JsonBody, NewThreadQuery, Nothing, Parameters, Query, Repeatable, Target, ThreadWrite,
    Whole, invalid, optional_body_object, read, set_once, turn,
};
use crate::schemas::{NewThreadParam, TokenHeader};
use crate::scopes::schemas::RepeatHeader;
use threadkeep_domain as domain;
use threadkeep_domain::{Release, TurnGranted, TurnToken, rfc3339};
use threadkeep_service::TurnRequest;
use threadkeep_web::ApiError;

const DEFAULT_TTL_SECONDS: u64 = 30;

type TurnTtl = Whole<1, 600>;

/// The turn to take.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTurnBody {
    /// Number of seconds after which the turn expires unless it is renewed, 30 by default.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 600)]
    ttl_seconds: Option<TurnTtl>,
    /// Maximum number of seconds to wait while a different turn is held, 0 by default.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 0, maximum = 30)]
    wait_seconds: Option<Whole<0, 30>>,
    /// If true, writes without the turn's token are rejected while the turn is held. False by default.
    #[schema(nullable = false)]
    exclusive: Option<bool>,
}

/// The renewal of a turn.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TurnPatchBody {
    /// Number of seconds from now until the turn expires, 30 by default.
    #[schema(nullable = false, value_type = Option<u64>, minimum = 1, maximum = 600)]
    ttl_seconds: Option<TurnTtl>,
}

#[derive(Debug, Default)]
pub(crate) struct ReleaseQuery(Option<Release>);

/// A turn that was granted or renewed.
#[derive(Serialize, ToSchema)]
pub(super) struct TurnObject {
    /// The token of the turn. Send the token as `x-turn-token` with each write of the turn.
    token: String,
    /// When the turn expires unless it is renewed, according to the store's clock.
    expires_at: Option<String>,
    /// 1 for the first turn in a thread's life, and one more for each later turn. Other systems can use it as a fencing
    /// token.
    number: u32,
    /// The number of tool calls in doubt: earlier turns began them and did not settle them.
    in_doubt: u32,
}

/// The current turn of a thread, without its token.
#[derive(Serialize, ToSchema)]
pub(super) struct TurnState {
    held: bool,
    /// The number of the last turn; 0 if there was none.
    number: u32,
    /// When the turn expires without renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    expires_at: Option<String>,
    /// True if writes without the turn's token are rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    exclusive: Option<bool>,
}

impl From<TurnGranted> for TurnObject {
    fn from(granted: TurnGranted) -> Self {
        Self {
            token: granted.token.to_string(),
            expires_at: rfc3339(granted.ends_ms),
            number: granted.number,
            in_doubt: granted.in_doubt,
        }
    }
}

impl From<domain::TurnState> for TurnState {
    fn from(domain::TurnState { number, held }: domain::TurnState) -> Self {
        Self {
            held: held.is_some(),
            number,
            expires_at: held.and_then(|held| rfc3339(held.ends_ms)),
            exclusive: held.map(|held| held.exclusive),
        }
    }
}

/// Take the turn
///
/// A turn is a lease that lets only one caller at a time answer a conversation. Once a later turn has been granted,
/// writes with the token of an earlier turn are rejected (`turn_lost`). Callers that are waiting at the same replica
/// get the turn in order of arrival. Creates the thread if it does not exist.
#[utoipa::path(
    post,
    path = "/v1/threads/current/turn",
    params(RepeatHeader, NewThreadParam),
    request_body(content = Option<NewTurnBody>),
    responses(
        (status = 201, description = "The turn was granted.", body = TurnObject),
        WriteProblems,
    ),
)]
pub(crate) async fn take_turn(write: ThreadWrite<(), Repeatable>, body: JsonBody) -> ApiResult {
    let body: NewTurnBody = read(&optional_body_object(body.as_str(), IN_BODY)?)?;
    let request = TurnRequest {
        ttl: ttl(body.ttl_seconds),
        exclusive: body.exclusive.unwrap_or_default(),
        wait: Duration::from_secs(body.wait_seconds.map_or(0, |Whole(seconds)| seconds)),
        idempotency: write.headers.idempotency,
    };
    let (target, turns) = (&write.target, write.target.turns(&write.query));
    let granted = tokio::select! {
        granted = turns.take(&target.id, &request) => granted?,
        () = target.draining().cancelled() => return Err(ApiError::ShuttingDown),
    };
    let mut response = HttpResponse::Created();
    mark_replay(&mut response, granted.replayed);
    Ok(json(response, &TurnObject::from(granted)))
}

/// Renew the turn
///
/// You can renew a turn until a later turn is granted, even after the turn has expired.
#[utoipa::path(
    patch,
    path = "/v1/threads/current/turn",
    params(TokenHeader),
    request_body(content = Option<TurnPatchBody>),
    responses(
        (status = 200, description = "The turn was renewed.", body = TurnObject),
        WriteProblems,
    ),
)]
pub(crate) async fn renew_turn(
    request: HttpRequest,
    target: Target,
    _: Query<Nothing>,
    body: JsonBody,
) -> ApiResult {
    let token = token(&request)?;
    let body: TurnPatchBody = read(&optional_body_object(body.as_str(), IN_BODY)?)?;
    let granted = target
        .turns(&NewThreadQuery::default())
        .renew(&target.id, token, ttl(body.ttl_seconds))
        .await?;
    Ok(json(HttpResponse::Ok(), &TurnObject::from(granted)))
}

/// Release the turn
///
/// With `messages=return`, the work of the turn counts as incomplete: the server keeps the tool calls that a later turn
/// needs to resume it.
#[utoipa::path(
    delete,
    path = "/v1/threads/current/turn",
    params(
        TokenHeader,
        ("messages" = Option<String>, Query, pattern = "^(done|return)$", description = "`done` (the default) if the work of the turn is complete, or `return` if a later turn must resume it."),
    ),
    responses(
        (status = 204, description = "The turn has ended, by this request or earlier."),
        WriteProblems,
    ),
)]
pub(crate) async fn end_turn(
    request: HttpRequest,
    target: Target,
    Query(ReleaseQuery(release)): Query<ReleaseQuery>,
) -> ApiResult {
    let turns = target.turns(&NewThreadQuery::default());
    let release = release.unwrap_or_default();
    turns.end(&target.id, token(&request)?, release).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Retrieve the current turn
#[utoipa::path(
    get,
    path = "/v1/threads/current/turn",
    responses(
        (status = 200, description = "The turn, without its token.", body = TurnState),
        ReadProblems,
    ),
)]
pub(crate) async fn get_turn(target: Target, _: Query<Nothing>) -> ApiResult {
    let state = target
        .turns(&NewThreadQuery::default())
        .get(&target.id)
        .await?;
    Ok(json(HttpResponse::Ok(), &TurnState::from(state)))
}

impl Parameters for ReleaseQuery {
    const NAMES: &'static [&'static str] = &["messages"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let release = match value {
            "done" => Some(Release::Complete),
            "return" => Some(Release::Incomplete),
            _ => None,
        };
        let malformed = "must be done or return, given once";
        set_once(&mut self.0, release, name, malformed)
    }
}

fn ttl(requested: Option<TurnTtl>) -> Duration {
    Duration::from_secs(requested.map_or(DEFAULT_TTL_SECONDS, |Whole(seconds)| seconds))
}

fn token(request: &HttpRequest) -> ApiResult<TurnToken> {
    let missing = "x-turn-token must have the token of the turn";
    turn(request)?.ok_or_else(|| invalid(missing))
}
