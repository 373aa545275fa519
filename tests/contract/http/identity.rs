use std::collections::BTreeMap;

use reqwest::Method;

use crate::support::client::{Answer, Client, Request, hex_signature, new_id, signature};
use crate::support::server::{API_SECRET, Backend, SIGNING_SECRET, Server};

fn returned_id(answer: &Answer) -> String {
    let id = header_id(answer);
    assert_eq!(
        cookie_value(answer),
        cookie(&id, &signature(SIGNING_SECRET, &id))
    );
    id
}

fn header_id(answer: &Answer) -> String {
    let (id, signed) = answer
        .header("x-thread-id")
        .unwrap()
        .split_once(';')
        .unwrap();
    assert_eq!(signed, signature(SIGNING_SECRET, id));
    id.to_owned()
}

fn cookie_value(answer: &Answer) -> String {
    let pairs: Vec<_> = cookie_pairs(answer)
        .into_iter()
        .filter(|pair| pair.starts_with("atid="))
        .collect();
    assert_eq!(pairs.len(), 1, "{pairs:?}");
    pairs[0].strip_prefix("atid=").unwrap().to_owned()
}

fn cookie_pairs(answer: &Answer) -> Vec<String> {
    let cookies = answer.headers.get_all("set-cookie").iter();
    let pair = |text: &str| text.split(';').next().unwrap().to_owned();
    cookies
        .map(|cookie| pair(cookie.to_str().unwrap()))
        .collect()
}

#[derive(Clone, Default)]
struct CookieJar(BTreeMap<String, String>);

impl CookieJar {
    fn store(&mut self, answer: &Answer) {
        for pair in cookie_pairs(answer) {
            let (name, value) = pair.split_once('=').unwrap();
            self.0.insert(name.into(), value.into());
        }
    }

    fn header(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }
}

fn cookie(id: &str, signature: &str) -> String {
    let encoded = signature
        .replace('+', "%2B")
        .replace('/', "%2F")
        .replace('=', "%3D");
    format!("{id}.{encoded}")
}

pub(super) fn good_cookie(id: &str) -> String {
    format!("atid={}", cookie(id, &signature(SIGNING_SECRET, id)))
}

fn assert_returns_no_id(answer: &Answer) {
    assert_eq!(answer.header("x-thread-id"), None);
    assert_eq!(answer.header("set-cookie"), None);
}

async fn current_id(client: &Client, header: &str, value: &str) -> String {
    let answer = client
        .get("/v1/threads/current")
        .header(header, value)
        .ok()
        .await;
    let id = returned_id(&answer);
    assert_eq!(answer.json()["id"], id.as_str());
    id
}

async fn a_caller_without_an_id_gets_a_new_one(server: &Server) {
    let client = server.client();

    let first = client.get("/v1/threads/current").ok().await;
    let second = client.get("/v1/threads/current").ok().await;

    let id = returned_id(&first);
    assert_eq!(id.len(), 37);
    assert!(
        id.strip_prefix("thrd_")
            .unwrap()
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    );
    assert_ne!(id, returned_id(&second));
}

async fn nothing_is_stored_until_the_first_write(server: &Server) {
    let client = server.client();
    let minted = client.get("/v1/threads/current/state").ok().await;
    let thread = client.thread_of(&returned_id(&minted));

    let before = thread.object().await;
    thread.put("state/k", "1").ok().await;
    let after = thread.object().await;

    assert_eq!(before["exists"], false);
    assert_eq!(after["exists"], true);
    assert_eq!(after["version"], 1);
}

async fn a_new_caller_may_start_with_a_write(server: &Server) {
    let client = server.client();

    let written = client
        .request(Method::PUT, "/v1/threads/current/state/k")
        .json("1")
        .ok()
        .await;

    let thread = client.thread_of(&returned_id(&written));
    assert_eq!(thread.state().await, r#"{"k":1}"#);
}

async fn the_header_names_the_thread(server: &Server) {
    let thread = server.client().thread();

    let id = current_id(&server.client(), "x-thread-id", &thread.signed).await;

    assert_eq!(id, thread.id);
}

async fn the_cookie_names_the_thread(server: &Server) {
    let id = new_id();

    let found = current_id(&server.client(), "cookie", &good_cookie(&id)).await;

    assert_eq!(found, id);
}

async fn a_returned_cookie_names_the_same_thread(server: &Server) {
    let client = server.client();
    let minted = client.get("/v1/threads/current").ok().await;

    let found = current_id(
        &client,
        "cookie",
        &format!("atid={}", cookie_value(&minted)),
    )
    .await;

    assert_eq!(found, returned_id(&minted));
}

async fn a_header_takes_precedence_over_a_cookie(server: &Server) {
    let client = server.client();
    let thread = client.thread();

    let answer = thread
        .get("")
        .header("cookie", good_cookie(&new_id()))
        .ok()
        .await;

    assert_eq!(returned_id(&answer), thread.id);
}

async fn hex_signatures_are_accepted_in_any_case_and_returned_as_base64(server: &Server) {
    let client = server.client();
    let id = new_id();
    let lower = hex_signature(SIGNING_SECRET, &id);
    let upper = lower.to_uppercase();

    for hex in [lower, upper] {
        assert_eq!(
            current_id(&client, "x-thread-id", &format!("{id};{hex}")).await,
            id
        );
        assert_eq!(
            current_id(&client, "cookie", &format!("atid={id}.{hex}")).await,
            id
        );
    }
}

async fn only_valid_ids_are_accepted(server: &Server) {
    let client = server.client();
    let signed = |id: &str| format!("{id};{}", signature(SIGNING_SECRET, id));
    let of_length = |n: usize| format!("thrd_{}", "aZ9".repeat(22).split_at(n - 5).0);

    for length in [32, 37, 64] {
        let id = of_length(length);
        assert_eq!(current_id(&client, "x-thread-id", &signed(&id)).await, id);
    }
    let mut illegal = vec![of_length(31), of_length(65), String::new(), "thrd_".into()];
    illegal.push(new_id().replace("thrd_", "sess_"));
    illegal.push(format!("{}-", new_id()));
    illegal.push(format!("{}é", new_id()));
    for id in illegal {
        client
            .get("/v1/threads/current")
            .header("x-thread-id", signed(&id))
            .refused(401, "invalid_thread_signature")
            .await;
    }
}

fn bad_headers() -> Vec<String> {
    let id = new_id();
    let good = signature(SIGNING_SECRET, &id);
    let other = new_id();
    vec![
        String::new(),
        id.clone(),
        format!("{id};"),
        format!(";{good}"),
        format!("{other};{good}"),
        format!("{id};{}", signature("another secret", &id)),
        format!("{id};{}", good.trim_end_matches('=')),
        format!("{id};{}", &good[1..]),
        format!("{id};{}", "0".repeat(64)),
        format!("{id};{good};"),
        format!("{id}.{good}"),
        cookie(&id, &good),
        "\u{e9}".into(),
    ]
}

async fn every_invalid_header_gets_the_same_refusal(server: &Server) {
    let client = server.client();
    let mut details = Vec::new();

    for header in bad_headers() {
        let answer = client
            .get("/v1/threads/current/state")
            .header("x-thread-id", &header)
            .send()
            .await;

        let mut problem = answer.problem(401, "invalid_thread_signature");
        assert_returns_no_id(&answer);
        problem.as_object_mut().unwrap().remove("request_id");
        details.push(problem);
    }

    details.dedup();
    assert_eq!(details.len(), 1, "{details:?}");
}

async fn a_valid_cookie_does_not_replace_an_invalid_header(server: &Server) {
    let answer = server
        .client()
        .get("/v1/threads/current")
        .header("x-thread-id", "")
        .header("cookie", good_cookie(&new_id()))
        .send()
        .await;

    answer.problem(401, "invalid_thread_signature");
    assert_returns_no_id(&answer);
}

async fn two_headers_are_refused(server: &Server) {
    let thread = server.client().thread();

    let answer = thread
        .get("")
        .header("x-thread-id", &thread.signed)
        .send()
        .await;

    answer.problem(401, "invalid_thread_signature");
    assert_returns_no_id(&answer);
}

async fn a_bad_signature_is_refused_before_the_request_is_validated(server: &Server) {
    server
        .client()
        .request(Method::PUT, "/v1/threads/current/state/k")
        .header("x-thread-id", "thrd_x")
        .json("{")
        .refused(401, "invalid_thread_signature")
        .await;
}

async fn a_bad_cookie_is_ignored_and_replaced(server: &Server) {
    let client = server.client();
    let id = new_id();
    let bad = [
        "atid=".into(),
        "atid=x".into(),
        format!("atid={id}"),
        format!("atid={id}."),
        format!(
            "atid={}",
            cookie(&new_id(), &signature(SIGNING_SECRET, &id))
        ),
        format!("atid={}", cookie(&id, &signature("another secret", &id))),
    ];

    for cookie in bad {
        let found = current_id(&client, "cookie", &cookie).await;

        assert_ne!(found, id, "{cookie}");
    }
}

async fn the_first_cookie_that_verifies_counts(server: &Server) {
    let client = server.client();
    let (first, second) = (new_id(), new_id());
    let header = format!(
        "theme=dark; atid=bad; {}; {}; x=y",
        good_cookie(&first),
        good_cookie(&second)
    );

    let in_one = current_id(&client, "cookie", &header).await;
    let in_two = client
        .get("/v1/threads/current")
        .header("cookie", "atid=bad")
        .header("cookie", good_cookie(&second))
        .ok()
        .await;

    assert_eq!(in_one, first);
    assert_eq!(returned_id(&in_two), second);
}

async fn a_cookie_with_another_name_is_ignored(server: &Server) {
    let id = new_id();
    let cookie = good_cookie(&id);

    for other in [
        cookie.replace("atid", "ATID"),
        format!("x{cookie}"),
        cookie.replace("atid", "atid2"),
    ] {
        let found = current_id(&server.client(), "cookie", &other).await;

        assert_ne!(found, id, "{other}");
    }
}

async fn a_refused_request_does_not_return_its_new_id(server: &Server) {
    let client = server.client();
    let put = |path: &str, body: &str| {
        client
            .request(Method::PUT, &format!("/v1/threads/current/{path}"))
            .json(body)
    };

    for (request, status, code) in [
        (put("state/k", "{"), 400, "invalid_json"),
        (put("state/%00", "1"), 400, "invalid_key"),
        (
            put("state/k", "1").header("if-match", "\"5\""),
            412,
            "version_mismatch",
        ),
        (
            client.post("/v1/threads/current"),
            405,
            "method_not_allowed",
        ),
        (
            client.get("/v1/threads/current?bogus=1"),
            400,
            "invalid_parameter",
        ),
    ] {
        let answer = request.send().await;

        answer.problem(status, code);
        assert_returns_no_id(&answer);
    }
}

async fn a_new_caller_keeps_its_id_after_reading_an_absent_key(server: &Server) {
    let answer = server
        .client()
        .get("/v1/threads/current/state/k")
        .send()
        .await;

    answer.problem(404, "key_not_found");
    returned_id(&answer);
}

async fn a_refusal_returns_the_id_of_a_known_caller(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "\"text\"").ok().await;

    for (request, status, code) in [
        (thread.put("state/k", "{"), 400, "invalid_json"),
        (thread.get("state/absent"), 404, "key_not_found"),
        (thread.get("?bogus=1"), 400, "invalid_parameter"),
        (thread.post("", "{}"), 405, "method_not_allowed"),
        (
            thread.get("state").header("accept", "text/html"),
            406,
            "not_acceptable",
        ),
        (thread.post("state/k/push", "1"), 409, "not_an_array"),
        (
            thread.put("state/k", &" ".repeat(2_097_153)),
            413,
            "body_too_large",
        ),
        (
            thread
                .request(Method::PUT, "state/k")
                .header("content-type", "text/plain"),
            415,
            "unsupported_media_type",
        ),
        (
            thread.put("state/k", "1").header("if-match", "\"9\""),
            412,
            "version_mismatch",
        ),
    ] {
        let answer = request.send().await;

        answer.problem(status, code);
        assert_eq!(header_id(&answer), thread.id);
    }
}

async fn the_cookie_is_set_only_when_it_changes_or_is_renewed(server: &Server) {
    let client = server.client();
    let push = |cookie: &str| {
        let request = client.request(Method::POST, "/v1/threads/current/state/list/push");
        request.header("cookie", cookie).json("1")
    };
    let first = push("theme=dark").ok().await;
    let pair = format!("atid={}", cookie_value(&first));

    let again = push(&pair).ok().await;
    let read = client.get("/v1/threads/current/state");
    let read = read.header("cookie", &pair).ok().await;
    let renewed = client.get("/v1/threads/current");
    let renewed = renewed.header("cookie", &pair).ok().await;
    let ended = client.request(Method::DELETE, "/v1/threads/current");
    let ended = ended.header("cookie", &pair).ok().await;
    let late = push(&pair).send().await;

    let id = returned_id(&first);
    for answer in [&again, &read] {
        assert_eq!(
            (header_id(answer), answer.header("set-cookie")),
            (id.clone(), None)
        );
    }
    assert_eq!(returned_id(&renewed), id);
    assert_ne!(returned_id(&ended), id);
    late.problem(410, "thread_destroyed");
    assert_returns_no_id(&late);
}

/// Sends two requests with the same cookies. One request replaces the thread id, and the other may also set the cookie.
/// Tests all orders of the requests on the server and of the answers at the client.
async fn no_late_response_restores_an_old_id(server: &Server) {
    let client = server.client();
    let current =
        |method: Method, path: &str| client.request(method, &format!("/v1/threads/current{path}"));
    let replacing_request = |variant: usize| match variant {
        0 => current(Method::POST, "/rotate"),
        _ => current(Method::DELETE, ""),
    };
    let other_request = |variant: usize| match variant {
        0 => current(Method::GET, ""),
        1 => current(Method::HEAD, ""),
        2 => current(Method::GET, "/state"),
        _ => current(Method::POST, "/state/k/push").json("1"),
    };
    for (first, second) in (0..2).flat_map(|first| (0..4).map(move |second| (first, second))) {
        for (is_before, is_late) in [(true, true), (true, false), (false, true), (false, false)] {
            let mut jar = CookieJar::default();
            jar.store(&current(Method::POST, "/state/k/push").json("0").ok().await);
            for _ in 0..2 {
                let sent = jar.header();
                let old = jar.0["atid"].clone();
                let with = |request: Request| request.header("cookie", &sent).send();
                let (replaced, answer) = if is_before {
                    let answer = with(other_request(second)).await;
                    (with(replacing_request(first)).await, answer)
                } else {
                    let replaced = with(replacing_request(first)).await;
                    (replaced, with(other_request(second)).await)
                };
                let new = cookie_value(&replaced);
                assert_ne!(new, old);
                let mut arrivals = [&replaced, &answer];
                if !is_late {
                    arrivals.reverse();
                }
                for answer in arrivals {
                    jar.store(answer);
                }

                let next = current(Method::GET, "/state");
                let next = next.header("cookie", jar.header()).ok().await;
                jar.store(&next);

                let case = format!("{first} {second} {is_before} {is_late}");
                assert_eq!(jar.0["atid"], new, "{case}");
                assert!(new.starts_with(&header_id(&next)), "{case}");
                // even if `atid` is old, a request reads the new thread, because a second cookie names the new id
                let push = current(Method::POST, "/state/k/push").json("2");
                jar.store(&push.header("cookie", jar.header()).ok().await);
                jar.0.insert("atid".into(), old);
                let read = current(Method::GET, "/state").header("cookie", jar.header());
                assert!(read.ok().await.text().contains('2'), "{case}");
                jar.0.insert("atid".into(), new);
            }
        }
    }
}

async fn a_replacement_applies_only_to_the_id_that_it_replaces(server: &Server) {
    let client = server.client();
    let first = client
        .post("/v1/threads/current/state/k/push")
        .json("1")
        .ok()
        .await;
    let old = format!("atid={}", cookie_value(&first));
    let ended = client
        .request(Method::DELETE, "/v1/threads/current")
        .header("cookie", &old);
    let ended = ended.ok().await;
    let cookies: Vec<_> = ended.headers.get_all("set-cookie").iter().collect();
    let next = cookies[1].to_str().unwrap();
    assert!(
        next.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=34560000"),
        "{next}"
    );
    let next = &cookie_pairs(&ended)[1];
    let id_for = async |cookies: String| {
        let request = client
            .get("/v1/threads/current/state")
            .header("cookie", cookies);
        header_id(&request.ok().await)
    };

    assert_eq!(id_for(format!("{old}; {next}")).await, header_id(&ended));
    // an app may set or delete the cookie itself
    let other = new_id();
    assert_eq!(
        id_for(format!("{}; {next}", good_cookie(&other))).await,
        other
    );
    assert_ne!(id_for(next.clone()).await, header_id(&ended));
    // a client cannot forge the cookie that contains the new id
    let forged = next.replace(&header_id(&ended), &other);
    assert_eq!(id_for(format!("{old}; {forged}")).await, header_id(&first));
}

async fn the_cookie_is_http_only_and_has_the_longest_lifetime(server: &Server) {
    let answer = server.client().get("/v1/threads/current").ok().await;

    let mut attributes: Vec<_> = answer
        .header("set-cookie")
        .unwrap()
        .split("; ")
        .skip(1)
        .collect();
    attributes.sort_unstable();
    assert_eq!(
        attributes,
        ["HttpOnly", "Max-Age=34560000", "Path=/", "SameSite=Lax"]
    );
}

async fn is_secure(server: &Server, forwarded: &str) -> bool {
    let answer = server
        .client()
        .get("/v1/threads/current")
        .header("x-forwarded-proto", forwarded)
        .ok()
        .await;
    answer.header("set-cookie").unwrap().contains("; Secure")
}

async fn an_untrusted_proxy_cannot_make_the_cookie_secure(server: &Server) {
    assert!(!is_secure(server, "https").await);
}

async fn a_trusted_proxy_can_make_the_cookie_secure(backend: Backend) {
    for (proxies, trusted) in [
        ("127.0.0.1", true),
        ("10.0.0.0/8, 127.0.0.0/8", true),
        ("10.0.0.1,::1", false),
    ] {
        let server = Server::builder(backend)
            .set("THREADKEEP_TRUSTED_PROXIES", proxies)
            .start();

        assert_eq!(is_secure(&server, "https").await, trusted, "{proxies}");
        assert!(!is_secure(&server, "http").await);
    }
}

async fn keys_rotate_without_losing_a_caller(backend: Backend) {
    const NEW: &str = "a-new-hmac-secret-of-the-tests-that-is-long-enough";
    let id = new_id();
    let by_old = format!("{id};{}", signature(SIGNING_SECRET, &id));
    let by_new = format!("{id};{}", signature(NEW, &id));
    let rotated = Server::builder(backend)
        .set(
            "THREADKEEP_SIGNING_KEYS",
            format_args!("new:{NEW},old:{SIGNING_SECRET}"),
        )
        .start();
    let retired = Server::builder(backend)
        .set("THREADKEEP_SIGNING_KEYS", format_args!("new:{NEW}"))
        .start();
    let read_thread = |server: &Server, signed: &str| {
        server
            .client()
            .get("/v1/threads/current")
            .header("x-thread-id", signed)
    };

    let by_old_cookie = rotated.client().get("/v1/threads/current/state");
    let by_old_cookie = by_old_cookie.header("cookie", good_cookie(&id)).ok().await;
    assert_eq!(
        cookie_value(&by_old_cookie),
        cookie(&id, &signature(NEW, &id)),
        "a read signs the cookie again"
    );
    let with_old = read_thread(&rotated, &by_old).ok().await;
    let with_new = read_thread(&rotated, &by_new).ok().await;

    assert_eq!(with_old.header("x-thread-id"), Some(&*by_new));
    assert_eq!(
        cookie_value(&with_old),
        cookie(&id, &signature(NEW, &id)),
        "the cookie is signed by the first key too"
    );
    assert_eq!(with_new.header("x-thread-id"), Some(&*by_new));
    read_thread(&retired, &by_new).ok().await;
    read_thread(&retired, &by_old)
        .refused(401, "invalid_thread_signature")
        .await;
}

async fn an_api_key_opens_every_thread(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "1").ok().await;

    let state = thread.by_api_key(Method::GET, "state").ok().await;
    thread
        .by_api_key(Method::PUT, "state/k")
        .json("2")
        .ok()
        .await;

    assert_eq!(state.text(), r#"{"k":1}"#);
    assert_eq!(state.header("set-cookie"), None);
    assert_eq!(thread.state().await, r#"{"k":2}"#);
}

async fn the_signed_id_opens_its_own_thread_by_path(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;

    let answer = client
        .get(&format!("/v1/threads/{}/state/k", thread.id))
        .header("x-thread-id", &thread.signed)
        .ok()
        .await;

    assert_eq!(answer.text(), "1");
}

async fn a_thread_by_path_needs_a_valid_credential(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let other = client.thread();
    let path = format!("/v1/threads/{}/state", thread.id);

    for request in [
        client.get(&path),
        client.get(&path).bearer(""),
        client.get(&path).header("authorization", API_SECRET),
        client
            .get(&path)
            .header("authorization", format!("Basic {API_SECRET}")),
        client.get(&path).header("x-thread-id", &other.signed),
        client.get(&path).header("x-thread-id", ""),
        client.get(&path).header("x-thread-id", &thread.id),
        client.get(&path).header("cookie", good_cookie(&thread.id)),
        client.get("/v1/threads/malformed/state"),
        client
            .get("/v1/threads/malformed/state")
            .header("x-thread-id", &thread.signed),
    ] {
        let answer = request.send().await;

        answer.problem(401, "api_key_required");
        assert_returns_no_id(&answer);
    }
    for request in [
        client.get(&path).bearer("wrong"),
        client.get(&path).bearer(&API_SECRET[1..]),
        client.get(&path).bearer(&format!("ops:{API_SECRET}")),
        client.get("/v1/threads/malformed/state").bearer("wrong"),
    ] {
        let answer = request.send().await;

        answer.problem(401, "invalid_api_key");
        assert_returns_no_id(&answer);
    }
}

async fn one_good_credential_is_enough_by_path(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let path = format!("/v1/threads/{}", thread.id);

    client
        .get(&path)
        .bearer(API_SECRET)
        .header("x-thread-id", "bad")
        .ok()
        .await;
    client
        .get(&path)
        .bearer("wrong")
        .header("x-thread-id", &thread.signed)
        .ok()
        .await;
}

async fn the_bearer_scheme_is_accepted_in_any_case(server: &Server) {
    let path = format!("/v1/threads/{}", new_id());

    for scheme in ["bearer", "BEARER"] {
        server
            .client()
            .get(&path)
            .header("authorization", format!("{scheme} {API_SECRET}"))
            .ok()
            .await;
    }
}

async fn only_a_back_end_learns_that_an_id_is_malformed(server: &Server) {
    let client = server.client();

    for id in ["x", "thrd_short", &"a".repeat(37), "current2", "thrd_%00"] {
        client
            .get(&format!("/v1/threads/{id}/state"))
            .bearer(API_SECRET)
            .refused(400, "invalid_thread_id")
            .await;
    }
}

over_both_stores!(
    a_caller_without_an_id_gets_a_new_one,
    nothing_is_stored_until_the_first_write,
    a_new_caller_may_start_with_a_write,
    the_header_names_the_thread,
    the_cookie_names_the_thread,
    a_returned_cookie_names_the_same_thread,
    a_header_takes_precedence_over_a_cookie,
    hex_signatures_are_accepted_in_any_case_and_returned_as_base64,
    only_valid_ids_are_accepted,
    every_invalid_header_gets_the_same_refusal,
    a_valid_cookie_does_not_replace_an_invalid_header,
    two_headers_are_refused,
    a_bad_signature_is_refused_before_the_request_is_validated,
    a_bad_cookie_is_ignored_and_replaced,
    the_first_cookie_that_verifies_counts,
    a_cookie_with_another_name_is_ignored,
    a_refused_request_does_not_return_its_new_id,
    a_new_caller_keeps_its_id_after_reading_an_absent_key,
    a_refusal_returns_the_id_of_a_known_caller,
    the_cookie_is_set_only_when_it_changes_or_is_renewed,
    no_late_response_restores_an_old_id,
    a_replacement_applies_only_to_the_id_that_it_replaces,
    the_cookie_is_http_only_and_has_the_longest_lifetime,
    an_untrusted_proxy_cannot_make_the_cookie_secure,
    an_api_key_opens_every_thread,
    the_signed_id_opens_its_own_thread_by_path,
    a_thread_by_path_needs_a_valid_credential,
    one_good_credential_is_enough_by_path,
    the_bearer_scheme_is_accepted_in_any_case,
    only_a_back_end_learns_that_an_id_is_malformed,
);
with_own_servers!(
    a_trusted_proxy_can_make_the_cookie_secure,
    keys_rotate_without_losing_a_caller,
);
