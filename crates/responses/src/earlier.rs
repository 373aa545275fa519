use crate::shared::Shared;
use crate::values::error::ResponseError;
use crate::values::request::ResponseRequest;
use threadkeep_domain::scope::ScopeId;
use threadkeep_domain::{Json, Window};
use threadkeep_store::HistoryFrom;

/// Maximum size of the earlier items in a question, in bytes.
const WINDOW_MAX_BYTES: usize = 8 * 1_048_576;
/// Number of items to read per call to the store.
const PAGE: usize = 500;

pub(crate) struct Earlier {
    /// Oldest first.
    pub(crate) items: Vec<Json>,
    /// True if `items` is the whole conversation.
    pub(crate) is_whole: bool,
    /// Sequence number of the newest item.
    pub(crate) newest: Option<u64>,
}

impl Shared {
    /// Returns the maximum number of exchanges of the conversation that the model receives. 0 means no limit.
    pub(crate) fn window_exchanges(&self, request: &ResponseRequest) -> usize {
        let limit = self.limits.window as usize;
        match request.window_exchanges {
            Some(requested) if limit == 0 || (requested as usize) < limit => requested as usize,
            _ => limit,
        }
    }

    /// Reads the last `exchanges` exchanges (0 for all) before sequence number `before`, up to 8 MiB in total.
    pub(crate) async fn earlier(
        &self,
        scope: &ScopeId,
        mut before: u64,
        exchanges: usize,
    ) -> Result<Earlier, ResponseError> {
        let mut window = Window::new(exchanges, WINDOW_MAX_BYTES);
        let (mut items, mut is_whole, mut newest) = (Vec::new(), true, None);
        'pages: loop {
            let from = HistoryFrom::Before(before);
            let page = self.scopes.history(scope, from, PAGE).await?;
            newest = newest.or(page.items.first().map(|item| item.seq));
            let Some(last) = page.items.last() else {
                break;
            };
            before = last.seq;
            for item in page.items {
                if !window.admit(item.value.as_str()) {
                    is_whole = false;
                    break 'pages;
                }
                items.push(item.value);
            }
        }
        items.truncate(window.items());
        items.reverse();
        Ok(Earlier {
            items,
            is_whole,
            newest,
        })
    }
}
