//! Query parameters. Those that a path does not know are refused.

use std::future::{Ready, ready};
use std::num::NonZeroU64;

use actix_web::{FromRequest, HttpRequest, dev};

use super::decode::{decode_parameter, parameters};
use crate::domain::{Excerpt, Key, KeyError, Slice};
use crate::web::ApiError;

/// A set of parameters that a path knows.
pub(crate) trait Parameters: Default {
    /// Takes one parameter.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`] when it is unknown or malformed, or came before.
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError>;

    /// Brings the parameters into their final form.
    fn settle(&mut self) {}

    /// Checks the parameters together.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`] when they do not go together.
    fn check(&self) -> Result<(), ApiError> {
        Ok(())
    }
}

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Query<P>(pub(crate) P);

/// No parameter at all.
#[derive(Debug, Default)]
pub(crate) struct Nothing;

/// `?key=a&key=b`.
#[derive(Debug, Default)]
pub(crate) struct Keys(pub(crate) Vec<Key>);

/// `?tail=` or `?offset=&limit=`.
#[derive(Debug, Default)]
pub(crate) struct Part {
    tail: Option<u64>,
    offset: Option<u64>,
    limit: Option<u64>,
}

/// `?max_records=`.
#[derive(Debug, Default)]
pub(crate) struct Window {
    pub(crate) max_records: Option<NonZeroU64>,
}

/// `?cursor=&limit=`.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) cursor: Option<String>,
    limit: Option<usize>,
}

/// What a page has, where no limit is given, and at most.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_000;

impl Page {
    /// Whether any of it was asked for.
    pub(crate) fn is_given(&self) -> bool {
        self.cursor.is_some() || self.limit.is_some()
    }

    /// How much there is on it.
    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(LIMIT)
    }
}

impl Part {
    /// Which part of an array is asked for, if any.
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
    fn take(&mut self, name: &str, _: &str) -> Result<(), ApiError> {
        Err(unknown(name))
    }
}

impl Parameters for Keys {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if name != "key" {
            return Err(unknown(name));
        }
        let key = Key::new(value).map_err(|error| ApiError::InvalidKey {
            error,
            operation: None,
        })?;
        self.0.push(key);
        Ok(())
    }

    /// A key that is asked for twice is there once: a long list of one large value would cost the
    /// store many times its size.
    fn settle(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }
}

impl Parameters for Part {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        let place = match name {
            "tail" => &mut self.tail,
            "offset" => &mut self.offset,
            "limit" => &mut self.limit,
            _ => return Err(unknown(name)),
        };
        let malformed = "has to be a whole number from 0, and given once";
        set_once(place, whole(value), name, malformed)
    }

    fn check(&self) -> Result<(), ApiError> {
        if self.tail.is_some() && (self.offset.is_some() || self.limit.is_some()) {
            let detail = "`tail` does not go with `offset` and `limit`";
            return Err(ApiError::InvalidParameter(detail.into()));
        }
        Ok(())
    }
}

impl Parameters for Page {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        match name {
            "cursor" => {
                let text = Some(value.to_owned());
                set_once(&mut self.cursor, text, name, "has to be given once")
            }
            "limit" => {
                let malformed = "has to be a whole number from 1 to 1000, and given once";
                let limit = whole(value).and_then(|limit| usize::try_from(limit).ok());
                let limit = limit.filter(|limit| (1..=LIMIT_MAX).contains(limit));
                set_once(&mut self.limit, limit, name, malformed)
            }
            _ => Err(unknown(name)),
        }
    }
}

impl Parameters for Window {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if name != "max_records" {
            return Err(unknown(name));
        }
        let malformed = "has to be a whole number from 1, and given once";
        let number = whole(value).and_then(NonZeroU64::new);
        set_once(&mut self.max_records, number, name, malformed)
    }
}

/// A parameter that there is none of.
pub(crate) fn unknown(name: &str) -> ApiError {
    let name = Excerpt(name);
    ApiError::InvalidParameter(format!("There is no query parameter `{name}` here"))
}

/// Digits alone: a sign or a space is none. What is past 64 bits is as good as no bound.
pub(crate) fn whole(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.parse().unwrap_or(u64::MAX))
}

/// Sets what is not set yet.
///
/// # Errors
/// [`ApiError::InvalidParameter`] when it is, or when there is no value, as what was given is
/// malformed.
pub(crate) fn set_once<T>(
    place: &mut Option<T>,
    value: Option<T>,
    name: &str,
    malformed: &str,
) -> Result<(), ApiError> {
    if value.is_none() || place.is_some() {
        return Err(ApiError::InvalidParameter(format!("`{name}` {malformed}")));
    }
    *place = value;
    Ok(())
}

/// A name or value that does not decode.
fn undecodable(name: &str) -> ApiError {
    if name == "key" {
        return ApiError::InvalidKey {
            error: KeyError::Utf8,
            operation: None,
        };
    }
    ApiError::InvalidParameter("A query parameter is not percent-encoded UTF-8".into())
}

impl<P: Parameters> Query<P> {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let mut taken = P::default();
        for (name, value) in parameters(request.query_string()) {
            let name = decode_parameter(name).ok_or_else(|| undecodable(name))?;
            let value = decode_parameter(value).ok_or_else(|| undecodable(&name))?;
            taken.take(&name, &value)?;
        }
        taken.settle();
        taken.check()?;
        Ok(Self(taken))
    }
}

impl<P: Parameters> FromRequest for Query<P> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}
