use serde_json::{Value, json};

use super::*;
use crate::scripted::{Reply, Scripted, reply};

fn searcher(server: &Scripted, kind: SearchKind) -> Searcher {
    Searcher::new(SearchSettings {
        kind,
        url: server.url("/api/").parse().unwrap(),
        key: kind.has_key().then(|| "key-1".parse().unwrap()),
    })
}

fn search(max_results: usize, site: Option<&str>) -> WebSearch {
    WebSearch {
        query: "rust & \"actix\"".into(),
        max_results,
        site: site.map(Into::into),
    }
}

fn result(title: &str, url: &str, snippet: &str) -> SearchResult {
    SearchResult {
        title: title.into(),
        url: url.into(),
        snippet: snippet.into(),
    }
}

fn json_reply(body: &Value) -> Reply {
    reply(200, "content-type: application/json\r\n", body.to_string())
}

fn request_of(server: &Scripted, header: &str) -> (String, Option<String>, String) {
    let request = server.requests().pop().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let value = head.lines().find_map(|line| line.strip_prefix(header));
    let line = head.lines().next().unwrap();
    (line.into(), value.map(Into::into), body.into())
}

#[tokio::test]
async fn brave_requests_have_a_key_header_and_html_results_become_text() {
    let server = Scripted::start(|_| {
        json_reply(&json!({"type": "search", "web": {"results": [
            {"title": "A &amp; <strong>b</strong>", "url": "https://a.example", "description": "c&#x27;s <strong>d</strong>", "age": 1},
            {"title": "e", "url": "https://e.example"},
        ]}}))
    })
    .await;

    let results = searcher(&server, SearchKind::Brave)
        .search(&search(5, Some("a.example")))
        .await;

    assert_eq!(
        results.unwrap(),
        [
            result("A & b", "https://a.example", "c's d"),
            result("e", "https://e.example", ""),
        ]
    );
    let (line, key, _) = request_of(&server, "x-subscription-token: ");
    assert_eq!(
        line,
        "GET /api/res/v1/web/search?q=rust+%26+%22actix%22+site%3Aa.example&count=5 HTTP/1.1"
    );
    assert_eq!(key.as_deref(), Some("key-1"));
}

#[tokio::test]
async fn brave_omits_its_results_if_nothing_was_found() {
    let server = Scripted::start(|_| json_reply(&json!({"type": "search"}))).await;

    let results = searcher(&server, SearchKind::Brave)
        .search(&search(5, None))
        .await;

    assert_eq!(results.unwrap(), []);
}

#[tokio::test]
async fn searxng_requests_ask_for_json_and_extra_results_are_dropped() {
    let server = Scripted::start(|_| {
        let page = |index| json!({"title": "t", "url": format!("https://{index}.example"), "content": null, "engine": "x"});
        let pages: Vec<_> = (0..20).map(page).collect();
        json_reply(&json!({"query": "q", "results": pages}))
    })
    .await;

    let results = searcher(&server, SearchKind::Searxng)
        .search(&search(2, None))
        .await;

    assert_eq!(
        results.unwrap(),
        [
            result("t", "https://0.example", ""),
            result("t", "https://1.example", ""),
        ]
    );
    let (line, credential, _) = request_of(&server, "authorization: ");
    assert_eq!(
        line,
        "GET /api/search?q=rust+%26+%22actix%22&format=json HTTP/1.1"
    );
    assert_eq!(credential, None);
}

#[tokio::test]
async fn tavily_requests_have_a_bearer_token_and_a_list_of_domains() {
    let server = Scripted::start(|_| {
        json_reply(&json!({"results": [
            {"title": "t", "url": "https://a.example", "content": "a < b", "score": 0.9},
        ]}))
    })
    .await;

    let results = searcher(&server, SearchKind::Tavily)
        .search(&search(20, Some("a.example")))
        .await;

    assert_eq!(
        results.unwrap(),
        [result("t", "https://a.example", "a < b")]
    );
    let (line, token, body) = request_of(&server, "authorization: ");
    assert_eq!(line, "POST /api/search HTTP/1.1");
    assert_eq!(token.as_deref(), Some("Bearer key-1"));
    assert_eq!(
        serde_json::from_str::<Value>(&body).unwrap(),
        json!({"query": "rust & \"actix\"", "max_results": 20, "include_domains": ["a.example"]})
    );
}

#[tokio::test]
async fn long_texts_are_truncated_and_results_with_long_urls_are_dropped() {
    let server = Scripted::start(|_| {
        json_reply(&json!({"results": [
            {"title": "long", "url": format!("https://a.example/{}", "a".repeat(2_048)), "content": ""},
            {"title": "ä".repeat(301), "url": "https://a.example", "content": "ö".repeat(2_001)},
        ]}))
    })
    .await;

    let results = searcher(&server, SearchKind::Searxng)
        .search(&search(5, None))
        .await;

    let expected = result(&"ä".repeat(300), "https://a.example", &"ö".repeat(2_000));
    assert_eq!(results.unwrap(), [expected]);
}

#[tokio::test]
async fn errors_name_the_kind_of_failure_but_not_the_answer() {
    let server = Scripted::start(|path| match path {
        path if path.starts_with("/403") => reply(403, "", "secret"),
        path if path.starts_with("/500") => reply(500, "", "secret"),
        path if path.starts_with("/302") => reply(302, "location: /403\r\n", ""),
        path if path.starts_with("/html") => reply(200, "", "<html>secret"),
        path if path.starts_with("/other") => reply(200, "", r#"{"results":[{"title":"t"}]}"#),
        path if path.starts_with("/long") => reply(200, "", "x".repeat(ANSWER_BYTES_MAX + 1)),
        _ => Reply::Bytes(b"HTTP/1.1 200 X\r\ncontent-length: 99\r\n\r\n{".to_vec()),
    })
    .await;

    for (path, text) in [
        ("/403", "the search server answered 403"),
        ("/500", "the search server answered 500"),
        ("/302", "the search server answered 302"),
        ("/html", "the answer of the search server is unreadable"),
        ("/other", "the answer of the search server is unreadable"),
        ("/long", "the answer of the search server is too long"),
        ("/cut", "the answer of the search server was cut off"),
    ] {
        let searcher = Searcher::new(SearchSettings {
            kind: SearchKind::Searxng,
            url: server.url(path).parse().unwrap(),
            key: None,
        });
        let error = searcher.search(&search(5, None)).await.unwrap_err();
        assert_eq!(error, StatelessError::Failed(text.into()), "{path}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let searcher = Searcher::new(SearchSettings {
        kind: SearchKind::Searxng,
        url: "http://127.0.0.1:1".parse().unwrap(),
        key: None,
    });

    let error = searcher.search(&search(5, None)).await.unwrap_err();

    let text = "the search server is unreachable";
    assert_eq!(error, StatelessError::Unavailable(text.into()));
}

#[tokio::test]
async fn a_server_that_does_not_answer_in_time_is_unavailable() {
    for stalled in ["", "HTTP/1.1 200 X\r\ncontent-length: 9\r\n\r\n{"] {
        let server = Scripted::start(move |_| Reply::Stall(stalled.into())).await;
        let searcher = Searcher {
            timeout: Duration::from_millis(50),
            ..searcher(&server, SearchKind::Searxng)
        };

        let error = searcher.search(&search(5, None)).await.unwrap_err();

        assert!(matches!(error, StatelessError::Unavailable(_)));
    }
    assert_eq!(TIMEOUT, Duration::from_secs(5));
}

#[tokio::test]
async fn the_debug_form_shows_neither_the_address_nor_the_key() {
    let server = Scripted::start(|_| unreachable!()).await;

    let debug = format!("{:?}", searcher(&server, SearchKind::Brave));

    assert!(debug.contains("Brave"), "{debug}");
    assert!(
        !debug.contains("key-1") && !debug.contains("127.0.0.1"),
        "{debug}"
    );
}
