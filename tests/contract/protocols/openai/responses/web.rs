use std::io::Write as _;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::{Value, json};

use super::{Events, kinds, run, with_models};
use crate::http::over_both_stores;
use crate::protocols::openai::{Api, refused};
use crate::support::client::new_id;
use crate::support::pages::{Page, Pages};
use crate::support::server::{Builder, Server};
use crate::support::upstream::{Reply, Upstream};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";
const MAX_BYTES: usize = 1_000_000;

fn web_tools() -> Value {
    json!([{"type": "mcp", "server_label": "web", "server_url": "threadkeep:web", "require_approval": "never"}])
}

fn with_pages(server: &Server, upstream: &Upstream, pages: &Pages) -> Builder {
    with_models(server, upstream)
        .set("THREADKEEP_WEB_FETCH", true)
        .set("THREADKEEP_WEB_FETCH_PRIVATE_HOSTS", pages.authority())
        .set("THREADKEEP_WEB_FETCH_MAX_BYTES", MAX_BYTES)
}

fn fetch(url: &str) -> (&'static str, String) {
    ("web_fetch", json!({ "url": url }).to_string())
}

async fn run_calls(
    server: &Server,
    upstream: &Upstream,
    tools: &Value,
    calls: &[(&'static str, String)],
) -> Vec<Value> {
    let calls: Vec<_> = calls
        .iter()
        .map(|(name, arguments)| (*name, arguments.as_str()))
        .collect();
    upstream.script([Reply::calls(calls), Reply::text("done")]);
    let body = json!({"model": "m", "tools": tools, "input": "go"});
    let answer = run(&Api::of(server), &body).ok().await.json();
    assert_eq!(answer["status"], "completed", "{answer}");
    let mut items = answer["output"].as_array().unwrap().clone();
    assert_eq!(items.pop().unwrap()["type"], "message");
    items
}

async fn fetch_all(server: &Server, upstream: &Upstream, urls: &[String]) -> Vec<Value> {
    let calls: Vec<_> = urls.iter().map(|url| fetch(url)).collect();
    run_calls(server, upstream, &web_tools(), &calls).await
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

async fn a_model_searches_and_reads_a_result(server: &Server) {
    let upstream = Upstream::start().await;
    let pages = Pages::start(|path| match path {
        "/page" => Page::of_type(
            "text/html",
            "<title>T</title><p>One<p>Two<script>x</script>",
        ),
        path => {
            assert!(path.starts_with("/search?q=threads&format=json"), "{path}");
            let page = json!({"title": "T", "url": "https://a.example", "content": "One"});
            Page::of_type("application/json", json!({"results": [page]}).to_string())
        }
    })
    .await;
    let server = with_pages(server, &upstream, &pages)
        .set(
            "THREADKEEP_WEB_SEARCH",
            format!("searxng {}", pages.url("")),
        )
        .start();
    let api = Api::of(&server);
    let id = new_id();
    let page = pages.url("/page");
    upstream.script([
        Reply::calls([("web_search", r#"{"query":"threads"}"#)]),
        Reply::calls([("web.fetch", format!(r#"{{"url":"{page}"}}"#))]),
        Reply::text("Two."),
    ]);
    let body = json!({"model": "m", "conversation": id, "tools": web_tools(), "input": "Find it."});

    let answer = run(&api, &body).ok().await.json();

    let found = r#"{"results":[{"title":"T","url":"https://a.example","snippet":"One"}]}"#;
    let text = "T\nOne\nTwo";
    let output = &answer["output"];
    assert_eq!(kinds(output), ["mcp_call", "mcp_call", "message"]);
    assert_eq!(output[0]["server_label"], "web");
    assert_eq!(output[0]["output"], found);
    assert_eq!(output[1]["name"], "web_fetch");
    assert_eq!(output[1]["output"], text);
    assert_eq!(output[1]["error"], Value::Null);
    let requests = upstream.requests();
    assert_eq!(requests[1].results(), [found]);
    assert_eq!(requests[2].results(), [text]);
    let tools = requests[0].body["tools"].as_array().unwrap().iter();
    let names: Vec<_> = tools.map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["web_search", "web_fetch"]);
    let conversation = api.conversation(&id.replace("thrd_", "conv_"));
    let items = conversation.list("order=asc").await;
    assert_eq!(items["data"][2], output[1]);
    assert_eq!(upstream.faults(), [""; 0]);
    let log = server.log();
    assert!(
        !log.contains("a.example") && !log.contains("/page"),
        "{log}"
    );
}

async fn the_web_search_tool_type_creates_web_search_items(server: &Server) {
    let upstream = Upstream::start().await;
    let found = r#"{"results":[{"title":"T","url":"https://a.example","content":"One"}]}"#;
    let pages = Pages::start(move |_| Page::of_type("application/json", found)).await;
    let server = with_models(server, &upstream)
        .set("THREADKEEP_WEB_SEARCH", format!("tavily {}", pages.url("")))
        .set("THREADKEEP_WEB_SEARCH_KEY", "tvly-1")
        .start();
    let api = Api::of(&server);
    let tools = json!([{"type": "web_search", "search_context_size": "low"}]);
    let arguments = r#"{"query":"a b","site":"a.example"}"#;
    upstream.script([
        Reply::calls([("web_search", arguments)]),
        Reply::text("Nothing."),
        Reply::text("Still nothing."),
    ]);
    let body = json!({
        "model": "m", "tools": tools, "tool_choice": {"type": "web_search"}, "input": "Find it.",
        "include": ["web_search_call.action.sources"],
    });

    let answer = run(&api, &body).ok().await.json();
    let next = json!({"model": "m", "previous_response_id": answer["id"], "input": "And now?"});
    run(&api, &next).ok().await;

    let call = &answer["output"][0];
    assert_eq!(call["type"], "web_search_call");
    assert_eq!(call["status"], "completed");
    let sources = json!([{"type": "url", "url": "https://a.example"}]);
    assert_eq!(
        call["action"],
        json!({"type": "search", "query": "a b", "sources": sources})
    );
    assert!(call["id"].as_str().unwrap().starts_with("ws_"));
    assert!(pages.requests()[0].contains("authorization: Bearer tvly-1"));
    let last = upstream.requests().pop().unwrap();
    let messages = last.messages();
    let sent_call = &messages[1]["tool_calls"][0]["function"];
    assert_eq!(
        sent_call,
        &json!({"name": "web_search", "arguments": arguments})
    );
    let found = found.replace("content", "snippet");
    assert_eq!(messages[2]["content"], found);
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn an_image_is_in_the_response_but_not_in_the_history_or_prompts(server: &Server) {
    let upstream = Upstream::start().await;
    let base64 = STANDARD.encode(PNG);
    let image = json!({"data": [{"b64_json": base64}]}).to_string();
    let painter = Pages::start(move |_| Page::of_type("application/json", &image)).await;
    let server = with_painter(server, &upstream, &painter).start();
    let api = Api::of(&server);
    let id = new_id();
    let tools = json!([{"type": "image_generation", "size": "auto"}]);
    upstream.script([
        Reply::calls([("image_generation", r#"{"prompt":"a cat"}"#)]),
        Reply::text("Here."),
    ]);
    let body = json!({"model": "m", "conversation": id, "tools": tools, "input": "Paint."});

    let answer = run(&api, &body).ok().await.json();

    let call = &answer["output"][0];
    assert_eq!(call["type"], "image_generation_call");
    assert_eq!(call["status"], "completed");
    assert_eq!(call["result"], base64);
    let path = format!("/responses/{}", answer["id"].as_str().unwrap());
    assert_eq!(api.ask(Method::GET, &path).ok().await.json(), answer);
    let request = &painter.requests()[0];
    assert!(
        request.starts_with("POST /v1/images/generations "),
        "{request}"
    );
    assert!(request.ends_with(r#"{"model":"painter-1","prompt":"a cat","n":1}"#));
    let conversation = api.conversation(&id.replace("thrd_", "conv_"));
    let items = conversation.list("order=asc").await;
    let kept = &items["data"][1];
    assert_eq!(kept["type"], "image_generation_call");
    assert_eq!(kept["result"], Value::Null);
    let metadata: Value = serde_json::from_str(kept["output"].as_str().unwrap()).unwrap();
    assert_eq!(metadata["id"], call["id"]);
    assert_eq!(metadata["model"], "painter-1");
    assert_eq!(
        metadata["data"],
        json!([{"mime_type": "image/png", "bytes": PNG.len()}])
    );
    assert_eq!(metadata["usage"], json!({"images": 1}));

    // a client that stores its own history may send the image call back unchanged
    upstream.script([Reply::text("A cat."), Reply::text("A cat.")]);
    let next = json!({"model": "m", "conversation": id, "input": "What is it?"});
    run(&api, &next).ok().await;
    let again = json!({"model": "m", "input": [call, {"role": "user", "content": "What is it?"}]});
    run(&api, &again).ok().await;
    for request in &upstream.requests()[1..] {
        let text = request.body.to_string();
        assert!(!text.contains(&base64), "{text}");
        assert!(text.contains("image/png"), "{text}");
    }
    assert_eq!(upstream.faults(), [""; 0]);
}

fn with_painter(server: &Server, upstream: &Upstream, painter: &Pages) -> Builder {
    let (url, key) = (upstream.url(), upstream.key());
    let upstreams = format!(
        "main openai-chat {url}, painter openai-chat {}",
        painter.url("/v1")
    );
    with_models(server, upstream)
        .set("THREADKEEP_UPSTREAMS", upstreams)
        .set("THREADKEEP_UPSTREAM_KEYS", format!("main:{key}"))
        .set("THREADKEEP_IMAGES", "painter painter-1")
}

async fn an_image_that_does_not_fit_in_the_response_fails(server: &Server) {
    let upstream = Upstream::start().await;
    let bytes = [PNG, &vec![0; 4_000_000]].concat();
    let base64 = STANDARD.encode(&bytes);
    let image = json!({"data": [{"b64_json": base64}]}).to_string();
    let painter = Pages::start(move |_| Page::of_type("application/json", &image)).await;
    let server = with_painter(server, &upstream, &painter).start();
    let tools = json!([{"type": "image_generation"}]);
    let call = ("image_generation", r#"{"prompt":"a cat"}"#.to_owned());

    let items = run_calls(&server, &upstream, &tools, &[call.clone(), call]).await;

    assert_eq!(items[0]["result"].as_str().unwrap().len(), base64.len());
    assert_eq!(items[1]["result"], Value::Null);
    assert_eq!(items[1]["status"], "failed");
    assert_eq!(items[1]["code"], "IMAGE_GENERATION_FAILED");
    assert_eq!(upstream.faults(), [""; 0]);
}

async fn unconfigured_tools_are_unavailable(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let mut tools = web_tools();
    let image = json!({"type": "image_generation"});
    tools.as_array_mut().unwrap().push(image);
    let calls = [
        ("web_search", r#"{"query":"a"}"#.to_owned()),
        fetch("https://a.example"),
        ("image_generation", r#"{"prompt":"a"}"#.to_owned()),
    ];

    let items = run_calls(&server, &upstream, &tools, &calls).await;

    let codes = [
        "WEB_SEARCH_UNAVAILABLE",
        "WEB_FETCH_UNAVAILABLE",
        "IMAGE_GENERATION_UNAVAILABLE",
    ];
    for (item, code) in items.iter().zip(codes) {
        assert_eq!(item["code"], code, "{item}");
        assert_eq!(item["status"], "failed");
        assert_eq!(item["output"], Value::Null);
    }
    let last = upstream.requests().pop().unwrap();
    let mut results = last.messages().iter();
    let first = results.find(|message| message["role"] == "tool").unwrap();
    assert_eq!(
        first["content"],
        r#"{"error":"web.search: it is not configured","code":"WEB_SEARCH_UNAVAILABLE"}"#
    );
}

async fn invalid_arguments_are_errors_without_a_code(server: &Server) {
    let upstream = Upstream::start().await;
    let pages = Pages::start(|_| unreachable!()).await;
    let server = with_pages(server, &upstream, &pages).start();
    let calls = [
        ("web_fetch", "{}".to_owned()),
        fetch("file:///etc/passwd"),
        (
            "web_fetch",
            r#"{"url":"https://a.example","max_length":100001}"#.to_owned(),
        ),
        (
            "web_search",
            r#"{"query":"a","num_results":"five"}"#.to_owned(),
        ),
        ("kv_list", "{}".to_owned()),
    ];

    let items = run_calls(&server, &upstream, &web_tools(), &calls).await;

    let texts = [
        "web.fetch url is required",
        "web.fetch url must be an http or https URL without user and password",
        "web.fetch max_length must be an integer from 1 to 100000",
        "web.search num_results must be an integer from 1 to 20",
        "there is no such tool; the tools are web_search, web_fetch",
    ];
    for (item, text) in items.iter().zip(texts) {
        assert_eq!(item["error"], text);
        assert_eq!(item.get("code"), None);
    }
    assert_eq!(pages.requests(), [""; 0]);
}

async fn internal_hosts_receive_no_requests(server: &Server) {
    let upstream = Upstream::start().await;
    let secret = |_: &str| Page::of_type("text/plain", "secret");
    let (inside, inside6) = (
        Pages::start(secret).await,
        Pages::start_on("[::1]:0", secret).await,
    );
    let (port, port6) = (inside.port(), inside6.port());
    let hosts = [
        "127.0.0.1",
        "127.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "localhost",
        "localhost.",
        "LocalHost",
        "%6cocalhost",
        "①②⑦.0.0.1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[::]",
        "169.254.169.254",
        "2852039166",
        "10.0.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "[fd00:ec2::254]",
        "[fe80::1]",
    ];
    let mut targets: Vec<_> = hosts.map(|host| format!("http://{host}:{port}/")).into();
    for host in ["[::1]", "[0:0::0:1]", "localhost"] {
        targets.push(format!("http://{host}:{port6}/"));
    }
    let locations = targets.clone();
    let open = Pages::start(move |path| {
        let index: usize = path[1..].parse().unwrap();
        Page::redirect(&locations[index])
    })
    .await;
    let server = with_pages(server, &upstream, &open).start();
    let redirected: Vec<_> = (0..targets.len())
        .map(|index| open.url(&format!("/{index}")))
        .collect();

    let direct = fetch_all(&server, &upstream, &targets).await;
    let behind = fetch_all(&server, &upstream, &redirected).await;

    for (item, url) in direct.iter().chain(&behind).zip(targets.iter().cycle()) {
        assert_eq!(item["code"], "WEB_FETCH_FAILED", "{url}");
        let text = "web.fetch: the host has no public address";
        // a redirect to a URL with invalid characters is not followed
        assert!(item["error"] == text || !url.is_ascii(), "{url}: {item}");
    }
    assert_eq!(direct.len() + behind.len(), 2 * targets.len());
    assert_eq!(inside.requests(), [""; 0]);
    assert_eq!(inside6.requests(), [""; 0]);
    assert_eq!(open.requests().len(), targets.len());
}

async fn hostile_pages_stay_within_the_limits(server: &Server) {
    let upstream = Upstream::start().await;
    let deep = |open: &str, close: &str| {
        let page = format!("a{}b{}c", open.repeat(200_000), close.repeat(200_000));
        let headers = "content-type: text/html\r\ncontent-encoding: gzip\r\n";
        Page::new(200, headers, gzip(page.as_bytes()))
    };
    let megabyte = gzip(&vec![b'a'; 1_000_000]);
    let pages = Pages::start(move |path| match path {
        "/fits" => Page::of_type("text/plain", vec![b'a'; MAX_BYTES]),
        "/long" => Page::of_type("text/plain", vec![b'a'; MAX_BYTES + 1]),
        "/b" => deep("<b>", ""),
        "/table" => deep("<a>", ""),
        "/svg" => Page::of_type("text/html", "a<svg>".repeat(150_000)),
        "/pre" => deep("<i>", ""),
        path => {
            let encoding = if path == "/bomb" {
                "content-encoding: gzip\r\n"
            } else {
                ""
            };
            let head = format!("HTTP/1.1 200 X\r\ncontent-type: text/html\r\n{encoding}\r\n");
            match path {
                "/bomb" => Page::Endless(head.into(), megabyte.clone()),
                "/endless" => Page::Endless(head.into(), b"<p>".repeat(1_000)),
                _ => Page::Stalled(head.into()),
            }
        }
    })
    .await;
    let server = with_pages(server, &upstream, &pages)
        .set("THREADKEEP_WEB_FETCH_TIMEOUT_MS", 120_000)
        .start();
    let paths = [
        "/fits", "/b", "/table", "/svg", "/pre", "/long", "/bomb", "/endless",
    ];
    let urls = paths.map(|path| pages.url(path));
    let peak = server.peak_bytes();
    let start = Instant::now();

    let items = fetch_all(&server, &upstream, &urls).await;

    // the server stops reading pages that never end
    assert!(start.elapsed() < Duration::from_secs(600));
    assert_eq!(items[0]["output"].as_str().unwrap().len(), 20_000);
    for item in &items[1..5] {
        let output = item["output"].as_str().unwrap();
        assert!(output.starts_with('a'), "{output:.20}");
    }
    assert_eq!(items[1]["output"], "abc");
    for item in &items[5..] {
        assert_eq!(
            item["error"],
            "web.fetch: the page has more than 1000000 bytes"
        );
        assert_eq!(item["code"], "WEB_FETCH_FAILED");
    }
    // the server reads one page at a time, so it keeps only one page in memory
    let grown = server.peak_bytes().saturating_sub(peak);
    assert!(grown < 64 * 1_048_576, "{grown}");
}

async fn an_unresponsive_page_times_out(server: &Server) {
    let upstream = Upstream::start().await;
    let pages = Pages::start(|path| {
        let head = "HTTP/1.1 200 X\r\ncontent-type: text/plain\r\n";
        match path {
            "/head" => Page::Stalled(Vec::new()),
            _ => Page::Stalled(format!("{head}\r\na").into()),
        }
    })
    .await;
    let server = with_pages(server, &upstream, &pages)
        .set("THREADKEEP_WEB_FETCH_TIMEOUT_MS", 200)
        .start();
    let urls = ["/head", "/body"].map(|path| pages.url(path));

    for item in fetch_all(&server, &upstream, &urls).await {
        let text = "web.fetch: the page did not load within 200 ms";
        assert_eq!(item["error"], text);
    }
}

async fn invalid_tools_are_rejected_before_any_server_is_called(server: &Server) {
    let upstream = Upstream::start().await;
    let server = with_models(server, &upstream).start();
    let api = Api::of(&server);
    let web = &web_tools()[0];
    let allowed = |names: Value| {
        let mut tool = web.clone();
        tool["allowed_tools"] = names;
        json!([tool])
    };
    for (tools, code, param) in [
        (json!([web, web]), "duplicate_tool", "tools[1]"),
        (
            json!([web, {"type": "web_search"}]),
            "duplicate_tool",
            "tools[1]",
        ),
        (
            json!([{"type": "web_search"}, {"type": "function", "name": "web_search"}]),
            "duplicate_tool",
            "tools[1]",
        ),
        (
            json!([{"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}]),
            "unsupported_tool",
            "tools[0].filters",
        ),
        (
            json!([{"type": "image_generation", "size": "1024x1024"}]),
            "unsupported_tool",
            "tools[0].size",
        ),
        (
            allowed(json!(["kv_write"])),
            "invalid_value",
            "tools[0].allowed_tools",
        ),
        (
            allowed(json!(["image_generation"])),
            "invalid_value",
            "tools[0].allowed_tools",
        ),
    ] {
        let body = json!({"model": "m", "tools": tools, "input": "go"});
        refused(run(&api, &body), 400, Some(code), Some(param)).await;
    }
    for (tools, choice) in [
        (allowed(json!(["web_fetch"])), json!({"type": "web_search"})),
        (json!([]), json!({"type": "image_generation"})),
    ] {
        let body = json!({"model": "m", "tools": tools, "tool_choice": choice, "input": "go"});
        refused(
            run(&api, &body),
            400,
            Some("invalid_value"),
            Some("tool_choice"),
        )
        .await;
    }
    assert_eq!(upstream.count(), 0);
}

async fn a_stream_reports_each_call_from_start_to_end(server: &Server) {
    let upstream = Upstream::start().await;
    let base64 = STANDARD.encode(PNG);
    let image = json!({"data": [{"b64_json": base64}]}).to_string();
    let painter = Pages::start(move |_| Page::of_type("application/json", &image)).await;
    let server = with_painter(server, &upstream, &painter).start();
    upstream.script([
        Reply::calls([
            ("web_search", r#"{"query":"a"}"#),
            ("image_generation", r#"{"prompt":"a"}"#),
        ]),
        Reply::text("Here."),
    ]);
    let tools = json!([{"type": "web_search"}, {"type": "image_generation"}]);
    let body = json!({"model": "m", "tools": tools, "input": "go", "stream": true});

    let events = Events::of(run(&Api::of(&server), &body)).await.rest().await;

    let of_kind = |kind: &str| {
        let events = events.iter().filter(|event| event["type"] == kind);
        events
            .map(|event| event["item"].clone())
            .collect::<Vec<_>>()
    };
    let (added, done) = (
        of_kind("response.output_item.added"),
        of_kind("response.output_item.done"),
    );
    let kinds = ["web_search_call", "image_generation_call", "message"];
    for (index, kind) in kinds.into_iter().enumerate() {
        assert_eq!(added[index]["type"], kind);
        assert_eq!(added[index]["status"], "in_progress");
        assert_eq!(added[index]["id"], done[index]["id"]);
    }
    assert_eq!(added[1]["result"], Value::Null);
    assert_eq!(done[0]["code"], "WEB_SEARCH_UNAVAILABLE");
    assert_eq!(done[1]["result"], base64);
    let progress = events.iter().filter_map(|event| {
        let kind = event["type"].as_str()?.strip_prefix("response.")?;
        kind.contains("_call.").then_some(kind)
    });
    let expected = [
        "web_search_call.in_progress",
        "web_search_call.searching",
        "image_generation_call.in_progress",
        "image_generation_call.generating",
        "image_generation_call.completed",
    ];
    assert_eq!(progress.collect::<Vec<_>>(), expected);
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"], json!(done));
}

over_both_stores! {
    a_model_searches_and_reads_a_result,
    the_web_search_tool_type_creates_web_search_items,
    an_image_is_in_the_response_but_not_in_the_history_or_prompts,
    an_image_that_does_not_fit_in_the_response_fails,
    unconfigured_tools_are_unavailable,
    invalid_arguments_are_errors_without_a_code,
    internal_hosts_receive_no_requests,
    hostile_pages_stay_within_the_limits,
    an_unresponsive_page_times_out,
    invalid_tools_are_rejected_before_any_server_is_called,
    a_stream_reports_each_call_from_start_to_end,
}

#[tokio::test]
async fn a_call_whose_replica_is_killed_runs_again_and_is_recorded_once() {
    use crate::support::server::Backend;

    let shared = Server::start(Backend::Redis);
    let upstream = Upstream::start().await;
    let count = std::sync::atomic::AtomicUsize::new(0);
    let pages = Pages::start(move |_| {
        let head = "HTTP/1.1 200 X\r\ncontent-type: text/plain\r\n\r\n";
        match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => Page::Stalled(head.into()),
            _ => Page::of_type("text/plain", "there"),
        }
    })
    .await;
    let [first, second] = [(); 2].map(|()| {
        with_pages(&shared, &upstream, &pages)
            .set("THREADKEEP_RESPONSE_LEASE_MS", 1_000)
            .start()
    });
    let (name, arguments) = fetch(&pages.url("/"));
    upstream.script([Reply::calls([(name, arguments)]), Reply::text("done")]);
    let id = new_id();
    let body = json!({"model": "m", "conversation": id, "tools": web_tools(), "input": "go"});
    let ask = |server: &Server| {
        let api = Api::of(server);
        run(&api, &body).header("idempotency-key", &id)
    };

    let stuck = tokio::spawn(ask(&first).try_send());
    pages.await_requests(1).await;
    first.kill();
    drop(stuck.await);
    let answer = ask(&second).ok().await.json();

    assert_eq!(kinds(&answer["output"]), ["mcp_call", "message"]);
    assert_eq!(answer["output"][0]["output"], "there");
    assert_eq!(pages.requests().len(), 2);
    assert_eq!(upstream.count(), 2);
    assert_eq!(upstream.faults(), [""; 0]);
}
