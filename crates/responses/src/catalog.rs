use std::sync::Arc;

use crate::media::{self, MediaAt};
use crate::values::model::{Function, Model, Parameters};
use crate::values::request::InputItem;

/// The models that are configured for this server. If a name matches several entries, the first entry is used.
#[derive(Debug, Clone, Default)]
pub struct Catalog(Arc<[CatalogEntry]>);

/// A model, or all models whose names have a common prefix.
#[derive(Debug, Clone)]
pub struct CatalogEntry {
    /// Name of the model in requests. If the name ends in `*`, it matches all names with that prefix.
    pub name: String,
    /// Name of the model at the upstream. `None` if the upstream uses the same name.
    pub upstream_model: Option<String>,
    pub upstream_name: Arc<str>,
    pub upstream: Arc<dyn Model>,
}

#[derive(Debug, Clone)]
pub(crate) struct FoundModel {
    pub(crate) upstream_name: Arc<str>,
    pub(crate) upstream: Arc<dyn Model>,
    /// Name of the model at the upstream.
    pub(crate) name: String,
}

impl Catalog {
    #[must_use]
    pub fn new(entries: Vec<CatalogEntry>) -> Self {
        Self(entries.into())
    }

    /// Lists the model names without a wildcard.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.0.iter().map(|entry| entry.name.as_str());
        names.filter(|name| !name.ends_with('*'))
    }

    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Returns the position of the first image or file that the model's upstream does not support.
    #[must_use]
    pub fn refused_media(&self, name: &str, input: &[InputItem]) -> Option<MediaAt> {
        media::refused(&*self.find(name)?.upstream, input)
    }

    /// Returns the first field that would affect the answer but is not supported by the model's upstream.
    #[must_use]
    pub fn lacks(&self, name: &str, parameters: &Parameters) -> Option<&'static str> {
        self.find(name)?.upstream.lacks(parameters)
    }

    /// Returns the first custom tool in `functions` if the model's upstream does not support custom tools.
    #[must_use]
    pub fn refused_custom_tool<'a>(
        &self,
        name: &str,
        functions: &'a [Function],
    ) -> Option<&'a Function> {
        let custom = functions
            .iter()
            .find(|function| function.custom.is_some())?;
        let is_supported = self.find(name)?.upstream.supports_custom_tools();
        (!is_supported).then_some(custom)
    }

    pub(crate) fn find(&self, name: &str) -> Option<FoundModel> {
        let is_match = |entry: &&CatalogEntry| match entry.name.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == entry.name,
        };
        self.0.iter().find(is_match).map(|entry| FoundModel {
            upstream_name: Arc::clone(&entry.upstream_name),
            upstream: Arc::clone(&entry.upstream),
            name: entry.upstream_model.as_deref().unwrap_or(name).to_owned(),
        })
    }
}
