use actix_web::HttpResponse;
use serde::Serialize;

use super::call::ScopeCall;
use super::object::{ScopeEnded, ScopeObject, ScopeReceipt};
use super::schemas::{ClearScope, EndScope, NamedScope, RepeatHeader};
use crate::answer::{ApiResult, json, ok_or_replay};
use crate::problems::ScopeProblems;
use crate::request::{IN_BODY, Repeatable, Whole};
use threadkeep_domain::scope::ScopeWritten;
use threadkeep_store::ScopeParts;

/// Describe a scope
///
/// Returns the scope without its keys and tasks.
#[utoipa::path(
    post,
    path = "/v1/scopes/describe",
    request_body(content = NamedScope),
    responses(
        (status = 200, description = "The scope.", body = ScopeObject),
        ScopeProblems,
    ),
)]
pub(crate) async fn describe_scope(call: ScopeCall<IN_BODY>) -> ApiResult {
    let (scope, NamedScope { .. }) = call.open_stored()?;
    let parts = ScopeParts {
        tasks: true,
        ..ScopeParts::default()
    };
    let scopes = call.scopes()?;
    let view = scopes.read(&scope, &parts).await?;
    let object = ScopeObject::of(&scope, &view, &scopes.policy(&scope));
    Ok(json(HttpResponse::Ok(), &object))
}

/// Clear a scope
///
/// Deletes all keys and tasks, but keeps the history. With `keep_unfinished`, the request fails if a task is not
/// completed.
#[utoipa::path(
    post,
    path = "/v1/scopes/clear",
    params(RepeatHeader),
    request_body(content = ClearScope),
    responses(
        (status = 200, description = "The scope was cleared.", body = ScopeReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn clear_scope(call: ScopeCall<IN_BODY, Repeatable>) -> ApiResult {
    let (scope, body): (_, ClearScope) = call.open_stored()?;
    let keep_unfinished = body.keep_unfinished.unwrap_or_default();
    let options = call.headers.options(body.if_version);
    let scopes = call.scopes()?;
    let written = scopes.clear(&scope, keep_unfinished, options).await?;
    Ok(receipt(&written))
}

/// End a scope
///
/// Deletes the keys, tasks and history of the scope. A thread's scope remains usable and is empty. A scope of the kind
/// `state` or `run` rejects all later writes. A scope of any other kind is created again by the next write.
#[utoipa::path(
    delete,
    path = "/v1/scopes",
    params(RepeatHeader),
    request_body(content = EndScope),
    responses(
        (status = 200, description = "The scope no longer exists.", body = ScopeEnded),
        ScopeProblems,
    ),
)]
pub(crate) async fn end_scope(call: ScopeCall<IN_BODY, Repeatable>) -> ApiResult {
    let (scope, body): (_, EndScope) = call.open_stored()?;
    let expected = body.if_version.map(|Whole(version)| version);
    let scopes = call.scopes()?;
    let Repeatable { turn, idempotency } = call.headers;
    let ended = scopes.end(&scope, expected, turn, idempotency).await?;
    let body = ScopeEnded {
        ended: ended.answer,
    };
    Ok(ok_or_replay(&body, ended.replayed))
}

pub(crate) fn receipt(written: &ScopeWritten) -> HttpResponse {
    let receipt = ScopeReceipt {
        ok: true,
        version: written.stamp.version,
        results: None,
    };
    answer(written, &receipt)
}

pub(crate) fn answer(written: &ScopeWritten, body: &impl Serialize) -> HttpResponse {
    ok_or_replay(body, written.replayed)
}
