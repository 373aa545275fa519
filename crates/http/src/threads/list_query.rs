use crate::answer::ApiResult;
use crate::request::{Page, Parameters, invalid, set_once};
use threadkeep_domain::Owner;
use threadkeep_service::MetadataFilter;
use threadkeep_store::ThreadOrder;

#[derive(Debug, Default)]
pub(crate) struct ThreadListing {
    pub(super) owner: Option<Owner>,
    pub(super) page: Page<20, 100>,
    order: Option<ThreadOrder>,
    pub(super) filter: MetadataFilter,
}

const FILTERS_MAX: usize = 8;
const METADATA: &str = "metadata.";

impl ThreadListing {
    pub(super) fn order(&self) -> ThreadOrder {
        self.order.unwrap_or(ThreadOrder::Updated)
    }

    /// Returns bytes that identify the list that a cursor belongs to.
    pub(super) fn list_id(&self) -> Vec<u8> {
        let mut parts = vec![format!("{:?}", self.order())];
        parts.extend(self.owner.iter().map(|owner| owner.as_str().to_owned()));
        parts.push(String::new());
        let filter = self.filter.0.iter();
        parts.extend(filter.flat_map(|(name, text)| [name.clone(), text.clone()]));
        serde_json::to_vec(&parts).expect("texts always serialize")
    }
}

impl Parameters for ThreadListing {
    const NAMES: &'static [&'static str] = &["owner", "limit", "cursor", "order"];
    const PREFIX: Option<&'static str> = Some(METADATA);

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        match name {
            "owner" => {
                let malformed = "must be 1 to 256 bytes without control characters, given once";
                set_once(&mut self.owner, Owner::new(value).ok(), name, malformed)
            }
            "limit" | "cursor" => self.page.take(name, value),
            "order" => {
                let order = match value {
                    "updated" => Some(ThreadOrder::Updated),
                    "created" => Some(ThreadOrder::Created),
                    _ => None,
                };
                let malformed = "must be updated or created, given once";
                set_once(&mut self.order, order, name, malformed)
            }
            _ => self.take_filter(name, value),
        }
    }

    fn check(&self) -> ApiResult<()> {
        if self.owner.is_none() && self.order.is_some() {
            return Err(invalid("`order` is for the threads of one owner"));
        }
        Ok(())
    }
}

impl ThreadListing {
    fn take_filter(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let key = name.strip_prefix(METADATA).unwrap_or_default();
        let filter = &mut self.filter.0;
        if filter.iter().any(|(known, _)| known == key) || filter.len() == FILTERS_MAX {
            let detail = "`metadata.<key>` must be given once for a key, and for 8 keys at most";
            return Err(invalid(detail));
        }
        filter.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}
