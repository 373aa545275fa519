use std::net::{IpAddr, SocketAddr};

use actix_web::http::header::HeaderValue;
use actix_web::test::TestRequest;

use super::super::TrustedProxies;
use threadkeep_fuzzing::{Bound, fuzz};

#[test]
fn the_client_is_the_last_address_before_an_unbroken_list_of_proxies() {
    let proxies = TrustedProxies::parse(["10.0.0.0/8", "192.0.2.1", "2001:db8::/32"]).unwrap();
    let is_proxy = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(address) => address.octets()[0] == 10 || address.octets() == [192, 0, 2, 1],
        IpAddr::V6(address) => address.segments()[..2] == [0x2001, 0xdb8],
    };
    fuzz("forwarded", |input| {
        let lines = input.bytes().split(|byte| *byte == b'\n');
        let values: Vec<_> = lines
            .filter_map(|line| HeaderValue::from_bytes(line).ok())
            .collect();
        for peer in ["10.0.0.1", "[::ffff:10.0.0.2]", "198.51.100.9"] {
            let peer: SocketAddr = format!("{peer}:443").parse().unwrap();
            let mut request = TestRequest::default().peer_addr(peer);
            for value in &values {
                request = request
                    .append_header(("x-forwarded-for", value))
                    .append_header(("x-forwarded-proto", value));
            }
            let request = request.to_http_request();

            let client = Bound::LINEAR.hold(input.bytes().len(), || proxies.client(&request));
            let is_https = Bound::LINEAR.hold(input.bytes().len(), || proxies.is_https(&request));

            let list = values.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
            let list = list.join(&b","[..]);
            let entries: Vec<_> = list.split(|byte| *byte == b',').collect();
            let mut expected = peer.ip();
            for entry in entries.iter().rev() {
                let Some(address) = address(entry).filter(|_| is_proxy(expected)) else {
                    break;
                };
                expected = address;
            }
            assert_eq!(client, Some(expected), "{peer}");
            if is_https {
                let last = entries.last().unwrap().trim_ascii();
                assert!(is_proxy(peer.ip()) && last.eq_ignore_ascii_case(b"https"));
            }
        }
    });
}

fn address(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry.trim_ascii()).ok()?;
    let with_port = || Some(text.parse::<SocketAddr>().ok()?.ip());
    text.parse().ok().or_else(with_port)
}
