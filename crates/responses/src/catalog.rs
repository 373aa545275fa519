//! The models that callers may name.

use std::sync::Arc;

use crate::media::{self, MediaAt};
use crate::values::model::{Function, Model, Parameters};
use crate::values::request::InputItem;

/// The models of a deployment, in the order in which their names are tried.
#[derive(Debug, Clone, Default)]
pub struct Catalog(Arc<[CatalogEntry]>);

/// A model, or all whose names begin alike.
#[derive(Debug, Clone)]
pub struct CatalogEntry {
    /// The name for callers. If it ends in `*`, it stands for all names that begin with the rest.
    pub name: String,
    /// The name at the upstream, if it is another one.
    pub name_there: Option<String>,
    /// The name of the upstream.
    pub upstream_name: Arc<str>,
    /// The upstream.
    pub upstream: Arc<dyn Model>,
}

/// A model that was found.
#[derive(Debug, Clone)]
pub(crate) struct FoundModel {
    pub(crate) upstream_name: Arc<str>,
    pub(crate) upstream: Arc<dyn Model>,
    /// Its name there.
    pub(crate) name: String,
}

impl Catalog {
    /// These models.
    #[must_use]
    pub fn new(entries: Vec<CatalogEntry>) -> Self {
        Self(entries.into())
    }

    /// The names that stand for one model each.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.0.iter().map(|entry| entry.name.as_str());
        names.filter(|name| !name.ends_with('*'))
    }

    /// Whether a caller may name that model.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The first image or file of an input that the upstream of a model does not take.
    #[must_use]
    pub fn refused_media(&self, name: &str, input: &[InputItem]) -> Option<MediaAt> {
        media::refused(&*self.find(name)?.upstream, input)
    }

    /// The first field of a request that the upstream of a model cannot express, and that would change the answer.
    #[must_use]
    pub fn lacks(&self, name: &str, parameters: &Parameters) -> Option<&'static str> {
        self.find(name)?.upstream.lacks(parameters)
    }

    /// The first custom tool of a request, if the upstream of a model takes none.
    #[must_use]
    pub fn refused_custom_tool<'a>(
        &self,
        name: &str,
        functions: &'a [Function],
    ) -> Option<&'a Function> {
        let custom = functions
            .iter()
            .find(|function| function.custom.is_some())?;
        let takes_it = self.find(name)?.upstream.takes_custom_tools();
        (!takes_it).then_some(custom)
    }

    pub(crate) fn find(&self, name: &str) -> Option<FoundModel> {
        let is_it = |entry: &&CatalogEntry| match entry.name.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == entry.name,
        };
        self.0.iter().find(is_it).map(|entry| FoundModel {
            upstream_name: Arc::clone(&entry.upstream_name),
            upstream: Arc::clone(&entry.upstream),
            name: entry.name_there.as_deref().unwrap_or(name).to_owned(),
        })
    }
}
