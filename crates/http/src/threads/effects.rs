use actix_web::{HttpRequest, HttpResponse};

use super::effect_object::{
    BeginBody, EffectList, EffectObject, SettleBody, SettledObject, malformed,
};
use crate::answer::{ApiResult, json};
use crate::problems::{NotFound, ReadProblems, WriteProblems};
use crate::request::cursor::{self, Cursor};
use crate::request::{
    IN_OBJECT, JsonBody, Nothing, Page, Parameters, Query, Repeatable, Target, ThreadWrite,
    body_object, extract, invalid, path_part, read, set_once,
};
use crate::schemas::{EffectParam, TokenHeader};
use crate::scopes::schemas::RepeatHeader;
use threadkeep_domain::effects::{EffectId, EffectState};
use threadkeep_service::EffectRequest;

/// Index of the last path part in `/v1/threads/{thread}/effects/{effect}`. Part 0 is empty.
const ID_INDEX: usize = 5;

#[derive(Debug)]
pub(crate) struct EffectPath(EffectId);

#[derive(Debug, Default)]
pub(crate) struct EffectQuery {
    state: Option<EffectState>,
    page: Page<20, 100>,
}

/// The position of the last effect of a page.
pub(crate) struct EffectPosition(u64);

/// Begin a tool call
///
/// Begins a tool call or its next attempt, or returns the call as it is. Run the tool only if the `state` is `granted`.
/// The server grants each attempt once. If the response is lost, a retry with the same `Idempotency-Key` gets the same
/// grant while the attempt runs.
#[utoipa::path(
    post,
    path = "/v1/threads/current/effects/{effect}",
    params(EffectParam, TokenHeader, RepeatHeader),
    request_body(content = BeginBody<'_>),
    responses(
        (status = 200, description = "The tool call.", body = EffectObject<'_>),
        NotFound,
        WriteProblems,
    ),
)]
pub(crate) async fn begin_effect(
    write: ThreadWrite<EffectPath, Repeatable, Nothing>,
    body: JsonBody,
) -> ApiResult {
    let turn = write.headers.turn;
    let turn = turn.ok_or_else(|| invalid("x-turn-token must have the token of the turn"))?;
    let body = body_object(body.as_str(), IN_OBJECT)?;
    let body: BeginBody<'_> = read(&body)?;
    let EffectPath(id) = write.path;
    let request = EffectRequest {
        id,
        tool: body.tool.parse().map_err(malformed)?,
        hash: body.hash()?,
        idempotent: body.idempotent.unwrap_or_default(),
        retry: body.retry.map(|attempt| attempt.0 as u32),
        turn,
        idempotency: write.headers.idempotency,
    };
    let target = &write.target;
    let effect = target.effects().begin(&target.id, &request).await?;
    Ok(json(HttpResponse::Ok(), &EffectObject::of(&effect)))
}

/// Settle a tool call
///
/// Records how a tool call ended. With the fence of the last attempt, any caller with access to the thread can settle
/// the call, even after the turn is lost. Without a fence, only the holder of the turn can settle the call, if it is in
/// doubt. Settling again with the same value changes nothing.
#[utoipa::path(
    put,
    path = "/v1/threads/current/effects/{effect}",
    params(EffectParam, ("x-turn-token" = Option<String>, Header, description = "The token of the turn. Required only without a fence.")),
    request_body(content = SettleBody<'_>),
    responses(
        (status = 200, description = "The tool call.", body = SettledObject<'_>),
        NotFound,
        WriteProblems,
    ),
)]
pub(crate) async fn settle_effect(
    write: ThreadWrite<EffectPath, Repeatable, Nothing>,
    body: JsonBody,
) -> ApiResult {
    let body = body_object(body.as_str(), IN_OBJECT)?;
    let EffectPath(id) = write.path;
    let settle = read::<SettleBody<'_>>(&body)?.read(id)?;
    let (target, turn) = (&write.target, write.headers.turn);
    let settled = target.effects().settle(&target.id, &settle, turn).await?;
    Ok(json(HttpResponse::Ok(), &SettledObject::of(&settled)))
}

/// Retrieve a tool call
#[utoipa::path(
    get,
    path = "/v1/threads/current/effects/{effect}",
    params(EffectParam),
    responses(
        (status = 200, description = "The tool call with its result or error.", body = EffectObject<'_>),
        NotFound,
        ReadProblems,
    ),
)]
pub(crate) async fn get_effect(
    target: Target,
    EffectPath(id): EffectPath,
    _: Query<Nothing>,
) -> ApiResult {
    let effect = target.effects().get(&target.id, &id).await?;
    Ok(json(HttpResponse::Ok(), &EffectObject::of(&effect)))
}

/// List tool calls
///
/// Returns the tool calls of the thread, newest first, without results and errors.
#[utoipa::path(
    get,
    path = "/v1/threads/current/effects",
    params(
        ("state" = Option<String>, Query, pattern = "^(running|in_doubt|done|failed)$", description = "Return only tool calls in this state."),
        ("limit" = Option<u64>, Query, minimum = 1, maximum = 100, description = "Maximum number of tool calls per page, 20 by default."),
        ("cursor" = Option<String>, Query, description = "The `next_cursor` of the previous page."),
    ),
    responses(
        (status = 200, description = "A page of tool calls.", body = EffectList<'_>),
        ReadProblems,
    ),
)]
pub(crate) async fn list_effects(target: Target, Query(query): Query<EffectQuery>) -> ApiResult {
    let (ring, limit) = (target.ring(), query.page.limit());
    let list_id = query.list_id(&target);
    let after = cursor::after(ring, &list_id, query.page.cursor.as_deref())?;
    let position = after.map(|EffectPosition(position)| position);
    // one more than the limit shows whether another page follows
    let effects = target.effects();
    let listed = effects.list(&target.id, query.state, position, limit + 1);
    let listed = listed.await?;
    let shown = &listed[..limit.min(listed.len())];
    let last = shown.last().filter(|_| listed.len() > limit);
    let next = last.map(|last| EffectPosition(last.position));
    let list = EffectList {
        effects: shown.iter().map(EffectObject::of).collect(),
        next_cursor: cursor::next(ring, &list_id, next),
    };
    Ok(json(HttpResponse::Ok(), &list))
}

impl EffectQuery {
    fn list_id(&self, target: &Target) -> Vec<u8> {
        let state = self.state.map_or("", EffectState::as_str);
        [target.id.as_bytes(), state.as_bytes()].concat()
    }
}

impl Parameters for EffectQuery {
    const NAMES: &'static [&'static str] = &["state", "limit", "cursor"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        if name != "state" {
            return self.page.take(name, value);
        }
        let mut states = EffectState::NAMES.into_iter();
        let state = states.find(|(text, state)| *text == value && *state != EffectState::Granted);
        let malformed = "must be running, in_doubt, done or failed, given once";
        set_once(
            &mut self.state,
            state.map(|(_, state)| state),
            name,
            malformed,
        )
    }
}

impl Cursor for EffectPosition {
    const PURPOSE: &str = "threadkeep position among the effects of a thread";

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self(u64::from_be_bytes(bytes.try_into().ok()?)))
    }
}

impl EffectPath {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let text = path_part(request, ID_INDEX).unwrap_or_default();
        Ok(Self(text.parse().map_err(malformed)?))
    }
}

extract!(EffectPath);
