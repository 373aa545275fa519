use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use serde_json::json;

use super::failure::error_data;
use super::resource_uri::{self, KEY_TEMPLATE, Part, TASKS};
use threadkeep_domain::scope::{KeyRule, Scope, ScopeId, ScopeKey};
use threadkeep_service::tools::{Call, Tool, Toolbox};
use threadkeep_service::{ScopeService, ServiceError};
use threadkeep_store::ScopeParts;

const PAGE_KEYS: usize = 100;

/// Lists a scope's resources: its tasks, then its keys in order. The cursor is the last key of the previous page.
pub(super) async fn list(
    scopes: &ScopeService,
    scope: &Scope,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let after = cursor.map(read_cursor).transpose()?;
    let Scope::Kept(scope) = scope else {
        return Ok(ListResourcesResult::default());
    };
    let parts = ScopeParts {
        keys: true,
        ..ScopeParts::default()
    };
    let keys = scopes.read(scope, &parts).await.map_err(error_data)?.keys;
    let start = after.as_ref().map_or(0, |after| {
        keys.partition_point(|key| key.as_str() <= after.as_str())
    });
    let rest = keys[start..].iter().map(ScopeKey::as_str);
    let page: Vec<_> = rest.take(PAGE_KEYS).collect();
    let is_last = start + page.len() == keys.len();
    let tasks = after.is_none().then(tasks);
    Ok(ListResourcesResult {
        next_cursor: page.last().filter(|_| !is_last).map(write_cursor),
        ..ListResourcesResult::with_all_items(
            tasks.into_iter().chain(page.into_iter().map(key)).collect(),
        )
    })
}

pub(super) fn templates() -> ListResourceTemplatesResult {
    let template = ResourceTemplate::new(KEY_TEMPLATE, "kv")
        .with_title("A key")
        .with_description("The value of a key, as it was written.")
        .with_mime_type("text/plain");
    ListResourceTemplatesResult::with_all_items(vec![template])
}

pub(super) async fn read(
    scopes: &ScopeService,
    scope: &Scope,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let contents = match (scope, Part::of(uri)) {
        (Scope::Kept(_), Some(Part::Tasks)) => {
            let tasks = read_tasks(scopes, scope).await.map_err(error_data)?;
            let contents = ResourceContents::text(tasks, uri);
            Some(contents.with_mime_type("application/json"))
        }
        (Scope::Kept(scope), Some(Part::Key(key))) => {
            let value = read_key(scopes, scope, &key).await.map_err(error_data)?;
            value.map(|value| ResourceContents::text(value, uri))
        }
        _ => None,
    };
    let contents = contents.ok_or_else(|| {
        ErrorData::resource_not_found("there is no such resource", Some(json!({"uri": uri})))
    })?;
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn read_tasks(scopes: &ScopeService, scope: &Scope) -> Result<String, ServiceError> {
    let tools = Toolbox::new(scopes.clone());
    let outcome = tools.call(scope, Call::new(Tool::TasksRead, "")).await?;
    Ok(outcome.to_json())
}

/// Reads the value of a key. Accepts keys that the tools reject, because some scopes allow any string as a key.
async fn read_key(
    scopes: &ScopeService,
    scope: &ScopeId,
    key: &str,
) -> Result<Option<String>, ServiceError> {
    let Ok(key) = ScopeKey::new(key, KeyRule::Free) else {
        return Ok(None);
    };
    let parts = ScopeParts {
        values: &[key],
        ..ScopeParts::default()
    };
    let mut view = scopes.read(scope, &parts).await?;
    let value = view.values.pop().flatten();
    Ok(value.map(|value| value.into_string()))
}

fn tasks() -> Resource {
    Resource::new(TASKS, "tasks")
        .with_title("Tasks")
        .with_description("The task list.")
        .with_mime_type("application/json")
}

fn key(key: &str) -> Resource {
    Resource::new(resource_uri::of_key(key), key).with_mime_type("text/plain")
}

fn write_cursor(key: &&str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

fn read_cursor(text: &str) -> Result<String, ErrorData> {
    let bytes = URL_SAFE_NO_PAD.decode(text).ok();
    let key = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    key.filter(|key| !key.is_empty())
        .ok_or_else(|| ErrorData::invalid_params("there is no such cursor", None))
}
