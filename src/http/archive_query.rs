//! Which archives are asked for.

use super::error::ApiError;
use super::query::{Parameters, set_once, unknown, whole};
use crate::domain::{Life, parse_rfc3339};

/// Archives of a page, where no limit is given.
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// `?since=&cursor=&limit=`.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) since_ms: Option<u64>,
    pub(super) cursor: Option<String>,
    limit: Option<usize>,
}

/// `?life=`.
#[derive(Debug, Default)]
pub(super) struct OfLife(pub(super) Option<Life>);

impl Listing {
    /// How many there are on a page.
    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(LIMIT)
    }
}

impl Parameters for Listing {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        match name {
            "since" => {
                let malformed = "has to be a time as in RFC 3339, and given once";
                set_once(&mut self.since_ms, parse_rfc3339(value), name, malformed)
            }
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

impl Parameters for OfLife {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if name != "life" {
            return Err(unknown(name));
        }
        let is_hex = value.len() == 16 && value.bytes().all(|byte| byte.is_ascii_hexdigit());
        let life = is_hex.then(|| u64::from_str_radix(value, 16).ok().map(Life));
        let malformed = "has to be 16 hex digits, and given once";
        set_once(&mut self.0, life.flatten(), name, malformed)
    }
}
