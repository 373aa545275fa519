use threadkeep_domain::parse_rfc3339;
use threadkeep_http::{Parameters, set_once, whole};
use threadkeep_service::PageStart;
use threadkeep_web::ApiError;

/// Default and maximum number of threads per page.
const LIMIT: usize = 20;
const LIMIT_MAX: u64 = 100;
/// Maximum offset. To find a page by its offset, the server reads all threads before the page.
const OFFSET_MAX: u64 = 10_000;
/// Maximum `limit` for the messages of a thread. If `limit` is absent, all messages are returned.
const MESSAGES_MAX: u64 = 1_000;

/// `?userId=|channelKey=&limit=&offset=|cursorTimestamp=&cursorId=`.
#[derive(Debug, Default)]
pub(super) struct ListQuery {
    pub(super) user_id: Option<String>,
    pub(super) channel_key: Option<String>,
    limit: Option<usize>,
    offset: Option<usize>,
    cursor_timestamp: Option<String>,
    cursor_id: Option<String>,
}

/// `?limit=&before=`.
#[derive(Debug, Default)]
pub(super) struct MessagesQuery {
    /// Maximum number of messages to return. All by default.
    pub(super) limit: Option<usize>,
    /// The id of a message, or a time.
    pub(super) before: Option<String>,
}

impl ListQuery {
    pub(super) fn limit(&self) -> usize {
        self.limit.unwrap_or(LIMIT)
    }

    /// Returns the start of the page. If the query has both a cursor timestamp and a cursor id, the offset is ignored.
    pub(super) fn start(&self) -> Result<PageStart, ApiError> {
        match (&self.cursor_timestamp, &self.cursor_id) {
            (Some(timestamp), Some(id)) => Ok(PageStart::After {
                newest_ms: parse_rfc3339(timestamp).ok_or(ApiError::InvalidCursor)?,
                id: id.clone(),
            }),
            _ => Ok(PageStart::Offset(self.offset.unwrap_or(0))),
        }
    }
}

impl Parameters for ListQuery {
    const NAMES: &'static [&'static str] = &[
        "userId",
        "channelKey",
        "limit",
        "offset",
        "cursorTimestamp",
        "cursorId",
    ];

    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        let parameter = match name {
            "limit" => return take_number(&mut self.limit, value, name, 1, LIMIT_MAX),
            "offset" => return take_number(&mut self.offset, value, name, 0, OFFSET_MAX),
            "userId" => &mut self.user_id,
            "channelKey" => &mut self.channel_key,
            "cursorTimestamp" => &mut self.cursor_timestamp,
            _ => &mut self.cursor_id,
        };
        set_once(
            parameter,
            Some(value.to_owned()),
            name,
            "must be given once",
        )
    }
}

impl Parameters for MessagesQuery {
    const NAMES: &'static [&'static str] = &["limit", "before"];

    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        match name {
            "limit" => take_number(&mut self.limit, value, name, 1, MESSAGES_MAX),
            _ => {
                let before = Some(value.to_owned());
                set_once(&mut self.before, before, name, "must be given once")
            }
        }
    }
}

fn take_number(
    parameter: &mut Option<usize>,
    value: &str,
    name: &str,
    min: u64,
    max: u64,
) -> Result<(), ApiError> {
    let number = whole(value).filter(|number| (min..=max).contains(number));
    let malformed = format!("must be a whole number from {min} to {max}, given once");
    set_once(
        parameter,
        number.map(|number| number as usize),
        name,
        &malformed,
    )
}
