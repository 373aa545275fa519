//! Which events are asked for, and where a client that comes back was before.

use std::future::{Ready, ready};

use actix_web::http::header::HeaderName;
use actix_web::{FromRequest, HttpRequest, dev};

use crate::domain::{EventType, EventTypes};
use crate::http::request::query::{Parameters, set_once, unknown};
use crate::web::ApiError;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `?last_event_id=`, for clients that cannot set a header.
#[derive(Debug, Default)]
pub(crate) struct Resume {
    last_event_id: Option<String>,
}

/// `?type=a&type=b`, and the same.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    types: Vec<EventType>,
    pub(super) resume: Resume,
}

/// The header `Last-Event-ID`, unless it is empty.
#[derive(Debug)]
pub(crate) struct LastEvent(Option<String>);

impl Filter {
    /// The types that are asked for; all, when none is named.
    pub(crate) fn types(&self) -> EventTypes {
        if self.types.is_empty() {
            return EventTypes::ALL;
        }
        self.types.iter().copied().collect()
    }
}

impl Parameters for Resume {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if name != "last_event_id" {
            return Err(unknown(name));
        }
        let text = Some(value.to_owned());
        set_once(&mut self.last_event_id, text, name, "has to be given once")
    }
}

impl Parameters for Filter {
    fn take(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        if name != "type" {
            return self.resume.take(name, value);
        }
        self.types.push(value.parse()?);
        Ok(())
    }
}

impl LastEvent {
    /// The cursor of the header, or else of the query: what a client has got since it was given its
    /// URL is in the header.
    pub(crate) fn or<'a>(&'a self, query: &'a Resume) -> Option<&'a str> {
        let query = query.last_event_id.as_deref();
        self.0.as_deref().or(query).filter(|text| !text.is_empty())
    }

    fn of(request: &HttpRequest) -> Result<Self, ApiError> {
        let mut values = request.headers().get_all(LAST_EVENT_ID);
        let (value, None) = (values.next(), values.next()) else {
            return Err(ApiError::InvalidCursor);
        };
        let text = value.map(|value| value.to_str().map_err(|_| ApiError::InvalidCursor));
        let text = text.transpose()?.filter(|text| !text.is_empty());
        Ok(Self(text.map(str::to_owned)))
    }
}

impl FromRequest for LastEvent {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut dev::Payload) -> Self::Future {
        ready(Self::of(request))
    }
}
