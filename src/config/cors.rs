use actix_web::http::Uri;

use super::{Fault, Given, SettingsError};

const RULE: &str = "`*`, or origins as browsers send them: `scheme://host[:port]` in lower case, \
                    without a path and without the scheme's own port";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    /// Sends no CORS headers.
    None,
    /// All origins, without credentials.
    Any,
    /// The listed origins, with credentials.
    Named(Vec<String>),
}

impl CorsOrigins {
    #[must_use]
    pub fn named(&self) -> &[String] {
        match self {
            Self::Named(origins) => origins,
            Self::None | Self::Any => &[],
        }
    }

    pub(super) fn read(given: &Given) -> Result<Self, SettingsError> {
        let origins: Vec<_> = given.items().map(str::to_owned).collect();
        match origins.as_slice() {
            [] => Ok(Self::None),
            [origin] if origin == "*" => Ok(Self::Any),
            origins if origins.iter().all(|origin| is_origin(origin)) => {
                Ok(Self::Named(origins.to_vec()))
            }
            _ => Err(given.refuse(Fault::Expected(RULE))),
        }
    }
}

/// Returns whether a browser could send `text` in an `Origin` header. The server compares origins as strings, so an
/// origin in any other form would never match.
fn is_origin(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else {
        return false;
    };
    let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return false;
    };
    let is_default_port = matches!(
        (scheme, uri.port_u16()),
        ("http", Some(80)) | ("https", Some(443))
    );
    text == format!("{scheme}://{authority}")
        && text == text.to_ascii_lowercase()
        && !authority.as_str().contains(['@', '*'])
        && !is_default_port
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<CorsOrigins> {
        let given = Given::new("cors_origins", text.into(), "test".into());
        CorsOrigins::read(&given).ok()
    }

    #[test]
    fn origins_are_none_all_or_a_list() {
        let list = ["https://a.example", "http://localhost:3000"];

        assert_eq!(read(" , "), Some(CorsOrigins::None));
        assert_eq!(read("*"), Some(CorsOrigins::Any));
        assert_eq!(
            read(&list.join(", ")),
            Some(CorsOrigins::Named(list.map(String::from).to_vec()))
        );
    }

    #[test]
    fn text_that_is_not_an_origin_is_rejected() {
        for text in [
            "*,https://a.example",
            "a.example",
            "https://a.example/",
            "https://A.example",
            "https://*.example",
            "https://u@a.example",
            "https://a.example:443",
            "null",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
