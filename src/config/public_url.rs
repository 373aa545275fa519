use actix_web::http::Uri;

use super::{Fault, Given, SettingsError};

const RULE: &str = "empty or an address such as https://threads.example.com, without a query";

/// Returns the URL without a trailing slash, or an empty string if the setting is empty.
pub(super) fn read(given: &Given) -> Result<String, SettingsError> {
    let Some(text) = given.filled() else {
        return Ok(String::new());
    };
    let is_legal = text.parse::<Uri>().is_ok_and(|uri| {
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        let has_user = uri
            .authority()
            .is_some_and(|host| host.as_str().contains('@'));
        is_http && !has_user && uri.query().is_none()
    });
    if !is_legal || text.contains('#') {
        return Err(given.refuse(Fault::Expected(RULE)));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Returns the origin that browsers send for pages under `public_url`, or `None` if `public_url` is empty.
pub(crate) fn own_origin(public_url: &str) -> Option<String> {
    let uri = public_url.parse::<Uri>().ok()?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    let own_port = match scheme {
        "https" => ":443",
        _ => ":80",
    };
    let host = authority.as_str().to_ascii_lowercase();
    let host = host.strip_suffix(own_port).unwrap_or(&host);
    Some(format!("{scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_has_a_scheme_and_a_host_and_may_have_a_path() {
        let read = |text: &str| {
            let given = Given::new("public_url", text.into(), "test".into());
            read(&given).ok()
        };

        for (text, url) in [
            ("", Some("")),
            ("https://t.example", Some("https://t.example")),
            ("https://t.example/", Some("https://t.example")),
            (
                "http://t.example:8080/api/",
                Some("http://t.example:8080/api"),
            ),
            ("t.example", None),
            ("/api", None),
            ("ftp://t.example", None),
            ("https://user:secret@t.example", None),
            ("https://t.example?a", None),
            ("https://t.example#a", None),
        ] {
            assert_eq!(read(text).as_deref(), url, "{text}");
        }
    }

    #[test]
    fn the_origin_matches_what_browsers_send() {
        for (url, origin) in [
            ("", None),
            ("https://T.example/api", Some("https://t.example")),
            ("https://t.example:443", Some("https://t.example")),
            ("http://t.example:8080/api", Some("http://t.example:8080")),
        ] {
            assert_eq!(own_origin(url).as_deref(), origin, "{url}");
        }
    }
}
