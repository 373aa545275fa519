//! Parses query parameters. Rejects unknown parameters.

use std::num::NonZeroU64;
use std::time::Duration;

use actix_web::HttpRequest;

use super::decode::{decode_parameter, parameters};
use super::extract::extract;
use crate::answer::ApiResult;
use crate::request::invalid;
use threadkeep_domain::{Excerpt, Key, KeyError, Slice, TTL_MAX, TTL_MIN};
use threadkeep_web::ApiError;

pub trait Parameters: Default {
    const NAMES: &'static [&'static str];

    /// Prefix of names that are allowed in addition to `NAMES`.
    const PREFIX: Option<&'static str> = None;

    /// Sets a parameter. Fails if the value is malformed or the parameter is repeated.
    fn take(&mut self, name: &str, value: &str) -> ApiResult<()>;

    /// Runs after all parameters are set, for example to remove duplicates.
    fn normalize(&mut self) {}

    /// Rejects parameters that exclude each other.
    fn check(&self) -> ApiResult<()> {
        Ok(())
    }
}

#[derive(Debug)]
pub struct Query<P>(pub P);

#[derive(Debug, Default)]
pub(crate) struct Nothing;

#[derive(Debug, Default)]
pub(crate) struct Keys {
    pub(crate) keys: Vec<Key>,
    pub(crate) reading: Reading,
}

#[derive(Debug, Default)]
pub(crate) struct Part {
    tail: Option<u64>,
    offset: Option<u64>,
    limit: Option<u64>,
    pub(crate) reading: Reading,
}

/// The query parameter `ttl_seconds` of a write that may create a thread.
#[derive(Debug, Default)]
pub(crate) struct NewThreadQuery {
    pub(crate) ttl: Option<Duration>,
}

#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(crate) max_records: Option<NonZeroU64>,
    pub(crate) new_thread: NewThreadQuery,
}

#[derive(Debug, Default)]
pub(crate) struct Page<const DEFAULT: usize = 100, const MAX: usize = 1_000> {
    pub(crate) cursor: Option<String>,
    limit: Limit<DEFAULT, MAX>,
}

#[derive(Debug, Default)]
pub(crate) struct Limit<const DEFAULT: usize, const MAX: usize>(Option<usize>);

#[derive(Debug, Default)]
pub(crate) struct Reading {
    peek: Option<bool>,
}

impl Reading {
    /// Returns whether the read leaves the thread's lifetime unchanged.
    pub(crate) fn is_peek(&self) -> bool {
        self.peek.unwrap_or_default()
    }
}

impl<const DEFAULT: usize, const MAX: usize> Limit<DEFAULT, MAX> {
    pub(crate) fn get(&self) -> usize {
        self.0.unwrap_or(DEFAULT)
    }
}

impl<const DEFAULT: usize, const MAX: usize> Page<DEFAULT, MAX> {
    pub(crate) fn is_given(&self) -> bool {
        self.cursor.is_some() || self.limit.0.is_some()
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.get()
    }
}

impl AsRef<Self> for NewThreadQuery {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRef<NewThreadQuery> for Window {
    fn as_ref(&self) -> &NewThreadQuery {
        &self.new_thread
    }
}

impl Part {
    pub(crate) fn slice(&self) -> Option<Slice> {
        match (self.tail, self.offset, self.limit) {
            (Some(count), ..) => Some(Slice::Tail(count)),
            (None, None, None) => None,
            (None, offset, limit) => Some(Slice::Range {
                offset: offset.unwrap_or(0),
                limit,
            }),
        }
    }
}

impl Parameters for Nothing {
    const NAMES: &'static [&'static str] = &[];

    fn take(&mut self, _: &str, _: &str) -> ApiResult<()> {
        Ok(())
    }
}

impl Parameters for Keys {
    const NAMES: &'static [&'static str] = &["key", "peek"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        if name == "peek" {
            return self.reading.take(name, value);
        }
        let key = Key::new(value).map_err(|error| ApiError::InvalidKey {
            error,
            operation: None,
        })?;
        self.keys.push(key);
        Ok(())
    }

    /// Removes repeated keys. Otherwise, a client could make the store read the same large value many times.
    fn normalize(&mut self) {
        self.keys.sort_unstable();
        self.keys.dedup();
    }
}

impl Parameters for Part {
    const NAMES: &'static [&'static str] = &["tail", "offset", "limit", "peek"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let field = match name {
            "peek" => return self.reading.take(name, value),
            "tail" => &mut self.tail,
            "offset" => &mut self.offset,
            _ => &mut self.limit,
        };
        let malformed = "must be a whole number from 0, given once";
        set_once(field, whole(value), name, malformed)
    }

    fn check(&self) -> ApiResult<()> {
        if self.tail.is_some() && (self.offset.is_some() || self.limit.is_some()) {
            return Err(invalid("`tail` excludes `offset` and `limit`"));
        }
        Ok(())
    }
}

impl<const DEFAULT: usize, const MAX: usize> Parameters for Page<DEFAULT, MAX> {
    const NAMES: &'static [&'static str] = &["cursor", "limit"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        if name == "limit" {
            return self.limit.take(name, value);
        }
        let text = Some(value.to_owned());
        set_once(&mut self.cursor, text, name, "must be given once")
    }
}

impl<const DEFAULT: usize, const MAX: usize> Parameters for Limit<DEFAULT, MAX> {
    const NAMES: &'static [&'static str] = &["limit"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let limit = whole(value).and_then(|limit| usize::try_from(limit).ok());
        let limit = limit.filter(|limit| (1..=MAX).contains(limit));
        if limit.is_some() && self.0.is_none() {
            self.0 = limit;
            return Ok(());
        }
        let malformed = format!("must be a whole number from 1 to {MAX}, given once");
        set_once(&mut self.0, limit, name, &malformed)
    }
}

impl Parameters for Reading {
    const NAMES: &'static [&'static str] = &["peek"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let malformed = "must be true or false, given once";
        set_once(&mut self.peek, value.parse().ok(), name, malformed)
    }
}

impl Parameters for NewThreadQuery {
    const NAMES: &'static [&'static str] = &["ttl_seconds"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let ttl = whole(value).map(Duration::from_secs);
        let ttl = ttl.filter(|ttl| (TTL_MIN..=TTL_MAX).contains(ttl));
        let malformed = "must be a whole number from 60 to 946080000, given once";
        set_once(&mut self.ttl, ttl, name, malformed)
    }
}

impl Parameters for Window {
    const NAMES: &'static [&'static str] = &["max_records", "ttl_seconds"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        if name == "ttl_seconds" {
            return self.new_thread.take(name, value);
        }
        let malformed = "must be a whole number from 1, given once";
        let number = whole(value).and_then(NonZeroU64::new);
        set_once(&mut self.max_records, number, name, malformed)
    }
}

fn unknown(name: &str, allowed: &[&str]) -> ApiError {
    let allowed = match allowed {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let name = Excerpt(name);
    invalid(format!(
        "Unknown query parameter `{name}`. Allowed: {allowed}"
    ))
}

/// Parses digits without a sign. A number that does not fit in 64 bits becomes `u64::MAX`.
pub fn whole(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Sets a parameter. Fails if the parameter is already set, or if `value` is `None` because it is malformed.
pub fn set_once<T>(
    parameter: &mut Option<T>,
    value: Option<T>,
    name: &str,
    malformed: &str,
) -> Result<(), ApiError> {
    if value.is_none() || parameter.is_some() {
        return Err(invalid(format!("`{name}` {malformed}")));
    }
    *parameter = value;
    Ok(())
}

fn undecodable(name: &str) -> ApiError {
    if name == "key" {
        return ApiError::InvalidKey {
            error: KeyError::Utf8,
            operation: None,
        };
    }
    let name = Excerpt(name);
    invalid(format!(
        "The query parameter `{name}` is not percent-encoded UTF-8"
    ))
}

impl<P: Parameters> Query<P> {
    pub fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let mut parsed = P::default();
        for (name, value) in parameters(request.query_string()) {
            let name = decode_parameter(name).ok_or_else(|| undecodable(name))?;
            let value = decode_parameter(value).ok_or_else(|| undecodable(&name))?;
            let has_prefix = P::PREFIX.is_some_and(|prefix| name.starts_with(prefix));
            if !has_prefix && !P::NAMES.contains(&&*name) {
                return Err(unknown(&name, P::NAMES));
            }
            parsed.take(&name, &value)?;
        }
        parsed.normalize();
        parsed.check()?;
        Ok(Self(parsed))
    }
}

extract!([P: Parameters] Query<P>);
