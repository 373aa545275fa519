//! Tests that the load test accepts a correct service, and that it detects rare faults in other services.
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot continue should panic"
)]

mod faulty_store;
mod load;
mod server;

use faulty_store::Fault;
use load::{Outcome, load_until};
use server::{API_KEY, Server};

#[test]
fn a_correct_service_passes() {
    let server = Server::start(Fault::None);
    let names = ["push a message", "merge", "increment", "tool calls"];
    let page = "read a large state";

    let outcome = load_until(&server, "mixed", "right", &["--api-key", API_KEY], |run| {
        let has_all = names.iter().all(|name| run.requests(name) > 0);
        run.of_pushes("acknowledged") > 100 && has_all && run.requests(page) > 0
    });

    assert_eq!(outcome.code, 0, "{:?}", outcome.report["reasons"]);
    assert_eq!(outcome.report["verdict"], "good");
    assert!(outcome.of_pushes("acknowledged") > 100);
    assert_eq!(
        outcome.of_pushes("verified"),
        outcome.of_pushes("acknowledged")
    );
    for name in names {
        assert!(outcome.requests(name) > 0, "{name}");
    }
    assert!(outcome.page.contains("GOOD"));
    assert!(outcome.page.contains(page));
}

#[test]
fn a_dropped_push_is_detected() {
    let server = Server::start(Fault::Drop);

    let outcome = load_until_a_fault(&server, "mixed", "drop");

    found_all(&server, &outcome, "missing", "missing_push");
    assert_eq!(outcome.of_pushes("double"), 0);
    assert!(outcome.page.contains("acknowledged pushes are missing"));
}

#[test]
fn a_duplicated_push_is_detected() {
    let server = Server::start(Fault::Double);

    let outcome = load_until_a_fault(&server, "mixed", "double");

    found_all(&server, &outcome, "double", "double_push");
    assert_eq!(outcome.of_pushes("missing"), 0);
}

/// The new thread's id occurs only in the answer to the duplicated push, and the size in that answer is wrong.
#[test]
fn a_duplicated_first_push_is_reported_with_its_thread() {
    let server = Server::start(Fault::DoubleFirst);

    let outcome = load_until_a_fault(&server, "chat", "double-first");

    found_all(&server, &outcome, "double", "double_push");
    assert_eq!(outcome.of_pushes("missing"), 0);
}

/// The push is stored, but the client gets a 503 response. A retry with the same idempotency key may succeed.
#[test]
fn an_unanswered_push_is_not_a_fault() {
    let server = Server::start(Fault::Mute);
    let retries = |run: &Outcome| run.report["account"]["retries"].as_u64().unwrap();

    let outcome = load_until(&server, "mixed", "mute", &["--tolerate-outages"], |run| {
        run.of_pushes("unacknowledged_found") > 0 && retries(run) > 0
    });

    assert!(server.faults() > 0);
    assert_eq!(outcome.code, 0, "{:?}", outcome.report["reasons"]);
    assert_eq!(outcome.of_pushes("missing"), 0);
    assert_eq!(outcome.of_pushes("double"), 0);
    assert!(outcome.of_pushes("unacknowledged_found") > 0);
    assert!(retries(&outcome) > 0);
    assert!(outcome.unanswered("503") > 0);
}

fn load_until_a_fault(server: &Server, scenario: &str, name: &str) -> Outcome {
    load_until(server, scenario, name, &[], |_| server.faults() > 0)
}

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
    let named = findings.iter().filter(|finding| finding["kind"] == kind);
    let named: Vec<_> = named.collect();
    assert!(!named.is_empty());
    for finding in named {
        let thread = finding["thread"].as_str().unwrap();
        assert!(thread.starts_with("thrd_"), "{finding}");
        assert!(finding["detail"].as_str().unwrap().contains("of writer"));
    }
}
