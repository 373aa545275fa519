//! Lists of named secrets: `name:secret,name:secret`.

use std::collections::HashSet;

use super::error::{Fault, SettingsError};
use super::given::Given;

/// Bytes that a secret has to have, as those of the digest that it keys
/// ([RFC 2104](https://www.rfc-editor.org/rfc/rfc2104), section 3).
pub(super) const SECRET_BYTES: usize = 32;

/// A named secret.
#[derive(Clone, Copy)]
pub(super) struct NamedSecret<'a> {
    pub(super) name: &'a str,
    pub(super) secret: &'a str,
}

/// Reads the list; names end at the first colon.
pub(super) fn named_secrets(given: &Given) -> Result<Vec<NamedSecret<'_>>, SettingsError> {
    let mut names = HashSet::new();
    let mut keys = Vec::new();
    for (place, item) in given.items().enumerate() {
        let fault = |rule| {
            let number = place + 1;
            given.refuse(Fault::Key { number, rule })
        };
        let (name, secret) = item
            .split_once(':')
            .ok_or_else(|| fault("it has to be `name:secret`"))?;
        if !is_name(name, 64) {
            return Err(fault(
                "its name has to be 1 to 64 of A-Z, a-z, 0-9, `.`, `_`, `-`",
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

/// Whether a text is a name: 1 to `max` of `A-Za-z0-9._-`.
pub(crate) fn is_name(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
