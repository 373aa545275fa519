//! Origins whose pages may write on a user's behalf.
//!
//! Browsers add cookies to requests from any page. `SameSite` excludes only pages of other sites, and a neighboring
//! subdomain or port belongs to the same site. Therefore, a write is accepted only if the browser reports that it was
//! sent by a page of this host or of an allowed origin.

use actix_web::HttpRequest;
use actix_web::http::header::{HOST, HeaderName, HeaderValue, ORIGIN};

use super::TrustedProxies;

static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

#[derive(Debug, Clone, Default)]
pub(super) struct Origins {
    pub(super) allowed: Vec<String>,
    pub(super) own: Option<String>,
}

impl Origins {
    /// Returns whether the page that made a request may write on its user's behalf.
    ///
    /// A page of an allowed origin may write, regardless of `Sec-Fetch-Site`. For other pages, each of these headers
    /// must match if it is present: `Origin` must be the host's origin, and `Sec-Fetch-Site` must be `same-origin`, or
    /// `none` if the user made the request without a page. Requests from browsers that predate 2020, and from clients
    /// other than browsers, may have neither header.
    pub(super) fn may_write(&self, request: &HttpRequest, proxies: &TrustedProxies) -> bool {
        let is_own = match origin(request) {
            Origin::Absent => true,
            Origin::Unclear => false,
            Origin::Of(origin) if self.allows(origin) => return true,
            Origin::Of(origin) => self.is_own(origin, request, proxies),
        };
        let mut sites = request.headers().get_all(&SEC_FETCH_SITE);
        is_own && sites.all(|site| site == "same-origin" || site == "none")
    }

    pub(super) fn is_foreign(&self, request: &HttpRequest, proxies: &TrustedProxies) -> bool {
        match origin(request) {
            Origin::Absent => false,
            Origin::Unclear => true,
            Origin::Of(origin) => !self.is_own(origin, request, proxies),
        }
    }

    fn allows(&self, origin: &str) -> bool {
        self.allowed.iter().any(|allowed| allowed == origin)
    }

    /// Returns whether `origin` is the server's own. Compares the scheme only if a trusted proxy forwards it, because
    /// the server itself does not use TLS and therefore does not know the browser's scheme.
    fn is_own(&self, origin: &str, request: &HttpRequest, proxies: &TrustedProxies) -> bool {
        if self.own.as_deref() == Some(origin) {
            return true;
        }
        let Some((scheme, authority)) = origin.split_once("://") else {
            return false;
        };
        let port: &[u8] = match scheme {
            "http" => b":80",
            "https" => b":443",
            _ => return false,
        };
        let is_scheme = |forwarded: &[u8]| forwarded.eq_ignore_ascii_case(scheme.as_bytes());
        let is_host = |host: &[u8]| {
            let host = host.strip_suffix(port).unwrap_or(host);
            host.eq_ignore_ascii_case(authority.as_bytes())
        };
        proxies.scheme(request).is_none_or(is_scheme)
            && (host(request).is_some_and(is_host) || proxies.host(request).is_some_and(is_host))
    }
}

pub(super) fn host(request: &HttpRequest) -> Option<&[u8]> {
    let host = request.headers().get(HOST).map(HeaderValue::as_bytes);
    // HTTP/2 carries the host in the URL
    host.or_else(|| Some(request.uri().authority()?.as_str().as_bytes()))
}

enum Origin<'a> {
    Absent,
    Of(&'a str),
    Unclear,
}

fn origin(request: &HttpRequest) -> Origin<'_> {
    let mut origins = request.headers().get_all(ORIGIN);
    match (origins.next(), origins.next()) {
        (None, _) => Origin::Absent,
        (Some(origin), None) => origin.to_str().map_or(Origin::Unclear, Origin::Of),
        _ => Origin::Unclear,
    }
}

pub(super) fn has_origin(request: &HttpRequest) -> bool {
    request.headers().contains_key(ORIGIN)
}

pub(super) fn is_same_origin(request: &HttpRequest) -> bool {
    is_of_site("same-origin", request)
}

/// Returns whether a page of another site sent the request. If so, the browser may have withheld cookies.
pub(super) fn is_cross_site(request: &HttpRequest) -> bool {
    is_of_site("cross-site", request)
}

fn is_of_site(expected: &str, request: &HttpRequest) -> bool {
    let site = request.headers().get(&SEC_FETCH_SITE);
    site.is_some_and(|site| site == expected)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    const APP: &str = "https://app.example";

    fn origins() -> Origins {
        Origins {
            allowed: vec![APP.into()],
            own: Some("https://public.example".into()),
        }
    }

    fn may_write(peer: &str, headers: &[(&str, &str)]) -> bool {
        let proxies = TrustedProxies::parse(["10.0.0.0/8"]).unwrap();
        let mut request = TestRequest::post().peer_addr(format!("{peer}:1").parse().unwrap());
        for header in headers {
            request = request.append_header(*header);
        }
        origins().may_write(&request.to_http_request(), &proxies)
    }

    #[test]
    fn every_header_that_is_present_must_name_the_hosts_own_origin() {
        let of = |origin: &[&str], site: &[&str]| {
            let origin = origin.iter().map(|origin| ("origin", *origin));
            let site = site.iter().map(|site| ("sec-fetch-site", *site));
            let host = [("host", "t.example:8080")].into_iter();
            may_write(
                "192.0.2.1",
                &host.chain(origin).chain(site).collect::<Vec<_>>(),
            )
        };
        let own = "http://t.example:8080";

        for (origin, site) in [
            (&[][..], &[][..]),
            (&[], &["same-origin"]),
            (&[], &["none"]),
            (&[own], &[]),
            (&[own], &["same-origin"]),
            (&["https://t.example:8080"], &[]),
            (&["https://public.example"], &["same-origin"]),
            (&[APP], &[]),
            (&[APP], &["same-site"]),
            (&[APP], &["cross-site"]),
        ] {
            assert!(of(origin, site), "{origin:?} {site:?}");
        }
        for (origin, site) in [
            (&[][..], &["same-site"][..]),
            (&[], &["cross-site"]),
            (&[], &["Same-Origin"]),
            (&[], &["same-origin", "cross-site"]),
            (&[own], &["same-site"]),
            (&[own, own], &[]),
            (&[APP, "https://evil.example"], &[]),
            (&["null"], &[]),
            (&["https://evil.example"], &["same-origin"]),
            (&["http://t.example"], &[]),
            (&["http://t.example:8080.evil.example"], &[]),
            (&["http://x.t.example:8080"], &[]),
            (&["ftp://t.example:8080"], &[]),
            (&["http://public.example"], &[]),
            (&[""], &[]),
            (&["\u{e4}"], &[]),
        ] {
            assert!(!of(origin, site), "{origin:?} {site:?}");
        }
    }

    #[test]
    fn a_trusted_proxy_reports_the_scheme_and_host_of_the_page() {
        let forwarded = |peer, origin| {
            let host = ("host", "upstream:8080");
            let proto = ("x-forwarded-proto", "https");
            let name = ("x-forwarded-host", "evil.example, T.example:443");
            may_write(peer, &[host, proto, name, ("origin", origin)])
        };

        assert!(forwarded("10.0.0.1", "https://t.example"));
        assert!(forwarded("10.0.0.1", "https://upstream:8080"));
        for origin in ["http://t.example", "https://evil.example"] {
            assert!(!forwarded("10.0.0.1", origin), "{origin}");
        }
        assert!(!forwarded("192.0.2.1", "https://t.example"));
    }
}
