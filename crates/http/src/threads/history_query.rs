use super::archive_query::LifeQuery;
use crate::answer::ApiResult;
use crate::request::{Page, Parameters, Reading, invalid, set_once, whole};
use threadkeep_store::HistoryFrom;

const TAIL_MAX: u64 = 1_000;

/// The part of a history to read: `?after=&limit=`, `?before=&limit=`, `?order=&limit=` or `?tail=`. All variants
/// accept `?peek=`, and all except `?tail=` accept `?originals=`.
#[derive(Debug, Default)]
pub(crate) struct HistoryPart {
    after: Option<u64>,
    before: Option<u64>,
    is_backwards: Option<bool>,
    /// Number of newest items to read. The items are returned oldest first.
    tail: Option<usize>,
    originals: Option<bool>,
    page: Page,
    pub(crate) reading: Reading,
}

/// Like [`HistoryPart`], for a segment. Rejects `?tail=` and `?originals=`.
#[derive(Debug, Default)]
pub(crate) struct SegmentPart(pub(crate) HistoryPart);

/// The [`HistoryPart`] of an ended thread. Accepts `?life=`, and rejects `?peek=` and `?originals=`.
#[derive(Debug, Default)]
pub(crate) struct FinalPart {
    pub(crate) life: LifeQuery,
    pub(crate) part: HistoryPart,
}

impl HistoryPart {
    pub(crate) fn from(&self) -> HistoryFrom {
        if self.tail.is_some() {
            return HistoryFrom::Before(u64::MAX);
        }
        match (self.after, self.before, self.is_backwards) {
            (None, Some(before), _) => HistoryFrom::Before(before),
            (None, None, Some(true)) => HistoryFrom::Before(u64::MAX),
            (after, ..) => HistoryFrom::After(after.unwrap_or(0)),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.tail.unwrap_or(self.page.limit())
    }

    /// Returns the number of items to read, which is one more than the limit. The extra item shows whether more items
    /// follow.
    pub(crate) fn read_count(&self) -> usize {
        self.limit() + 1
    }

    pub(crate) fn has_originals(&self) -> bool {
        self.originals == Some(true)
    }

    pub(crate) fn tail(&self) -> Option<usize> {
        self.tail
    }
}

fn parse_seq(text: &str) -> Option<u64> {
    whole(text).filter(|seq| i64::try_from(*seq).is_ok())
}

impl Parameters for HistoryPart {
    const NAMES: &'static [&'static str] = &[
        "after",
        "before",
        "order",
        "limit",
        "tail",
        "originals",
        "peek",
    ];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let malformed = "must be a sequence number (`seq` of an item), given once";
        match name {
            "after" => set_once(&mut self.after, parse_seq(value), name, malformed),
            "before" => set_once(&mut self.before, parse_seq(value), name, malformed),
            "order" => {
                let is_backwards = match value {
                    "asc" => Some(false),
                    "desc" => Some(true),
                    _ => None,
                };
                let malformed = "must be asc or desc, given once";
                set_once(&mut self.is_backwards, is_backwards, name, malformed)
            }
            "tail" => {
                let tail = whole(value).filter(|tail| *tail <= TAIL_MAX);
                let tail = tail.map(|tail| tail as usize);
                let malformed = "must be a whole number from 0 to 1000, given once";
                set_once(&mut self.tail, tail, name, malformed)
            }
            "originals" => {
                let malformed = "must be true or false, given once";
                set_once(&mut self.originals, value.parse().ok(), name, malformed)
            }
            "peek" => self.reading.take(name, value),
            _ => self.page.take(name, value),
        }
    }

    fn check(&self) -> ApiResult<()> {
        if self.tail.is_some() && self.has_originals() {
            return Err(invalid("`tail` cannot be combined with `originals`"));
        }
        let is_part = self.after.is_some() || self.before.is_some() || self.is_backwards.is_some();
        if self.tail.is_some() && (is_part || self.page.is_given()) {
            return Err(invalid(
                "`tail` cannot be combined with `after`, `before`, `order` or `limit`",
            ));
        }
        let detail = match (self.after, self.before, self.is_backwards) {
            (Some(_), Some(_), _) => "`after` cannot be combined with `before`",
            (Some(_), None, Some(true)) => "`after` cannot be combined with `order=desc`",
            (None, Some(_), Some(false)) => "`before` cannot be combined with `order=asc`",
            _ => return Ok(()),
        };
        Err(invalid(detail))
    }
}

impl Parameters for SegmentPart {
    const NAMES: &'static [&'static str] = &["after", "before", "order", "limit", "peek"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        self.0.take(name, value)
    }

    fn check(&self) -> ApiResult<()> {
        self.0.check()
    }
}

impl Parameters for FinalPart {
    const NAMES: &'static [&'static str] = &["life", "after", "before", "order", "limit", "tail"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        match name {
            "life" => self.life.take(name, value),
            _ => self.part.take(name, value),
        }
    }

    fn check(&self) -> ApiResult<()> {
        self.part.check()
    }
}
