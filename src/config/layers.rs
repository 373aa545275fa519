//! Merges the layers of settings. From weakest to strongest, the layers are the default file, the settings file, the
//! environment, and flags.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, FileFormat, Format, Map, Source, Value};

use super::catalog::{DEFAULT_FILE, Setting, flag_of};
use super::environment::{self, CLIENT_API_KEY, CLIENT_URL};
use super::nearest::nearest;
use super::{CONFIG, DEFAULT, Fault, Renamed, SettingsError, Values, renamed, text_file};

#[derive(Debug, Clone, Default)]
pub struct Layers {
    pub file: Option<PathBuf>,
    /// Settings file to read if neither a flag nor the environment names a settings file. The file need not exist.
    pub fallback_file: Option<PathBuf>,
    /// Environment variables. Only those whose names start with `THREADKEEP_` are used.
    pub environment: BTreeMap<String, String>,
    pub flags: BTreeMap<String, String>,
}

impl Layers {
    /// Merges the layers. Each value comes from the strongest layer that contains the setting, and is stored with the
    /// name of that layer. Fails if a setting is unknown or the file cannot be read.
    pub fn merge(&self) -> Result<Values, SettingsError> {
        let defaults = parse(DEFAULT_FILE, Path::new(DEFAULT))?;
        let known_names: HashSet<&str> = defaults.0.keys().map(String::as_str).collect();
        let mut builder = Config::builder().add_source(defaults.clone());
        let mut renames = BTreeSet::new();
        for layer in [self.file()?, Some(self.environment()), Some(self.flags())] {
            let layer = layer.unwrap_or_default().with_current_names(&mut renames);
            layer.check(&known_names)?;
            builder = builder.add_source(layer);
        }
        let table = builder
            .build()
            .and_then(|merged| merged.cache.into_table())
            .map_err(SettingsError::Merge)?;
        Values::new(&Setting::all(), table, renames)
    }

    fn client_variable(&self, name: &str) -> Option<String> {
        let value = self.environment.get(name)?;
        Some(value.clone()).filter(|value| !value.is_empty())
    }

    pub(super) fn client(&self) -> (Option<String>, Option<String>) {
        let variables = [CLIENT_URL, CLIENT_API_KEY];
        let [url, api_key] = variables.map(|name| self.client_variable(name));
        (url, api_key)
    }

    fn file(&self) -> Result<Option<Layer>, SettingsError> {
        let named = self.environment.get(CONFIG).filter(|path| !path.is_empty());
        let fallback = self.fallback_file.as_ref().filter(|path| path.exists());
        let path = self
            .file
            .clone()
            .or_else(|| named.map(PathBuf::from))
            .or_else(|| fallback.cloned());
        let Some(path) = path else {
            return Ok(None);
        };
        match text_file::read_text(&path) {
            Ok(text) => parse(&text, &path).map(Some),
            Err(error) => {
                let fault = Fault::Unreadable(path.clone(), error);
                Err(SettingsError::File(path, fault))
            }
        }
    }

    fn environment(&self) -> Layer {
        let settings = self.environment.iter().filter_map(|(name, text)| {
            let setting = environment::setting(name, text)?.to_ascii_lowercase();
            Some((setting, Value::new(Some(name), text.as_str())))
        });
        Layer(settings.collect())
    }

    fn flags(&self) -> Layer {
        let settings = self.flags.iter().map(|(name, text)| {
            let flag = format!("--{}", flag_of(name));
            (name.clone(), Value::new(Some(&flag), text.as_str()))
        });
        Layer(settings.collect())
    }
}

fn parse(text: &str, path: &Path) -> Result<Layer, SettingsError> {
    let origin = path.display().to_string();
    FileFormat::Toml
        .parse(Some(&origin), text)
        .map(Layer)
        .map_err(|error| SettingsError::File(path.into(), toml_fault(&error.to_string())))
}

/// Shortens the report of a TOML error to its position and reason. Omits the line that the parser quotes from the file,
/// because that line may contain a secret.
fn toml_fault(report: &str) -> Fault {
    let mut lines = report.lines();
    let position = lines.next().unwrap_or_default();
    let reason = lines.next_back().unwrap_or("it is not TOML");
    Fault::Toml(format!("{position}: {reason}"))
}

/// Settings of one source, each value with its origin.
#[derive(Debug, Clone, Default)]
struct Layer(Map<String, Value>);

impl Layer {
    /// Replaces earlier names of settings with their current names, and adds the renamed settings to `renames`. If both
    /// names are given, the value of the current name takes precedence.
    fn with_current_names(self, renames: &mut BTreeSet<Renamed>) -> Self {
        let is_earlier = |(name, _): &(String, Value)| renamed(name).is_some();
        let (earlier, mut present): (Map<_, _>, Map<_, _>) =
            self.0.into_iter().partition(is_earlier);
        for (name, value) in earlier {
            if let Some(row) = renamed(&name) {
                renames.insert(row);
                present.entry(row.1.into()).or_insert(value);
            }
        }
        Self(present)
    }

    fn check(&self, known_names: &HashSet<&str>) -> Result<(), SettingsError> {
        match self
            .0
            .iter()
            .find(|(name, _)| !known_names.contains(&***name))
        {
            Some((name, value)) => Err(SettingsError::Unknown {
                nearest: nearest(name, known_names.iter().copied()).map(Into::into),
                name: name.clone(),
                origin: value.origin().unwrap_or("the settings").into(),
            }),
            None => Ok(()),
        }
    }
}

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, ConfigError> {
        Ok(self.0.clone())
    }
}
