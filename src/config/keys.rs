//! Lists of named secrets among the settings.

use super::error::{Fault, SettingsError};
use super::given::Given;
use crate::domain::{self, NamedSecret};

/// Reads the list.
pub(super) fn named_secrets(given: &Given) -> Result<Vec<NamedSecret<'_>>, SettingsError> {
    domain::named_secrets(given.items()).map_err(|error| {
        given.refuse(Fault::Key {
            number: error.number,
            rule: error.rule,
        })
    })
}
