//! Whether the load test can be believed: it is run against a service that is right, and against
//! services that lie now and then.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod faulty_store;
mod load;
mod server;

use faulty_store::Fault;
use load::{Outcome, load};
use server::{API_KEY, Server};

#[test]
fn a_service_that_is_right_does_well() {
    let server = Server::start(Fault::None);

    let outcome = load(&server, "right", &["--api-key", API_KEY]);

    assert_eq!(outcome.code, 0, "{:?}", outcome.report["reasons"]);
    assert_eq!(outcome.report["verdict"], "good");
    assert!(
        outcome.of_pushes("acknowledged") > 100,
        "{:?}",
        outcome.report["reasons"]
    );
    assert_eq!(
        outcome.of_pushes("verified"),
        outcome.of_pushes("acknowledged")
    );
    for name in ["push a message", "merge", "increment", "tool calls"] {
        assert!(outcome.requests(name) > 0, "{name}");
    }
    assert!(outcome.page.contains("GOOD"));
    assert!(outcome.page.contains("read a large state"));
}

#[test]
fn a_push_that_is_acknowledged_and_dropped_is_found() {
    let server = Server::start(Fault::Drop);

    let outcome = load(&server, "drop", &[]);

    found_all(&server, &outcome, "missing", "missing_push");
    assert_eq!(outcome.of_pushes("double"), 0);
    assert!(outcome.page.contains("acknowledged pushes are missing"));
}

#[test]
fn a_push_that_is_done_twice_is_found() {
    let server = Server::start(Fault::Double);

    let outcome = load(&server, "double", &[]);

    found_all(&server, &outcome, "double", "double_push");
    assert_eq!(outcome.of_pushes("missing"), 0);
}

/// Such a push is there although nobody was told so, or is repeated with its idempotency key.
#[test]
fn a_push_without_an_answer_is_no_fault_of_the_account() {
    let server = Server::start(Fault::Mute);

    let tolerant = load(&server, "mute", &["--tolerate-outages"]);

    assert!(server.faults() > 0);
    assert_eq!(tolerant.code, 0, "{:?}", tolerant.report["reasons"]);
    assert_eq!(tolerant.of_pushes("missing"), 0);
    assert_eq!(tolerant.of_pushes("double"), 0);
    assert!(tolerant.of_pushes("unacknowledged_found") > 0);
    assert!(tolerant.report["account"]["retries"].as_u64().unwrap() > 0);
    assert!(
        tolerant.report["account"]["unanswered"]["503"]
            .as_u64()
            .unwrap()
            > 0
    );
}

/// Each of the faults is found, once, and named.
fn found_all(server: &Server, outcome: &Outcome, count: &str, kind: &str) {
    assert!(server.faults() > 0);
    assert_eq!(outcome.code, 1, "{:?}", outcome.report["reasons"]);
    assert_eq!(outcome.report["verdict"], "bad");
    assert_eq!(
        outcome.of_pushes(count),
        server.faults(),
        "{:?}",
        outcome.report["reasons"]
    );
    let findings = outcome.report["findings"].as_array().unwrap();
    let named = findings.iter().find(|finding| finding["kind"] == kind);
    let named = named.unwrap();
    assert!(named["thread"].as_str().unwrap().starts_with("thrd_"));
    assert!(named["detail"].as_str().unwrap().contains("of writer"));
}
