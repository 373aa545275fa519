use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

pub(super) const TASKS: &str = "threadkeep://tasks";
pub(super) const KEY_TEMPLATE: &str = "threadkeep://kv/{key}";

const KEYS: &str = "threadkeep://kv/";
/// Characters that are percent-encoded in the simple expansion of a URI template (RFC 6570, section 3.2.2).
const RESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Tasks,
    Key(Cow<'a, str>),
}

impl<'a> Part<'a> {
    /// Parses a URI. A key may contain an unencoded `/`.
    pub(super) fn of(uri: &'a str) -> Option<Self> {
        if uri == TASKS {
            return Some(Self::Tasks);
        }
        let key = uri.strip_prefix(KEYS)?;
        percent_decode_str(key).decode_utf8().ok().map(Self::Key)
    }
}

pub(super) fn of_key(key: &str) -> String {
    format!("{KEYS}{}", utf8_percent_encode(key, &RESERVED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_survives_a_round_trip() {
        for key in ["user/name", "a.b-c_d~e", "", "é ?#%/{}\n"] {
            assert_eq!(Part::of(&of_key(key)), Some(Part::Key(key.into())));
        }
        assert_eq!(of_key("user/name"), "threadkeep://kv/user%2Fname");
        let plain = Part::of("threadkeep://kv/user/name");
        assert_eq!(plain, Some(Part::Key("user/name".into())));
    }

    #[test]
    fn other_uris_are_rejected() {
        for uri in [
            "",
            "threadkeep://tasks/",
            "threadkeep://kv",
            "threadkeep://keys/a",
            "https://kv/a",
            "threadkeep://kv/%ff",
        ] {
            assert_eq!(Part::of(uri), None, "{uri}");
        }
    }
}
