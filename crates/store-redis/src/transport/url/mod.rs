//! Splits a Redis URL into its parts. Rejects URLs that have parts without effect.

mod error;
mod login;
mod parameters;

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use percent_encoding::percent_decode_str;

use super::Host;
pub use error::RedisUrlError;
pub(super) use login::Login;
use parameters::Parameters;

pub(super) struct Parts<'a> {
    pub(super) login: Login,
    hosts: &'a str,
    /// The text between `/` and `?`, without a trailing `/`.
    pub(super) path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    pub(super) fn read(rest: &'a str) -> Result<Self, RedisUrlError> {
        let (rest, query) = split_query(rest);
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (Some(credentials), hosts),
            None => (None, authority),
        };
        Ok(Self {
            login: Login::read(credentials)?,
            hosts,
            path: path.strip_suffix('/').unwrap_or(path),
            query,
        })
    }

    pub(super) fn hosts(&self, default_port: u16) -> Result<Vec<Host>, RedisUrlError> {
        let hosts = self.hosts.split(',');
        hosts.map(|text| host(text, default_port)).collect()
    }

    pub(super) fn parameters(&self, allowed: &[&str]) -> Result<Parameters<'a>, RedisUrlError> {
        Parameters::read(self.query, allowed)
    }
}

pub(super) fn socket<'a>(
    rest: &'a str,
    allowed: &[&str],
) -> Result<(String, Parameters<'a>), RedisUrlError> {
    let (path, query) = split_query(rest);
    if !path.starts_with('/') || path.ends_with('/') {
        return Err(RedisUrlError::Host);
    }
    Ok((decode(path)?, Parameters::read(query, allowed)?))
}

pub(super) fn database(text: &str) -> Result<i64, RedisUrlError> {
    match text {
        "" => Ok(0),
        digits => number(digits),
    }
}

pub(super) fn decode(text: &str) -> Result<String, RedisUrlError> {
    let mut escapes = text.split('%').skip(1).map(|rest| rest.as_bytes().get(..2));
    let is_escape =
        |digits: Option<&[u8]>| digits.is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit));
    if !escapes.all(is_escape) {
        return Err(RedisUrlError::Host);
    }
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(Into::into).map_err(|_| RedisUrlError::Host)
}

fn split_query(rest: &str) -> (&str, Option<&str>) {
    match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    }
}

/// Parses a name, an IPv4 address, or an IPv6 address in brackets, with an optional port.
fn host(text: &str, default_port: u16) -> Result<Host, RedisUrlError> {
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or(RedisUrlError::Host)?;
            let address: Ipv6Addr = address.parse().map_err(|_| RedisUrlError::Host)?;
            (address.to_string(), port)
        }
        None => {
            let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            let is_name_character = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
            if name.is_empty() || !name.chars().all(is_name_character) {
                return Err(RedisUrlError::Host);
            }
            (name.to_owned(), port)
        }
    };
    if name.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified()) {
        return Err(RedisUrlError::Host);
    }
    let port = match port.strip_prefix(':') {
        Some(digits) => number(digits)?,
        None if port.is_empty() => default_port,
        None => return Err(RedisUrlError::Host),
    };
    match port {
        0 => Err(RedisUrlError::Host),
        port => Ok(Host::new(name, port)),
    }
}

/// Parses a number that consists only of digits. `FromStr` would also accept a sign.
fn number<T: FromStr>(text: &str) -> Result<T, RedisUrlError> {
    let number = text.parse().ok();
    let number = number.filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    number.ok_or(RedisUrlError::Host)
}
