use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;
use crate::scripted::{Reply, Scripted, reply};

const MAX_BYTES: usize = 10_000;
const TEXT: &str = "content-type: text/plain\r\n";

fn options() -> FetchOptions {
    FetchOptions {
        accept: "text/*",
        is_accepted: |content_type| content_type.starts_with("text/"),
        max_bytes: MAX_BYTES,
    }
}

/// Creates a client that may reach `server`.
fn client_for(server: &Scripted) -> Requests {
    Requests::new(vec![server.address.to_string().parse().unwrap()])
}

async fn get(requests: &Requests, url: &str) -> Result<Fetched, FetchError> {
    requests.get(url.parse().unwrap(), &options()).await
}

async fn failure(requests: &Requests, url: &str) -> FetchError {
    match get(requests, url).await {
        Err(error) => error,
        Ok(_) => panic!("{url} was fetched"),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn private_addresses_in_any_notation_are_not_requested() {
    let internal = Scripted::start(|_| reply(200, TEXT, "secret")).await;
    let internal_v6 = Scripted::on("[::1]:0", |_| reply(200, TEXT, "secret")).await;
    let (port, port6) = (internal.address.port(), internal_v6.address.port());
    let requests = Requests::new(Vec::new());

    for host in [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7f.1",
        "017700000001",
        "0177.0.0.1",
        "0177.0x0.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "10.0.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "0xa9fea9fe",
        "172.16.0.1",
        "192.168.0.1",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[::]",
    ] {
        let url = format!("http://{host}:{port}/");
        assert_eq!(
            failure(&requests, &url).await,
            FetchError::NotPublic,
            "{host}"
        );
    }
    for host in ["[::1]", "[0::1]", "[0:0:0:0:0:0:0:1]", "localhost"] {
        let url = format!("http://{host}:{port6}/");
        assert_eq!(
            failure(&requests, &url).await,
            FetchError::NotPublic,
            "{host}"
        );
    }

    assert_eq!(internal.requests(), [""; 0]);
    assert_eq!(internal_v6.requests(), [""; 0]);
}

#[tokio::test]
async fn a_name_with_a_private_address_is_not_requested() {
    let internal = Scripted::start(|_| reply(200, TEXT, "secret")).await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&lookups);
    let resolver = PublicResolver::new(Arc::new(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Box::pin(async { Ok(vec![([127, 0, 0, 1], 0).into()]) })
    }));
    let requests = Requests::with(Vec::new(), resolver);
    let url = format!("http://a.example:{}/", internal.address.port());

    assert_eq!(failure(&requests, &url).await, FetchError::NotPublic);
    assert_eq!(failure(&requests, &url).await, FetchError::NotPublic);

    assert_eq!(lookups.load(Ordering::Relaxed), 2);
    assert_eq!(internal.requests(), [""; 0]);
}

#[tokio::test]
async fn a_name_that_does_not_exist_fails_like_a_private_one() {
    let resolver = PublicResolver::new(Arc::new(|_| {
        Box::pin(async { Err(std::io::ErrorKind::NotFound.into()) })
    }));
    let requests = Requests::with(Vec::new(), resolver);

    let error = failure(&requests, "http://nobody.example/").await;

    assert_eq!(error, FetchError::NotPublic);
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_checked() {
    let internal = Scripted::start(|_| reply(200, TEXT, "secret")).await;
    let port = internal.address.port();
    let targets = [
        format!("http://127.0.0.1:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://localhost:{port}/"),
        "http://169.254.169.254/latest/meta-data/".into(),
    ];
    for status in [301, 302, 303, 307, 308] {
        let locations = targets.clone();
        let open = Scripted::start(move |path| match path {
            // the first hop is allowed
            "/first" => reply(302, "location: /0\r\n", ""),
            path => {
                let index: usize = path[1..].parse().unwrap();
                reply(status, &format!("location: {}\r\n", locations[index]), "")
            }
        })
        .await;
        let requests = client_for(&open);

        for index in 0..targets.len() {
            let url = open.url(&format!("/{index}"));
            assert_eq!(failure(&requests, &url).await, FetchError::NotPublic);
        }
        let url = open.url("/first");
        assert_eq!(failure(&requests, &url).await, FetchError::NotPublic);
    }

    assert_eq!(internal.requests(), [""; 0]);
}

#[tokio::test]
async fn at_most_five_redirects_are_followed() {
    let server = Scripted::start(|path| match path {
        "/0" => reply(200, TEXT, "there"),
        "/relative" => reply(302, "location: 0?a#b\r\n", ""),
        path => {
            let remaining: u32 = path[1..].split('?').next().unwrap().parse().unwrap();
            match remaining {
                0 => reply(200, TEXT, "there"),
                remaining => reply(302, &format!("location: /{}\r\n", remaining - 1), ""),
            }
        }
    })
    .await;
    let requests = client_for(&server);

    assert_eq!(
        get(&requests, &server.url("/5")).await.unwrap().bytes,
        b"there"
    );
    assert_eq!(
        get(&requests, &server.url("/relative"))
            .await
            .unwrap()
            .bytes,
        b"there"
    );
    assert_eq!(
        failure(&requests, &server.url("/6")).await,
        FetchError::Redirects
    );
}

#[tokio::test]
async fn a_redirect_to_another_scheme_or_with_credentials_is_not_followed() {
    let server = Scripted::start(|path| {
        let location = match path {
            "/1" => "location: file:///etc/passwd\r\n",
            "/2" => "location: ftp://a.example/\r\n",
            "/3" => "location: http://user:pass@a.example/\r\n",
            "/4" => "location: http://\r\n",
            "/5" => "location: data:text/plain,a\r\n",
            _ => "",
        };
        reply(302, location, "")
    })
    .await;
    let requests = client_for(&server);

    for index in 1..=6 {
        let url = server.url(&format!("/{index}"));
        assert_eq!(
            failure(&requests, &url).await,
            FetchError::Location,
            "{index}"
        );
    }
}

#[tokio::test]
async fn a_request_has_no_cookie_no_credential_and_no_referer() {
    let server = Scripted::start(|path| match path {
        "/a" => reply(302, "location: /b\r\nset-cookie: a=b\r\n", ""),
        _ => reply(200, TEXT, "there"),
    })
    .await;

    get(&client_for(&server), &server.url("/a")).await.unwrap();

    for request in server.requests() {
        let mut lines: Vec<_> = request.trim_end().lines().skip(1).collect();
        lines.sort_unstable();
        let host = format!("host: {}", server.address);
        let agent = format!("user-agent: {AGENT}");
        assert_eq!(
            lines,
            ["accept-encoding: gzip", "accept: text/*", &host, &agent]
        );
    }
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_page_may_be_as_large_as_the_limit_but_no_larger() {
    let chunked = |bytes: usize| {
        let text = "a".repeat(bytes);
        format!(
            "HTTP/1.1 200 X\r\n{TEXT}transfer-encoding: chunked\r\n\r\n{bytes:x}\r\n{text}\r\n0\r\n\r\n"
        )
    };
    let server = Scripted::start(move |path| match path {
        "/fits" => reply(200, TEXT, "a".repeat(MAX_BYTES)),
        "/long" => reply(200, TEXT, "a".repeat(MAX_BYTES + 1)),
        "/chunked-fits" => Reply::Bytes(chunked(MAX_BYTES).into()),
        "/chunked-long" => Reply::Bytes(chunked(MAX_BYTES + 1).into()),
        "/gzip-fits" => {
            let headers = format!("{TEXT}content-encoding: gzip\r\n");
            reply(200, &headers, gzip(&[b'a'; MAX_BYTES]))
        }
        "/gzip-long" => {
            let headers = format!("{TEXT}content-encoding: gzip\r\n");
            reply(200, &headers, gzip(&[b'a'; MAX_BYTES + 1]))
        }
        _ => unreachable!(),
    })
    .await;
    let requests = client_for(&server);

    for path in ["/fits", "/chunked-fits", "/gzip-fits"] {
        let page = get(&requests, &server.url(path)).await.unwrap();
        assert_eq!(page.bytes, [b'a'; MAX_BYTES], "{path}");
    }
    for path in ["/long", "/chunked-long", "/gzip-long"] {
        let error = failure(&requests, &server.url(path)).await;
        assert_eq!(error, FetchError::TooLong(MAX_BYTES), "{path}");
    }
}

#[tokio::test]
async fn decompression_bombs_and_endless_pages_are_stopped_at_the_limit() {
    // 1 GB of zeros, and an endless sequence of empty members
    let megabyte = gzip(&vec![0; 1_000_000]);
    let server = Scripted::start(move |path| {
        let headers = format!(
            "HTTP/1.1 200 X\r\n{TEXT}{}\r\n",
            match path {
                "/plain" => "",
                _ => "content-encoding: gzip\r\n",
            }
        );
        let head = headers.into_bytes();
        match path {
            "/plain" => Reply::Endless(head, vec![b'a'; 4_096]),
            "/bomb" => Reply::Endless(head, megabyte.clone()),
            _ => Reply::Endless(head, gzip(b"")),
        }
    })
    .await;
    let requests = client_for(&server);

    for path in ["/plain", "/bomb", "/empty"] {
        let error = failure(&requests, &server.url(path)).await;
        assert_eq!(error, FetchError::TooLong(MAX_BYTES), "{path}");
    }
}

#[tokio::test]
async fn each_kind_of_failure_has_its_error() {
    let server = Scripted::start(|path| match path {
        "/404" => reply(404, TEXT, "secret"),
        "/500" => reply(500, TEXT, "secret"),
        "/304" => reply(304, "", ""),
        "/pdf" => reply(200, "content-type: application/pdf\r\n", "%PDF"),
        "/none" => reply(200, "", "a"),
        "/brotli" => reply(200, &format!("{TEXT}content-encoding: br\r\n"), "a"),
        "/twice" => reply(
            200,
            &format!("{TEXT}content-encoding: gzip, gzip\r\n"),
            gzip(&gzip(b"a")),
        ),
        "/no-gzip" => reply(
            200,
            &format!("{TEXT}content-encoding: gzip\r\n"),
            "abcdefghijklm",
        ),
        "/half-gzip" => reply(
            200,
            &format!("{TEXT}content-encoding: gzip\r\n"),
            &gzip(b"abcdefgh")[..15],
        ),
        "/cut" => Reply::Bytes(
            b"HTTP/1.1 200 X\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\na".into(),
        ),
        "/nonsense" => Reply::Bytes(b"nonsense\r\n\r\n".into()),
        _ => Reply::Bytes(Vec::new()),
    })
    .await;
    let requests = client_for(&server);

    for (path, error) in [
        ("/404", FetchError::Status(404)),
        ("/500", FetchError::Status(500)),
        ("/304", FetchError::Status(304)),
        ("/pdf", FetchError::Type),
        ("/none", FetchError::Type),
        ("/brotli", FetchError::Encoding),
        ("/twice", FetchError::Encoding),
        ("/no-gzip", FetchError::Broken),
        ("/half-gzip", FetchError::Broken),
        ("/cut", FetchError::Broken),
        ("/nonsense", FetchError::Connect),
        ("/closed", FetchError::Connect),
    ] {
        assert_eq!(failure(&requests, &server.url(path)).await, error, "{path}");
    }
    let closed = Requests::new(vec!["127.0.0.1:1".parse().unwrap()]);
    assert_eq!(
        failure(&closed, "http://127.0.0.1:1/").await,
        FetchError::Connect
    );
}

#[test]
fn a_url_is_http_or_https_without_credentials() {
    for text in [
        "",
        "a.example",
        "//a.example",
        "http://",
        " http://a.example",
        "http://a.example/\n",
        "ftp://a.example",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://user@a.example",
        "http://:pass@a.example",
        "http://[fe80::1%25eth0]/",
        &*format!("http://a.example/{}", "a".repeat(2_048)),
    ] {
        assert!(parse_url(text).is_none(), "{text}");
    }
    assert!(parse_url("https://a.example:8443/b?c#d").is_some());
}

#[test]
fn error_texts_contain_no_host() {
    for error in [
        FetchError::NotPublic,
        FetchError::Connect,
        FetchError::Timeout(Duration::from_secs(10)),
        FetchError::Status(404),
        FetchError::Redirects,
        FetchError::Location,
        FetchError::Type,
        FetchError::TooLong(MAX_BYTES),
        FetchError::Encoding,
        FetchError::Broken,
    ] {
        let text = error.to_string();
        assert!(!text.contains("http:") && !text.contains("127"), "{text}");
    }
}

/// Writes an IPv4 address in one of the notations that URLs allow.
fn notation(bits: u32, form: u8) -> String {
    let [a, b, c, d] = bits.to_be_bytes();
    match form {
        0 => format!("{a}.{b}.{c}.{d}"),
        1 => format!("{bits}"),
        2 => format!("{bits:#x}"),
        3 => format!("0{bits:o}"),
        4 => format!("{a:#x}.{b}.0{c:o}.{d}"),
        5 => format!("{a}.{}", bits & 0xff_ffff),
        6 => format!("{a}.{b}.{}", bits & 0xffff),
        7 => format!("[::ffff:{a}.{b}.{c}.{d}]"),
        8 => format!("[64:ff9b::{a}.{b}.{c}.{d}]"),
        _ => format!("[::ffff:{:x}:{:x}]", bits >> 16, bits & 0xffff),
    }
}

proptest! {
    #[test]
    fn every_notation_of_an_address_is_classified_alike(bits: u32, form in 0_u8..10) {
        let plain = std::net::Ipv4Addr::from_bits(bits);
        let url = parse_url(&format!("http://{}/", notation(bits, form))).unwrap();

        let address = address_of(&url).unwrap();

        prop_assert_eq!(is_public(address), is_public(plain.into()));
    }
}
