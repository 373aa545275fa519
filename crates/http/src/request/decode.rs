use std::borrow::Cow;

use actix_web::HttpRequest;
use percent_encoding::percent_decode_str;

/// Decodes percent-encoding (RFC 3986, section 2.1). Returns `None` if a `%` is not followed by two hex digits, or if
/// the result is not UTF-8.
pub(super) fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'%', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut escapes = text.split('%').skip(1);
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !escapes.all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

/// Returns the path part `index`, decoded. Part 0 is empty. Decodes the original path, because the router's decoding is
/// lossy.
pub fn path_part(request: &HttpRequest, index: usize) -> Option<Cow<'_, str>> {
    let path = request.uri().path().as_bytes();
    let part = path.split(|byte| *byte == b'/').nth(index);
    percent_decode(str::from_utf8(part.unwrap_or_default()).ok()?)
}

/// Splits a query into names and values, without decoding them.
pub fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Decodes percent-encoding, and decodes `+` as a space, because browsers encode spaces in forms as `+`.
pub fn decode_parameter(text: &str) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'+', text.as_bytes()).is_none() {
        return percent_decode(text);
    }
    let decoded = percent_decode(&text.replace('+', " "))?.into_owned();
    Some(Cow::Owned(decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_complete_escapes_of_utf_8_are_decoded() {
        assert_eq!(percent_decode("a%20b%2F%C3%A9").unwrap(), "a b/é");
        assert_eq!(percent_decode("a+b").unwrap(), "a+b");
        for bad in ["%", "%2", "%zz", "a%2", "%FF", "%é0", "%C3"] {
            assert_eq!(percent_decode(bad), None, "{bad}");
        }
    }
}
