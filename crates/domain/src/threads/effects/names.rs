use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::{Heap, Json};

/// Maximum size of an id, a tool's name or a hash in bytes.
const NAME_MAX_BYTES: usize = 128;

/// A malformed name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EffectNameError {
    /// The id of an effect is malformed.
    #[error("the id of a tool call has 1 to 128 visible ASCII characters")]
    Id,
    /// The hash of the arguments is malformed.
    #[error("the hash of the arguments has 1 to 128 visible ASCII characters")]
    Hash,
    /// The name of the tool is empty or too long.
    #[error("the name of a tool has 1 to 128 bytes")]
    Tool,
}

macro_rules! name {
    ($(#[$about:meta])* $name:ident, $fault:ident, $is_allowed:expr) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Box<str>);

        impl $name {
            /// Returns the text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = EffectNameError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let is_allowed: fn(u8) -> bool = $is_allowed;
                if text.is_empty() || text.len() > NAME_MAX_BYTES || !text.bytes().all(is_allowed) {
                    return Err(EffectNameError::$fault);
                }
                Ok(Self(text.into()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Heap for $name {
            fn heap_bytes(&self) -> u64 {
                crate::heap::block(self.0.len())
            }
        }
    };
}

name! {
    /// The id of an effect: 1 to 128 visible ASCII characters. Usually the id that a model gave to its tool call.
    EffectId, Id, |byte| byte.is_ascii_graphic()
}

name! {
    /// The name of a tool: 1 to 128 bytes.
    ToolName, Tool, |_| true
}

name! {
    /// A hash of the arguments of a tool call: 1 to 128 visible ASCII characters.
    InputHash, Hash, |byte| byte.is_ascii_graphic()
}

impl InputHash {
    /// Returns the SHA-256 hash of the arguments as compact JSON, in hex. Missing arguments count as `null`.
    #[must_use]
    pub fn of(arguments: Option<&Json>) -> Self {
        let text = arguments.map_or("null", Json::as_str);
        Self(hex::encode(Sha256::digest(text)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outside_their_bounds_are_refused() {
        let longest = "x".repeat(128);
        assert!(longest.parse::<EffectId>().is_ok());
        assert!("é".repeat(64).parse::<ToolName>().is_ok());
        for bad in ["", "a b", "é", "\u{7f}", &"x".repeat(129)] {
            assert_eq!(bad.parse::<EffectId>(), Err(EffectNameError::Id), "{bad}");
            assert_eq!(
                bad.parse::<InputHash>(),
                Err(EffectNameError::Hash),
                "{bad}"
            );
        }
        for bad in ["", &"é".repeat(65)] {
            assert_eq!(bad.parse::<ToolName>(), Err(EffectNameError::Tool), "{bad}");
        }
    }

    #[test]
    fn arguments_that_differ_only_in_white_space_have_the_same_hash() {
        let of = |text| InputHash::of(Some(&Json::parse(text).unwrap()));

        assert_eq!(of(r#"{"a": [1, 2]}"#), of(r#"{"a":[1,2]}"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":1.0}"#));
        assert_eq!(InputHash::of(None), of("null"));
        // printf null | sha256sum
        assert_eq!(
            InputHash::of(None).as_str(),
            "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"
        );
    }
}
