use reqwest::Method;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::identity::good_cookie;
use crate::support::client::OwnThread;
use crate::support::server::{API_SECRET, Server};
use crate::support::until;

const READS: [&str; 9] = [
    "",
    "state",
    "state?key=list&key=k",
    "state/k",
    "state/list?tail=1",
    "state/list?offset=1&limit=1",
    "keys",
    "history",
    "history?tail=1",
];

async fn filled(server: &Server) -> OwnThread {
    let thread = server.client().thread();
    thread.put("state", r#"{"k":1,"list":[1,2]}"#).ok().await;
    let items = r#"{"items":[{"id":"a","value":1},{"id":"b","value":2}]}"#;
    thread.post("history", items).ok().await;
    thread
}

fn peek_of(read: &str) -> String {
    let sign = if read.contains('?') { '&' } else { '?' };
    format!("{read}{sign}peek=true")
}

/// Returns the expiry time of a thread. Uses the minimum of ten reads, because a store may report a time that is a few
/// milliseconds late.
async fn expiry_of(thread: &OwnThread) -> OffsetDateTime {
    let mut expiries = Vec::new();
    for _ in 0..10 {
        let object = thread.get("?peek=true").ok().await.json();
        let expiry = OffsetDateTime::parse(object["expires_at"].as_str().unwrap(), &Rfc3339);
        expiries.push(expiry.unwrap());
    }
    expiries.into_iter().min().unwrap()
}

async fn a_peek_reads_the_same_without_extending_the_lifetime(server: &Server) {
    let mut threads = Vec::new();
    for read in READS {
        let thread = filled(server).await;
        let expiry = expiry_of(&thread).await;
        threads.push((read, thread, expiry));
    }
    // wait for two seconds, so that the test would notice an extended lifetime
    let latest = threads.last().unwrap().2;
    let hour = time::Duration::HOUR - time::Duration::seconds(2);
    until(async || latest - OffsetDateTime::now_utc() < hour).await;

    for (read, thread, expiry) in threads {
        let peeked = thread.get(&peek_of(read)).ok().await;
        let headed = thread.head(&peek_of(read)).ok().await;
        let by_key = thread.by_api_key(Method::GET, &peek_of(read)).ok().await;

        until(async || expiry_of(&thread).await == expiry).await;
        let used = thread.get(read).ok().await;
        if !read.is_empty() {
            assert_eq!(peeked.text(), used.text(), "{read}");
            assert_eq!(by_key.text(), used.text(), "{read}");
        }
        assert_eq!(peeked.header("etag"), used.header("etag"), "{read}");
        assert_eq!(headed.header("etag"), used.header("etag"), "{read}");
        assert!(expiry_of(&thread).await > expiry, "{read}");
    }
}

async fn a_peek_of_an_absent_thread_reads_it_as_empty(server: &Server) {
    for read in ["", "state", "keys", "history"] {
        let thread = server.client().thread();

        let peeked = thread.get(&peek_of(read)).ok().await;

        assert_eq!(peeked.text(), thread.get(read).ok().await.text(), "{read}");
    }
}

async fn a_peek_checks_conditions(server: &Server) {
    let thread = filled(server).await;
    let etag = thread.get("state").ok().await.etag().to_owned();
    for read in ["state", "state/k", "keys"] {
        let unchanged = thread.get(&peek_of(read)).header("if-none-match", &etag);
        assert_eq!(unchanged.send().await.status, 304, "{read}");
        let stale = thread.get(&peek_of(read)).header("if-match", "\"99\"");
        stale.refused(412, "version_mismatch").await;
    }
    let missing = thread.get("state/none?peek=true");
    missing.refused(404, "key_not_found").await;
}

async fn the_peek_parameter_is_true_or_false_and_occurs_once(server: &Server) {
    let thread = filled(server).await;
    for read in ["", "state", "state/k", "keys", "history"] {
        for query in ["peek=1", "peek=", "peek=true&peek=true"] {
            let request = thread.get(&format!("{read}?{query}"));
            request.refused(400, "invalid_parameter").await;
        }
        thread.get(&format!("{read}?peek=false")).ok().await;
    }
    // operations that do not read a thread reject the parameter
    let turn = thread.get("turn?peek=true");
    turn.refused(400, "invalid_parameter").await;
    let write = thread.put("state/k?peek=true", "2");
    write.refused(400, "invalid_parameter").await;
    let archive = format!("/v1/archives/{}/history?peek=true", thread.id);
    let archive = server.client().get(&archive);
    let archive = archive.bearer(API_SECRET);
    archive.refused(400, "invalid_parameter").await;
}

async fn a_peek_does_not_renew_the_cookie(server: &Server) {
    let thread = filled(server).await;
    let cookie = good_cookie(&thread.id);
    let set_cookie = async |query: &str| {
        let path = format!("/v1/threads/current{query}");
        let request = server.client().get(&path).header("cookie", &cookie);
        let answer = request.ok().await;
        assert!(answer.header("x-thread-id").is_some());
        answer.header("set-cookie").map(str::to_owned)
    };

    assert_eq!(set_cookie("?peek=true").await, None);
    assert_eq!(set_cookie("/state?peek=true").await, None);
    assert!(set_cookie("?peek=false").await.is_some());
    assert!(set_cookie("").await.is_some());
}

async fn a_caller_without_read_access_cannot_peek(server: &Server) {
    let thread = filled(server).await;
    let client = server.client();
    for read in READS {
        let path = format!("/v1/threads/{}", thread.id);
        let path = match read {
            "" => format!("{path}?peek=true"),
            read => format!("{path}/{}", peek_of(read)),
        };
        client.get(&path).refused(401, "api_key_required").await;
    }
}

super::over_both_stores!(
    a_peek_reads_the_same_without_extending_the_lifetime,
    a_peek_of_an_absent_thread_reads_it_as_empty,
    a_peek_checks_conditions,
    the_peek_parameter_is_true_or_false_and_occurs_once,
    a_peek_does_not_renew_the_cookie,
    a_caller_without_read_access_cannot_peek,
);
