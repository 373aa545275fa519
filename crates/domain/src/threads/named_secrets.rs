//! Parses lists of named secrets, `name:secret,name:secret`.

use std::collections::HashSet;
use std::fmt;

/// Minimum size of a signing secret in bytes. [RFC 2104](https://www.rfc-editor.org/rfc/rfc2104), section 3, recommends
/// at least the output size of the hash function, which is 32 bytes for SHA-256.
pub const SECRET_BYTES: usize = 32;

/// A named secret. `Debug` hides the secret.
#[derive(Clone, Copy)]
pub struct NamedSecret<'a> {
    /// The name, unique in the list.
    pub name: &'a str,
    /// The secret.
    pub secret: &'a str,
}

impl fmt::Debug for NamedSecret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedSecret")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// An invalid item in a list of named secrets. The error does not contain the item, which may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("key {number} is invalid: {rule}")]
pub struct NamedSecretError {
    /// Position of the item in the list, starting at 1.
    pub number: usize,
    /// The violated rule.
    pub rule: &'static str,
}

/// Parses the items of a list. A name ends at the first colon.
pub fn named_secrets<'a>(
    items: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<NamedSecret<'a>>, NamedSecretError> {
    let mut names = HashSet::new();
    let mut keys = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let fault = |rule| NamedSecretError {
            number: index + 1,
            rule,
        };
        let (name, secret) = item
            .split_once(':')
            .ok_or_else(|| fault("it must be `name:secret`"))?;
        if !is_name(name, 64) {
            return Err(fault(
                "its name must be 1 to 64 of A-Z, a-z, 0-9, `.`, `_`, `-`",
            ));
        }
        if secret.is_empty() {
            return Err(fault("its secret is empty"));
        }
        if secret.chars().any(char::is_control) {
            return Err(fault(
                "its secret has a line break or another control character; commas part the keys",
            ));
        }
        if !names.insert(name) {
            return Err(fault("its name is taken by an earlier one"));
        }
        keys.push(NamedSecret { name, secret });
    }
    Ok(keys)
}

/// Returns whether `text` is a name: 1 to `max` characters of `A-Za-z0-9._-`.
pub fn is_name(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
