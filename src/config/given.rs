use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use super::{Fault, SettingsError, text_file};

#[derive(Clone)]
pub(super) struct Given {
    pub(super) name: &'static str,
    pub(super) origin: String,
    text: String,
}

impl Given {
    pub(super) fn new(name: &'static str, text: String, origin: String) -> Self {
        Self { name, origin, text }
    }

    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }

    /// Returns the trimmed text unless it is empty.
    pub(super) fn filled(&self) -> Option<&str> {
        Some(self.text()).filter(|text| !text.is_empty())
    }

    pub(super) fn items(&self) -> impl Iterator<Item = &str> {
        let items = self.text.split(',').map(str::trim);
        items.filter(|item| !item.is_empty())
    }

    pub(super) fn parse<T: FromStr>(&self, expected: &'static str) -> Result<T, SettingsError> {
        let parsed = self.text().parse();
        parsed.map_err(|_| self.refuse(Fault::Expected(expected)))
    }

    pub(super) fn within(
        &self,
        range: RangeInclusive<u64>,
        expected: &'static str,
    ) -> Result<u64, SettingsError> {
        match self.parse(expected)? {
            number if range.contains(&number) => Ok(number),
            _ => Err(self.refuse(Fault::Expected(expected))),
        }
    }

    pub(super) fn one_of<T: Copy>(
        &self,
        choices: &[(&str, T)],
        expected: &'static str,
    ) -> Result<T, SettingsError> {
        let choice = choices.iter().find(|(name, _)| *name == self.text());
        let (_, choice) = choice.ok_or_else(|| self.refuse(Fault::Expected(expected)))?;
        Ok(*choice)
    }

    /// Returns this setting, or the content of the file that `file` names. Setting both is an error.
    pub(super) fn or_file(self, file: Self) -> Result<Self, SettingsError> {
        let Some(path) = file.filled() else {
            return Ok(self);
        };
        if self.filled().is_some() {
            return Err(self.refuse(Fault::Both(file.name)));
        }
        let text = file.read(path, text_file::read_text)?;
        Ok(Self {
            text,
            origin: path.into(),
            ..self
        })
    }

    pub(super) fn file(&self) -> Result<Option<Vec<u8>>, SettingsError> {
        let path = self.filled();
        path.map(|path| self.read(path, text_file::read))
            .transpose()
    }

    pub(super) fn refuse(&self, fault: Fault) -> SettingsError {
        SettingsError::Invalid {
            name: self.name.into(),
            origin: self.origin.clone(),
            fault,
        }
    }

    fn read<T>(
        &self,
        path: &str,
        read: impl Fn(&Path) -> std::io::Result<T>,
    ) -> Result<T, SettingsError> {
        read(Path::new(path)).map_err(|error| self.refuse(Fault::Unreadable(path.into(), error)))
    }
}
