//! The headers that make a request conditional or repeatable.

use std::future::{Ready, ready};

use actix_web::http::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use actix_web::{FromRequest, HttpRequest, dev};

use super::context::body_of;
use super::json::{Version, Whole};
use crate::domain::{Fingerprint, IdempotencyKey, Life, Precondition, Refusal, Stamp, TurnToken};
use crate::service::{ServiceError, WriteOptions};
use crate::web::ApiError;

const TURN_TOKEN: HeaderName = HeaderName::from_static("x-turn-token");
/// The header of a write that the server recognizes when it is repeated.
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// `If-Match` and `Idempotency-Key` of a write.
#[derive(Debug)]
pub(crate) struct WriteConditions {
    pub(crate) options: WriteOptions,
    /// The idempotency key as it was sent.
    pub(crate) key: Option<HeaderValue>,
}

/// `Idempotency-Key` and `x-turn-token` of a write whose body may name the expected version.
#[derive(Debug)]
pub(crate) struct Repeatable {
    pub(crate) idempotency: Option<IdempotencyKey>,
    pub(crate) turn: Option<TurnToken>,
}

/// `Idempotency-Key` of a write that takes no other condition.
#[derive(Debug)]
pub(crate) struct OnlyRepeat(pub(crate) Option<IdempotencyKey>);

/// `If-Match` and `If-None-Match` of a read.
#[derive(Debug)]
pub(crate) struct ReadConditions {
    precondition: Option<Precondition>,
    none_match: Vec<HeaderValue>,
}

impl ReadConditions {
    /// The same without `If-None-Match`.
    pub(crate) fn of_match_alone(self) -> Self {
        Self {
            none_match: Vec::new(),
            ..self
        }
    }

    /// Whether there is a condition.
    pub(crate) fn are_given(&self) -> bool {
        self.precondition.is_some() || !self.none_match.is_empty()
    }

    /// Whether the client already has this version.
    ///
    /// # Errors
    /// [`Refusal::VersionMismatch`] when it wants another one.
    pub(crate) fn check(&self, stamp: Stamp) -> Result<bool, ApiError> {
        if self
            .precondition
            .is_some_and(|wanted| !wanted.is_met_by(stamp))
        {
            let refusal = Refusal::VersionMismatch { current: stamp };
            return Err(ServiceError::Refused(refusal).into());
        }
        if self.none_match.is_empty() {
            return Ok(false);
        }
        let tag = stamp.to_string();
        Ok(self
            .none_match
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|value| names(value.trim(), &tag, stamp)))
    }
}

/// Weak comparison, by RFC 9110, section 13.1.2.
fn names(value: &str, tag: &str, stamp: Stamp) -> bool {
    if value == "*" {
        return stamp.version > 0;
    }
    let value = value.strip_prefix("W/").unwrap_or(value);
    value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'))
        == Some(tag)
}

/// `If-Match` of a request.
///
/// # Errors
/// [`ApiError::InvalidParameter`] for another form than the documented ones.
pub(crate) fn precondition(request: &HttpRequest) -> Result<Option<Precondition>, ApiError> {
    let mut values = request.headers().get_all(IF_MATCH);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(parse_tag);
    match (parsed, values.next()) {
        (Some(precondition), None) => Ok(Some(precondition)),
        _ => Err(ApiError::InvalidParameter(
            "If-Match must be `*`, one whole ETag, or a version in quotes".into(),
        )),
    }
}

fn parse_tag(text: &str) -> Option<Precondition> {
    if text == "*" {
        return Some(Precondition::Exists);
    }
    let tag = text.strip_prefix('"')?.strip_suffix('"')?;
    let version = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    let Some((number, life)) = tag.split_once('-') else {
        return version(tag).map(Precondition::Version);
    };
    let hex = life.len() == 16 && life.bytes().all(|byte| byte.is_ascii_hexdigit());
    let life = hex.then(|| u64::from_str_radix(life, 16).ok())??;
    Some(Precondition::Stamp(Stamp {
        version: version(number)?,
        life: Life(life),
    }))
}

/// `x-turn-token` of a request. A text that is no token is one that no turn has.
///
/// # Errors
/// [`ApiError::InvalidParameter`] if it is given twice.
pub(crate) fn turn(request: &HttpRequest) -> Result<Option<TurnToken>, ApiError> {
    let mut values = request.headers().get_all(TURN_TOKEN);
    let token = values.next().map(|value| {
        let token = value.to_str().ok().and_then(|text| text.parse().ok());
        token.unwrap_or_else(TurnToken::random)
    });
    match values.next() {
        None => Ok(token),
        Some(_) => Err(ApiError::InvalidParameter(
            "x-turn-token must be given once".into(),
        )),
    }
}

/// The key as it was sent, and the data that identifies a repeat: method, path with query, and
/// body.
pub(crate) fn idempotency(
    request: &HttpRequest,
    body: &[u8],
) -> Result<Option<(HeaderValue, IdempotencyKey)>, ApiError> {
    let mut values = request.headers().get_all(IDEMPOTENCY_KEY);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let legal = (1..=128).contains(&value.len())
        && value.as_bytes().iter().all(u8::is_ascii_graphic)
        && values.next().is_none();
    if !legal {
        return Err(ApiError::InvalidParameter(
            "Idempotency-Key must be 1 to 128 visible ASCII characters, and given once".into(),
        ));
    }
    let path = request
        .uri()
        .path_and_query()
        .map_or("", |path| path.as_str());
    let parts = [request.method().as_str().as_bytes(), path.as_bytes(), body];
    let key = IdempotencyKey {
        digest: Fingerprint::of(&[value.as_bytes()]),
        request: Fingerprint::of(&parts),
    };
    Ok(Some((value.clone(), key)))
}

impl WriteConditions {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        if request.headers().contains_key(IF_NONE_MATCH) {
            // it would refer to the one key, but writes are conditional on the thread
            let detail = "If-None-Match is for reads; `If-Match: \"0\"` wants a new thread";
            return Err(ApiError::InvalidParameter(detail.into()));
        }
        let body = body_of(request)?;
        let precondition = precondition(request)?;
        let (key, idempotency) = idempotency(request, &body)?.unzip();
        Ok(Self {
            options: WriteOptions {
                precondition,
                turn: turn(request)?,
                idempotency,
            },
            key,
        })
    }
}

impl Repeatable {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let headers = request.headers();
        if headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MATCH) {
            let detail = "If-Match and If-None-Match are for threads and their states";
            return Err(ApiError::InvalidParameter(detail.into()));
        }
        Self::with_body(request, &body_of(request)?)
    }

    /// The same for a protocol that has the body, and no other conditions.
    ///
    /// # Errors
    /// [`ApiError::InvalidParameter`].
    pub(crate) fn with_body(request: &HttpRequest, body: &[u8]) -> Result<Self, ApiError> {
        let idempotency = idempotency(request, body)?;
        Ok(Self {
            idempotency: idempotency.map(|(_, key)| key),
            turn: turn(request)?,
        })
    }

    /// Conditions of a write to a scope.
    pub(crate) fn options(&self, if_version: Option<Version>) -> WriteOptions {
        WriteOptions {
            precondition: if_version.map(|Whole(version)| Precondition::Version(version)),
            turn: self.turn,
            idempotency: self.idempotency,
        }
    }
}

impl OnlyRepeat {
    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let key = idempotency(request, &body_of(request)?)?;
        Ok(Self(key.map(|(_, key)| key)))
    }
}

impl FromRequest for OnlyRepeat {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}

impl FromRequest for Repeatable {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}

impl FromRequest for WriteConditions {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}

impl FromRequest for ReadConditions {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        let none_match = request.headers().get_all(IF_NONE_MATCH).cloned().collect();
        ready(precondition(request).map(|precondition| Self {
            precondition,
            none_match,
        }))
    }
}
