use actix_web::HttpRequest;
use actix_web::http::header::HeaderName;

use crate::answer::ApiResult;
use crate::request::{Parameters, extract, set_once};
use threadkeep_domain::{EventType, EventTypes};
use threadkeep_web::ApiError;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The query parameter `last_event_id`, for clients that cannot set headers.
#[derive(Debug, Default)]
pub(crate) struct Resume {
    last_event_id: Option<String>,
}

#[derive(Debug, Default)]
pub(crate) struct ThreadEventsQuery {
    values: Option<bool>,
    pub(super) resume: Resume,
}

#[derive(Debug, Default)]
pub(crate) struct Filter {
    types: Vec<EventType>,
    pub(super) resume: Resume,
}

#[derive(Debug)]
pub(crate) struct LastEvent(Option<String>);

impl Filter {
    pub(crate) fn types(&self) -> EventTypes {
        if self.types.is_empty() {
            return EventTypes::ALL;
        }
        self.types.iter().copied().collect()
    }
}

impl Parameters for Resume {
    const NAMES: &'static [&'static str] = &["last_event_id"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        let text = Some(value.to_owned());
        set_once(&mut self.last_event_id, text, name, "must be given once")
    }
}

impl ThreadEventsQuery {
    pub(crate) fn wants_values(&self) -> bool {
        self.values == Some(true)
    }
}

impl Parameters for ThreadEventsQuery {
    const NAMES: &'static [&'static str] = &["values", "last_event_id"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        if name != "values" {
            return self.resume.take(name, value);
        }
        let value = value.parse().ok();
        set_once(&mut self.values, value, name, "must be true or false, once")
    }
}

impl Parameters for Filter {
    const NAMES: &'static [&'static str] = &["type", "last_event_id"];

    fn take(&mut self, name: &str, value: &str) -> ApiResult<()> {
        if name != "type" {
            return self.resume.take(name, value);
        }
        self.types.push(value.parse()?);
        Ok(())
    }
}

impl LastEvent {
    /// Returns the cursor from the header, or else from `query`. The header takes precedence, because a client that
    /// reconnects to the same URL sends its latest cursor in the header.
    pub(crate) fn or<'a>(&'a self, query: &'a Resume) -> Option<&'a str> {
        let query = query.last_event_id.as_deref();
        self.0.as_deref().or(query).filter(|text| !text.is_empty())
    }

    fn of(request: &HttpRequest) -> ApiResult<Self> {
        let mut values = request.headers().get_all(LAST_EVENT_ID);
        let (value, None) = (values.next(), values.next()) else {
            return Err(ApiError::InvalidCursor);
        };
        let text = value.map(|value| value.to_str().map_err(|_| ApiError::InvalidCursor));
        let text = text.transpose()?.filter(|text| !text.is_empty());
        Ok(Self(text.map(str::to_owned)))
    }
}

extract!(LastEvent);
