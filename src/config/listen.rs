use std::net::{Ipv4Addr, SocketAddr};

use super::{Fault, Given, SettingsError};

const RULE: &str = "an address and a port, such as 127.0.0.1:8080, localhost:8080, or :8080 for all \
                    addresses of this machine";

/// Reads `ADDRESS:PORT`, `localhost:PORT` or `:PORT`.
pub(super) fn read(given: &Given) -> Result<SocketAddr, SettingsError> {
    let address = parse(given.text());
    address.ok_or_else(|| given.refuse(Fault::Expected(RULE)))
}

/// Like [`read`], but returns `None` if the setting is empty.
pub(super) fn read_optional(given: &Given) -> Result<Option<SocketAddr>, SettingsError> {
    given.filled().map(|_| read(given)).transpose()
}

/// Rejects host names other than `localhost`, because they could resolve to a different address at each start.
fn parse(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.rsplit_once(':')?;
    let address = match host {
        "" => Ipv4Addr::UNSPECIFIED,
        "localhost" => Ipv4Addr::LOCALHOST,
        _ => return text.parse().ok(),
    };
    format!("{address}:{port}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_host_means_all_addresses_and_localhost_means_loopback() {
        for (text, address) in [
            (":8080", Some("0.0.0.0:8080")),
            ("localhost:0", Some("127.0.0.1:0")),
            ("[::1]:80", Some("[::1]:80")),
            ("10.0.0.1:65535", Some("10.0.0.1:65535")),
            ("8080", None),
            (":", None),
            (":65536", None),
            (":+80", None),
            ("example.com:80", None),
            ("::1:80", None),
            ("", None),
        ] {
            let expected = address.map(|address| address.parse().unwrap());
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
