//! Reads the allowed hosts and origins of the MCP endpoint. These lists protect the endpoint from DNS rebinding.
//!
//! In a DNS rebinding attack, the host name of an attacker's page resolves to this server. The browser sends that name
//! in `Host`, so the server can reject the request.

use std::net::IpAddr;

use actix_web::http::Uri;
use actix_web::http::uri::Authority;

use super::{CorsOrigins, Fault, Given, SettingsError};

const RULE: &str = "`*`, or hosts with or without a port, such as threads.example.com";

/// Names that always refer to this machine.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSettings {
    /// Hosts that clients may send in `Host`. A host without a port allows all ports; an empty list allows all hosts.
    pub allowed_hosts: Vec<String>,
    /// Origins of pages that may call the endpoint, each with a port or `:*`. An empty list allows all origins.
    pub allowed_origins: Vec<String>,
}

/// Reads the allowed hosts and derives the allowed origins. The host of `public_url` is always allowed. A page may call
/// the endpoint if the page's host is allowed or if `cors` allows the page's origin.
pub(super) fn read(
    given: &Given,
    public_url: &str,
    cors: &CorsOrigins,
) -> Result<McpSettings, SettingsError> {
    let mut allowed_hosts: Vec<_> = given.items().map(str::to_owned).collect();
    if allowed_hosts == ["*"] {
        allowed_hosts.clear();
    } else if !allowed_hosts.iter().all(|host| is_host(host)) {
        return Err(given.refuse(Fault::Expected(RULE)));
    } else {
        if allowed_hosts.is_empty() {
            allowed_hosts.extend(LOOPBACK.map(str::to_owned));
        }
        allowed_hosts.extend(host_of(public_url));
    }
    let allowed_origins = match cors {
        CorsOrigins::Any => Vec::new(),
        CorsOrigins::None | CorsOrigins::Named(_) => {
            let own = allowed_hosts.iter().flat_map(|host| origins_of(host));
            own.chain(cors.named().iter().map(|origin| with_port(origin)))
                .collect()
        }
    };
    Ok(McpSettings {
        allowed_hosts,
        allowed_origins,
    })
}

fn is_host(text: &str) -> bool {
    let is_authority = || {
        let authority = text.parse::<Authority>();
        authority.is_ok_and(|authority| !authority.as_str().contains(['@', '*']))
    };
    text.parse::<IpAddr>().is_ok() || is_authority()
}

fn host_of(url: &str) -> Option<String> {
    let uri = url.parse::<Uri>().ok()?;
    uri.authority().map(Authority::to_string)
}

fn origins_of(host: &str) -> [String; 2] {
    let host = match host.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("[{address}]:*"),
        Ok(IpAddr::V4(address)) => format!("{address}:*"),
        Err(_) => with_any_port(host),
    };
    [format!("http://{host}"), format!("https://{host}")]
}

fn with_any_port(host: &str) -> String {
    let authority = host.parse::<Authority>();
    match authority.is_ok_and(|authority| authority.port().is_some()) {
        true => host.into(),
        false => format!("{host}:*"),
    }
}

/// Adds the default port to a CORS origin without a port.
fn with_port(origin: &str) -> String {
    let (scheme, authority) = origin.split_once("://").unwrap_or(("", origin));
    let has_port = authority
        .parse::<Authority>()
        .is_ok_and(|authority| authority.port().is_some());
    match (has_port, scheme) {
        (true, _) => origin.into(),
        (false, "http") => format!("{origin}:80"),
        (false, "https") => format!("{origin}:443"),
        (false, _) => format!("{origin}:*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(hosts: &str, public_url: &str, cors: CorsOrigins) -> Option<McpSettings> {
        let given = Given::new("mcp_allowed_hosts", hosts.into(), "test".into());
        super::read(&given, public_url, &cors).ok()
    }

    #[test]
    fn by_default_only_loopback_hosts_and_their_pages_are_allowed() {
        let settings = read("", "", CorsOrigins::None).unwrap();

        assert_eq!(settings.allowed_hosts, LOOPBACK);
        assert!(settings.allowed_origins.contains(&"http://[::1]:*".into()));
        assert_eq!(settings.allowed_origins.len(), 6);
    }

    #[test]
    fn the_host_of_the_public_url_is_always_allowed() {
        let settings = read("a.example:81", "https://t.example/x", CorsOrigins::None).unwrap();

        assert_eq!(settings.allowed_hosts, ["a.example:81", "t.example"]);
        let origins = [
            "http://a.example:81",
            "https://a.example:81",
            "http://t.example:*",
            "https://t.example:*",
        ];
        assert_eq!(settings.allowed_origins, origins);
    }

    #[test]
    fn origins_of_cors_get_the_port_of_their_scheme() {
        let named = ["https://a.example", "http://b.example:3000"];
        let cors = CorsOrigins::Named(named.map(String::from).to_vec());

        let origins = read("t.example:1", "", cors).unwrap().allowed_origins;

        let expected = ["https://a.example:443", "http://b.example:3000"];
        assert_eq!(origins[2..], expected);
    }

    #[test]
    fn a_star_allows_all_hosts() {
        let settings = read("*", "https://t.example", CorsOrigins::None).unwrap();

        assert_eq!(settings.allowed_hosts, Vec::<String>::new());
    }

    #[test]
    fn invalid_hosts_are_rejected() {
        for hosts in ["*,a.example", "*.example", "https://a", "u@a", "a b", "a/b"] {
            assert_eq!(read(hosts, "", CorsOrigins::Any), None, "{hosts}");
        }
    }
}
