use std::collections::BTreeSet;
use std::fmt;

use config::{ConfigError, Map, Value, ValueKind};

use super::catalog::Setting;
use super::mask::mask;
use super::{Fault, Given, Renamed, SettingsError, Warning};

/// The text and the source of every setting, in the order of the default file.
#[derive(Clone)]
pub struct Values {
    given: Vec<Given>,
    renamed: BTreeSet<Renamed>,
}

/// The value and the source of every setting, one setting per line. Secrets are masked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance(Vec<[String; 3]>);

impl Values {
    pub(super) fn new(
        settings: &[Setting],
        mut table: Map<String, Value>,
        renamed: BTreeSet<Renamed>,
    ) -> Result<Self, SettingsError> {
        let given = settings.iter().filter_map(|setting| {
            let value = table.remove(setting.name)?;
            let origin = value.origin().unwrap_or_default().to_owned();
            let text = text(value).map_err(|_| SettingsError::Invalid {
                name: setting.name.into(),
                origin: origin.clone(),
                fault: Fault::Expected("a text, a number, true or false, or an array of those"),
            });
            Some(text.map(|text| Given::new(setting.name, text, origin)))
        });
        let given = given.collect::<Result<_, _>>()?;
        Ok(Self { given, renamed })
    }

    #[must_use]
    pub fn provenance(&self) -> Provenance {
        let row = |given: &Given| {
            let value = mask(given.name, given.text());
            [given.name.into(), value, given.origin.clone()]
        };
        Provenance(self.given.iter().map(row).collect())
    }

    /// Removes a setting and returns it, so that a test can check that no setting remains unread. Panics if the default
    /// file has no such setting, or if the setting was already taken.
    pub(super) fn take(&mut self, name: &str) -> Given {
        let index = self.given.iter().position(|given| given.name == name);
        self.given
            .remove(index.expect("the default file has every setting, and each is read once"))
    }

    pub(super) fn renamed(&self) -> impl Iterator<Item = Warning> {
        let rows = self.renamed.iter();
        rows.map(|(earlier, present)| Warning::Renamed { earlier, present })
    }

    /// Returns whether a setting has a value. Always false after the setting has been taken.
    pub(super) fn is_filled(&self, name: &str) -> bool {
        let given = self.given.iter().find(|given| given.name == name);
        given.is_some_and(|given| given.filled().is_some())
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<&str> {
        self.given.iter().map(|given| given.name).collect()
    }
}

impl Provenance {
    pub fn rows(&self) -> impl Iterator<Item = &[String; 3]> {
        self.0.iter()
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.provenance().fmt(f)
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let widths = self.0.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or_default()
        };
        let (names, values) = (width(0), width(1));
        for [name, value, origin] in &self.0 {
            writeln!(f, "{name:names$}  {value:values$}  {origin}")?;
        }
        Ok(())
    }
}

/// Formats a value as text; an array becomes a comma-separated list.
fn text(value: Value) -> Result<String, ConfigError> {
    match value.kind {
        ValueKind::Array(items) => {
            let texts: Result<Vec<_>, _> = items.into_iter().map(Value::into_string).collect();
            texts.map(|texts| texts.join(","))
        }
        _ => value.into_string(),
    }
}
