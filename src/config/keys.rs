use super::{Fault, Given, SettingsError};
use threadkeep_domain as domain;
use threadkeep_domain::NamedSecret;

pub(super) fn named_secrets(given: &Given) -> Result<Vec<NamedSecret<'_>>, SettingsError> {
    domain::named_secrets(given.items()).map_err(|error| {
        given.refuse(Fault::Key {
            number: error.number,
            rule: error.rule,
        })
    })
}
