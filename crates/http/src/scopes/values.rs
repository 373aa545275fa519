//! Handlers for the keys of scopes. Keys can be free text, and are therefore sent in the body instead of the path.

use actix_web::HttpResponse;
use serde_json::Value;

use super::call::ScopeCall;
use super::lifecycle::answer;
use super::object::{
    DeleteKeyReceipt, EntryResult, IncrementKeyReceipt, KeyList, KeyValues, ScopeReceipt,
};
use super::schemas::{DeleteKey, GetValues, IncrementKey, ListKeys, RepeatHeader, SetValues};
use crate::answer::{ApiResult, json};
use crate::problems::ScopeProblems;
use crate::request::{IN_LIST, Repeatable};
use threadkeep_domain::scope::{KvAnswer, KvOperation, ScopeKey};
use threadkeep_store::ScopeParts;

/// Read keys of a scope
///
/// Reads all values at the same version of the scope.
#[utoipa::path(
    post,
    path = "/v1/scopes/keys/get",
    request_body(content = GetValues),
    responses(
        (status = 200, description = "The values.", body = KeyValues),
        ScopeProblems,
    ),
)]
pub(crate) async fn get_values(call: ScopeCall<IN_LIST>) -> ApiResult {
    let (scope, body): (_, GetValues) = call.open_stored()?;
    let scopes = call.scopes()?;
    let is_one = body.key.is_some();
    let keys = body.read_keys(scopes.policy(&scope).keys)?;
    let parts = ScopeParts {
        values: &keys,
        ..ScopeParts::default()
    };
    let view = scopes.read(&scope, &parts).await?;
    let version = view.stamp.version;
    let mut values = view
        .values
        .into_iter()
        .map(|value| Some(value?.into_string()));
    let body = if is_one {
        let value = values.next().flatten();
        KeyValues::One { value, version }
    } else {
        let keys = keys.iter().map(|key| key.as_str().to_owned());
        let values = keys.zip(values.map(Value::from)).collect();
        KeyValues::Many { values, version }
    };
    Ok(json(HttpResponse::Ok(), &body))
}

/// Set keys of a scope
///
/// Sets either all entries or none.
#[utoipa::path(
    post,
    path = "/v1/scopes/keys/set",
    params(RepeatHeader),
    request_body(content = SetValues),
    responses(
        (status = 200, description = "The keys were set, except for existing keys with `if_absent`.", body = ScopeReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn set_values(call: ScopeCall<IN_LIST, Repeatable>) -> ApiResult {
    let (scope, body): (_, SetValues) = call.open_stored()?;
    let scopes = call.scopes()?;
    let options = call.headers.options(body.if_version);
    let is_one = body.entries.is_none();
    let operations = body.read_entries(scopes.policy(&scope).keys)?;
    let written = scopes.write(&scope, &operations, options).await?;
    let results = written.answers.iter();
    let results: Vec<_> = results
        .map(|answer| EntryResult {
            ok: *answer == KvAnswer::Set(true),
        })
        .collect();
    let receipt = ScopeReceipt {
        ok: results.iter().all(|result| result.ok),
        version: written.stamp.version,
        results: (!is_one).then_some(results),
    };
    Ok(answer(&written, &receipt))
}

/// Delete a key of a scope
///
/// Deleting a key that does not exist is not an error.
#[utoipa::path(
    post,
    path = "/v1/scopes/keys/delete",
    params(RepeatHeader),
    request_body(content = DeleteKey),
    responses(
        (status = 200, description = "The key no longer exists.", body = DeleteKeyReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn delete_key(call: ScopeCall<IN_LIST, Repeatable>) -> ApiResult {
    let (scope, body): (_, DeleteKey) = call.open_stored()?;
    let scopes = call.scopes()?;
    let key = ScopeKey::new(body.key, scopes.policy(&scope).keys)?;
    let options = call.headers.options(body.if_version);
    let delete = [KvOperation::Delete { key }];
    let written = scopes.write(&scope, &delete, options).await?;
    let deleted = DeleteKeyReceipt {
        deleted: written.answers.contains(&KvAnswer::Deleted(true)),
        version: written.stamp.version,
    };
    Ok(answer(&written, &deleted))
}

/// List keys of a scope
#[utoipa::path(
    post,
    path = "/v1/scopes/keys/list",
    request_body(content = ListKeys),
    responses(
        (status = 200, description = "The keys with the prefix, or all keys.", body = KeyList),
        ScopeProblems,
    ),
)]
pub(crate) async fn list_keys(call: ScopeCall<IN_LIST>) -> ApiResult {
    let (scope, body): (_, ListKeys) = call.open_stored()?;
    let prefix = body.prefix.unwrap_or_default();
    let parts = ScopeParts {
        keys: true,
        ..ScopeParts::default()
    };
    let view = call.scopes()?.read(&scope, &parts).await?;
    let keys = view.keys.iter().map(ScopeKey::as_str);
    let keys = keys.filter(|key| key.starts_with(&prefix));
    let list = KeyList {
        keys: keys.map(str::to_owned).collect(),
        version: view.stamp.version,
    };
    Ok(json(HttpResponse::Ok(), &list))
}

/// Increment an integer in a scope
///
/// A key that does not exist counts as 0.
#[utoipa::path(
    post,
    path = "/v1/scopes/keys/increment",
    params(RepeatHeader),
    request_body(content = IncrementKey),
    responses(
        (status = 200, description = "The integer was incremented.", body = IncrementKeyReceipt),
        ScopeProblems,
    ),
)]
pub(crate) async fn increment_key(call: ScopeCall<IN_LIST, Repeatable>) -> ApiResult {
    let (scope, body): (_, IncrementKey) = call.open_stored()?;
    let scopes = call.scopes()?;
    let key = ScopeKey::new(body.key, scopes.policy(&scope).keys)?;
    let by = body.by.unwrap_or(1);
    let options = call.headers.options(body.if_version);
    let increment = [KvOperation::Increment { key, by }];
    let written = scopes.write(&scope, &increment, options).await?;
    let value = match written.answers[..] {
        [KvAnswer::Value(value)] => value,
        _ => 0,
    };
    let version = written.stamp.version;
    Ok(answer(&written, &IncrementKeyReceipt { value, version }))
}
