//! The list of settings, parsed from the headings, keys and comments in the default settings file.

use super::earlier_names;

/// The default settings file. It documents each setting, and the server reads the defaults from it.
pub const DEFAULT_FILE: &str = include_str!("default.toml");

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub group: &'static str,
    pub name: &'static str,
    /// The default, as TOML.
    pub default: &'static str,
    pub help: String,
}

impl Setting {
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut settings = Vec::new();
        let mut help = Vec::new();
        let mut group = "";
        for line in DEFAULT_FILE.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                group = heading;
            } else if let Some(comment) = line.strip_prefix('#') {
                help.push(comment.strip_prefix(' ').unwrap_or(comment));
            } else if let Some((name, default)) = line.split_once(" = ") {
                settings.push(Self {
                    group,
                    name,
                    default,
                    help: help.join("\n"),
                });
            } else {
                help.clear();
            }
        }
        settings
    }

    #[must_use]
    pub fn variable(&self) -> String {
        format!("{}{}", super::PREFIX, self.name.to_ascii_uppercase())
    }

    #[must_use]
    pub fn flag(&self) -> String {
        flag_of(self.name)
    }

    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [self.name].into_iter().chain(earlier_names(self.name))
    }
}

#[must_use]
pub fn flag_of(name: &str) -> String {
    name.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_has_a_comment_of_its_own() {
        let settings = Setting::all();

        assert_eq!((settings[0].group, settings[0].name), ("Server", "listen"));
        assert_eq!(settings[0].default, "\"127.0.0.1:8080\"");
        assert_eq!(settings[0].variable(), "THREADKEEP_LISTEN");
        for setting in settings {
            assert!(setting.help.ends_with('.'), "{}", setting.name);
        }
    }
}
