//! Keys and values of scopes in bodies.

use std::time::Duration;

use crate::domain::TTL_MAX;
use crate::domain::scope::{KV_MAX_KEYS, KeyRule, KvOperation, ScopeError, ScopeKey, ScopeValue};
use crate::http::request::members::{flag, list, required, required_string, string, whole};
use crate::http::request::shape::read_members;
use crate::web::ApiError;

/// As many as a scope may have.
const ENTRIES: (usize, usize) = (1, KV_MAX_KEYS as usize);
/// A second to a year.
const TTLS: (u64, u64) = (1, TTL_MAX.as_secs());

/// One key.
///
/// # Errors
/// [`ApiError`].
pub(super) fn read_key(key: Option<&str>, rule: KeyRule) -> Result<ScopeKey, ApiError> {
    Ok(ScopeKey::new(required_string("key", key)?, rule)?)
}

/// One key or several.
///
/// # Errors
/// [`ApiError`].
pub(super) fn read_keys(
    key: Option<&str>,
    keys: Option<&str>,
    rule: KeyRule,
) -> Result<Vec<ScopeKey>, ApiError> {
    let keys = match (key, keys) {
        (None, Some(keys)) => keys,
        (key @ Some(_), None) => return Ok(vec![read_key(key, rule)?]),
        _ => {
            return Err(ApiError::InvalidParameter(
                "either `key` or `keys` is wanted".into(),
            ));
        }
    };
    let read = |(index, json)| {
        let key = ScopeKey::new(string("keys", json)?, rule);
        key.map_err(|error| at(error, index))
    };
    let keys = list("keys", keys, ENTRIES)?;
    keys.into_iter().enumerate().map(read).collect()
}

/// One entry, as its key, value, ttl and whether it is set only if absent, or several.
///
/// # Errors
/// [`ApiError`].
pub(super) fn read_entries(
    one: [Option<&str>; 4],
    entries: Option<&str>,
    rule: KeyRule,
) -> Result<Vec<KvOperation>, ApiError> {
    let Some(entries) = entries else {
        return Ok(vec![read_entry(one, rule, |error| error.into())?]);
    };
    if one.iter().any(Option::is_some) {
        let detail = "what is set is either in `entries` or beside `scope`";
        return Err(ApiError::InvalidParameter(detail.into()));
    }
    let read = |(index, json)| {
        let entry = read_members(json, ["key", "value", "ttl_seconds", "if_absent"]);
        let entry = entry.map_err(|error| {
            let detail = format!("The entry at {index} is not right: {}", error.detail());
            ApiError::InvalidParameter(detail)
        })?;
        read_entry(entry, rule, |error| at(error, index))
    };
    let entries = list("entries", entries, ENTRIES)?;
    entries.into_iter().enumerate().map(read).collect()
}

fn read_entry(
    [key, value, ttl, if_absent]: [Option<&str>; 4],
    rule: KeyRule,
    refuse: impl Fn(ScopeError) -> ApiError,
) -> Result<KvOperation, ApiError> {
    let key = string("key", required("key", key)?)?;
    let value = string("value", required("value", value)?)?;
    Ok(KvOperation::Set {
        key: ScopeKey::new(key, rule).map_err(&refuse)?,
        value: ScopeValue::new(value).map_err(&refuse)?,
        ttl: whole("ttl_seconds", ttl, TTLS)?.map(Duration::from_secs),
        if_absent: flag("if_absent", if_absent)?,
    })
}

fn at(error: ScopeError, index: usize) -> ApiError {
    let index = Some(index);
    ApiError::ScopePart { error, index }
}
