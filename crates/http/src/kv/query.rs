use crate::answer::ApiResult;
use crate::request::{Page, Parameters, invalid, set_once, whole};
use threadkeep_domain::{EntryKey, Lifetime, Namespace};
use threadkeep_store::KeyOrder;

#[derive(Debug, Default)]
pub(crate) struct EntryTtlQuery(pub(crate) Option<Lifetime>);

#[derive(Debug, Default)]
pub(crate) struct EntryListing {
    prefix: Option<String>,
    order: Option<KeyOrder>,
    bodies: Option<bool>,
    pub(crate) page: Page,
}

#[derive(Debug, Default)]
pub(crate) struct NamespaceListing {
    pub(crate) names: Vec<Namespace>,
    pub(crate) page: Page,
}

const NAMES_MAX: usize = 100;

/// Returns the lifetime for `seconds`, where 0 means unlimited. Returns `None` if `seconds` is out of range.
pub(super) fn lifetime(seconds: u64) -> Option<Lifetime> {
    let is_valid = seconds <= Lifetime::LONGEST.as_secs();
    is_valid.then(|| Lifetime::from_seconds(seconds))
}

impl EntryListing {
    pub(crate) fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or_default()
    }

    pub(crate) fn order(&self) -> KeyOrder {
        self.order.unwrap_or_default()
    }

    pub(crate) fn has_bodies(&self) -> bool {
        self.bodies.unwrap_or_default()
    }
}

impl Parameters for EntryTtlQuery {
    const NAMES: &'static [&'static str] = &["ttl_seconds"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let malformed = "must be a whole number from 0 to 31,536,000, given once";
        let lifetime = whole(value).and_then(lifetime);
        set_once(&mut self.0, lifetime, name, malformed)
    }
}

impl Parameters for EntryListing {
    const NAMES: &'static [&'static str] = &["prefix", "order", "bodies", "cursor", "limit"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        match name {
            "prefix" => {
                let malformed = "must be empty or the beginning of a key, given once";
                let is_valid = value.is_empty() || EntryKey::new(value).is_ok();
                let prefix = is_valid.then(|| value.to_owned());
                set_once(&mut self.prefix, prefix, name, malformed)
            }
            "order" => {
                let order = match value {
                    "asc" => Some(KeyOrder::Ascending),
                    "desc" => Some(KeyOrder::Descending),
                    _ => None,
                };
                let malformed = "must be `asc` or `desc`, given once";
                set_once(&mut self.order, order, name, malformed)
            }
            "bodies" => {
                let malformed = "must be `true` or `false`, given once";
                set_once(&mut self.bodies, value.parse().ok(), name, malformed)
            }
            _ => self.page.take(name, value),
        }
    }
}

impl Parameters for NamespaceListing {
    const NAMES: &'static [&'static str] = &["namespace", "cursor", "limit"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        if name != "namespace" {
            return self.page.take(name, value);
        }
        self.names.push(Namespace::new(value)?);
        Ok(())
    }

    fn normalize(&mut self) {
        self.names.sort_unstable();
        self.names.dedup();
    }

    fn check(&self) -> ApiResult<()> {
        if self.names.len() > NAMES_MAX {
            let detail = format!("`namespace` must be given at most {NAMES_MAX} times");
            return Err(invalid(detail));
        }
        if !self.names.is_empty() && self.page.is_given() {
            return Err(invalid("`namespace` excludes `cursor` and `limit`"));
        }
        Ok(())
    }
}
