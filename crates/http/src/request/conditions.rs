use actix_web::HttpRequest;
use actix_web::http::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};

use super::context::body_of;
use super::json::{Version, Whole};
use crate::answer::ApiResult;
use crate::request::extract::extract;
use crate::request::invalid;
use threadkeep_domain::{
    Fingerprint, IdempotencyKey, Life, Precondition, Stamp, Tag, Tags, TurnToken,
};
use threadkeep_service::{ServiceError, WriteOptions};
use threadkeep_web::ApiError;

const TURN_TOKEN: HeaderName = HeaderName::from_static("x-turn-token");
const THREAD_LIFE: HeaderName = HeaderName::from_static("x-thread-life");
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

#[derive(Debug)]
pub(crate) struct WriteConditions {
    pub(crate) options: WriteOptions,
    /// The idempotency key as the client sent it.
    pub(crate) key: Option<HeaderValue>,
}

/// The headers `Idempotency-Key` and `x-turn-token` of a write that does not use `If-Match`.
#[derive(Debug)]
pub struct Repeatable {
    pub(crate) idempotency: Option<IdempotencyKey>,
    pub(crate) turn: Option<TurnToken>,
}

#[derive(Debug)]
pub(crate) struct OptionalIdempotencyKey(pub(crate) Option<IdempotencyKey>);

#[derive(Debug)]
pub(crate) struct ReadConditions {
    precondition: Option<Precondition>,
    none_match: Vec<HeaderValue>,
}

impl ReadConditions {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        Ok(Self {
            precondition: precondition(request)?,
            none_match: request.headers().get_all(IF_NONE_MATCH).cloned().collect(),
        })
    }

    pub(crate) fn without_none_match(self) -> Self {
        Self {
            none_match: Vec::new(),
            ..self
        }
    }

    pub(crate) fn has_conditions(&self) -> bool {
        self.precondition.is_some() || !self.none_match.is_empty()
    }

    /// Returns whether the client already has the version `stamp`. Fails if the client requires a different version.
    pub(crate) fn check(&self, stamp: Stamp) -> ApiResult<bool> {
        Precondition::check(self.precondition, stamp).map_err(ServiceError::Refused)?;
        if self.none_match.is_empty() {
            return Ok(false);
        }
        let tag = stamp.to_string();
        Ok(self
            .none_match
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|value| matches_tag(value.trim(), &tag, stamp)))
    }
}

/// Returns whether `value` matches `tag`, using the weak comparison of RFC 9110, section 13.1.2.
fn matches_tag(value: &str, tag: &str, stamp: Stamp) -> bool {
    if value == "*" {
        return stamp.version > 0;
    }
    let value = value.strip_prefix("W/").unwrap_or(value);
    value
        .strip_prefix('"')
        .and_then(|value| value.strip_suffix('"'))
        == Some(tag)
}

/// Parses `If-Match` and `x-thread-life`.
pub(crate) fn precondition(request: &HttpRequest) -> ApiResult<Option<Precondition>> {
    let wanted = if_match(request)?;
    let mut lives = request.headers().get_all(THREAD_LIFE);
    let Some(value) = lives.next() else {
        return Ok(wanted);
    };
    let life = value.to_str().ok().and_then(parse_life);
    let (Some(life), None) = (life, lives.next()) else {
        let detail =
            "x-thread-life must be the 16 hex digits after the hyphen of an ETag, given once";
        return Err(invalid(detail));
    };
    Ok(Some(wanted.map_or(Precondition::Life(life), |wanted| {
        wanted.within(life)
    })))
}

pub(crate) fn if_match(request: &HttpRequest) -> ApiResult<Option<Precondition>> {
    let mut values = request.headers().get_all(IF_MATCH).peekable();
    if values.peek().is_none() {
        return Ok(None);
    }
    let values: Option<Vec<_>> = values.map(|value| value.to_str().ok()).collect();
    let parsed = values.and_then(|values| parse_list(&values.join(",")));
    parsed.map(Some).ok_or_else(|| {
        invalid(format!(
            "If-Match must be `*`, or up to {} whole ETags or versions in quotes",
            Tags::MAX
        ))
    })
}

/// Parses a list of entity tags (RFC 9110, section 13.1.1). Drops weak tags, which never match `If-Match`.
fn parse_list(text: &str) -> Option<Precondition> {
    if text.trim() == "*" {
        return Some(Precondition::Exists);
    }
    let members: Vec<_> = text.split(',').map(str::trim).collect();
    if let [only] = members[..]
        && !is_weak(only)
    {
        return parse_tag(only).map(Precondition::from);
    }
    let strong = members.into_iter().filter(|member| !is_weak(member));
    let tags = strong
        .map(parse_tag)
        .try_fold(Tags::default(), |tags, tag| tags.with(tag?));
    tags.map(Precondition::OneOf)
}

fn is_weak(tag: &str) -> bool {
    let tag = tag
        .strip_prefix("W/\"")
        .and_then(|tag| tag.strip_suffix('"'));
    tag.is_some_and(|tag| !tag.contains('"'))
}

fn parse_tag(text: &str) -> Option<Tag> {
    let tag = text.strip_prefix('"')?.strip_suffix('"')?;
    let version = |text: &str| -> Option<u64> {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    let Some((number, life)) = tag.split_once('-') else {
        let version = version(tag)?;
        return Some(Tag {
            version,
            life: None,
        });
    };
    Some(Tag {
        version: version(number)?,
        life: Some(parse_life(life)?),
    })
}

fn parse_life(text: &str) -> Option<Life> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let life = is_hex.then(|| u64::from_str_radix(text, 16).ok())??;
    Some(Life(life))
}

/// Parses `x-turn-token`. Replaces a malformed token with a random token, which does not match any turn.
pub fn turn(request: &HttpRequest) -> Result<Option<TurnToken>, ApiError> {
    let mut values = request.headers().get_all(TURN_TOKEN);
    let token = values.next().map(|value| {
        let token = value.to_str().ok().and_then(|text| text.parse().ok());
        token.unwrap_or_else(TurnToken::random)
    });
    match values.next() {
        None => Ok(token),
        Some(_) => Err(invalid("x-turn-token must be given once")),
    }
}

/// Returns the idempotency key as the client sent it, and the digests of the key and the request. The digest of the
/// request covers method, path, query and body, which are the same in a retry.
pub fn idempotency(
    request: &HttpRequest,
    body: &[u8],
) -> Result<Option<(HeaderValue, IdempotencyKey)>, ApiError> {
    let mut values = request.headers().get_all(IDEMPOTENCY_KEY);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let is_valid = (1..=128).contains(&value.len())
        && value.as_bytes().iter().all(u8::is_ascii_graphic)
        && values.next().is_none();
    if !is_valid {
        return Err(invalid(
            "Idempotency-Key must be 1 to 128 visible ASCII characters, and given once",
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
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        if request.headers().contains_key(IF_NONE_MATCH) {
            // `If-None-Match` would apply to the key in the path, but write conditions apply to the whole thread
            return Err(invalid(
                "If-None-Match is for reads; `If-Match: \"0\"` wants a new thread",
            ));
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
    pub(crate) fn of(request: &HttpRequest) -> ApiResult<Self> {
        let headers = request.headers();
        if [IF_MATCH, IF_NONE_MATCH, THREAD_LIFE]
            .iter()
            .any(|name| headers.contains_key(name))
        {
            let detail =
                "If-Match, If-None-Match and x-thread-life are for threads and their states";
            return Err(invalid(detail));
        }
        Self::with_body(request, &body_of(request)?)
    }

    /// Parses the headers for a protocol that has already read the body.
    pub fn with_body(request: &HttpRequest, body: &[u8]) -> Result<Self, ApiError> {
        let idempotency = idempotency(request, body)?;
        Ok(Self {
            idempotency: idempotency.map(|(_, key)| key),
            turn: turn(request)?,
        })
    }

    pub fn options(&self, if_version: Option<Version>) -> WriteOptions {
        WriteOptions {
            precondition: if_version.map(|Whole(version)| Precondition::Version(version)),
            turn: self.turn,
            idempotency: self.idempotency,
        }
    }
}

impl OptionalIdempotencyKey {
    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let key = idempotency(request, &body_of(request)?)?;
        Ok(Self(key.map(|(_, key)| key)))
    }
}

extract!(
    OptionalIdempotencyKey,
    ReadConditions,
    Repeatable,
    WriteConditions
);
