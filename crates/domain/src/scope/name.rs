use std::fmt;
use std::str::FromStr;

use super::ScopeError;

const MAX_CHARS: usize = 128;

/// The id of a session, tool or personality: 1 to 128 characters, without white space or control characters.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ScopeName(Box<str>);

impl ScopeName {
    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ScopeName {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_hidden = |char: char| char.is_whitespace() || char.is_control();
        if text.is_empty() || text.chars().any(is_hidden) || text.chars().count() > MAX_CHARS {
            return Err(ScopeError::Name);
        }
        Ok(Self(text.into()))
    }
}

/// Hides the name from logs, because clients choose the names, and a name may identify its client.
impl fmt::Debug for ScopeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScopeName({} bytes)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_holds_at_its_edges() {
        for good in ["a", "a:b/c", "é", &"x".repeat(128), &"é".repeat(128)] {
            assert!(good.parse::<ScopeName>().is_ok());
        }
        for bad in ["", " ", "a b", "a\u{7f}", "a\u{a0}", &"x".repeat(129)] {
            assert_eq!(bad.parse::<ScopeName>(), Err(ScopeError::Name));
        }
    }
}
