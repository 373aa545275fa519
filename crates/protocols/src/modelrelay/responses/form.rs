use actix_web::http::header::{ACCEPT, HeaderMap};

use threadkeep_http::EVENT_STREAM;

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Whole,
    /// Lines of JSON, sent while the response runs.
    Lines,
    /// Server-sent events, each with one of these lines.
    Events,
}

impl Form {
    /// Returns the first known format in `Accept`, or [`Form::Whole`] by default.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(ACCEPT);
        let texts = values.filter_map(|value| value.to_str().ok());
        let mut types = texts
            .flat_map(|text| text.split(','))
            .map(|accepted| accepted.split(';').next().unwrap_or_default().trim());
        let found = types.find_map(|media_type| match media_type {
            _ if media_type.eq_ignore_ascii_case("application/x-ndjson") => Some(Self::Lines),
            _ if media_type.eq_ignore_ascii_case(EVENT_STREAM) => Some(Self::Events),
            _ if media_type.eq_ignore_ascii_case("application/json") => Some(Self::Whole),
            _ => None,
        });
        found.unwrap_or(Self::Whole)
    }

    pub(super) fn is_streamed(self) -> bool {
        self != Self::Whole
    }

    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Whole => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Events => EVENT_STREAM,
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn the_first_known_media_type_in_accept_is_used() {
        for (accept, form) in [
            ("", Form::Whole),
            ("*/*", Form::Whole),
            ("application/json, text/event-stream", Form::Whole),
            (
                r#"application/x-ndjson; profile="responses-stream/v2""#,
                Form::Lines,
            ),
            ("Application/X-NDJSON", Form::Lines),
            ("text/html, text/event-stream;q=0.9", Form::Events),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(Form::of(&headers), form, "{accept}");
        }
        assert_eq!(Form::of(&HeaderMap::new()), Form::Whole);
    }
}
