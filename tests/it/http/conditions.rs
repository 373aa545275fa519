//! Versions, entity tags, and requests that hold only for some.

use crate::support::server::Server;

const ABSENT: &str = "\"0-0000000000000000\"";

async fn a_tag_is_version_and_life(server: &Server) {
    let thread = server.client().thread();

    let absent = thread.get("state").ok().await;
    let first = thread.put("state/k", "1").ok().await;
    let second = thread.put("state/k", "1").ok().await;

    let life = |etag: &str, version: &str| {
        let tag = etag.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
        let (number, life) = tag.split_once('-').unwrap();
        assert_eq!(number, version);
        assert_eq!(life.len(), 16);
        assert!(life.bytes().all(|b| b.is_ascii_hexdigit()), "{life}");
        life.to_owned()
    };
    assert_eq!(absent.etag(), ABSENT);
    assert_eq!(life(first.etag(), "1"), life(second.etag(), "2"));
}

async fn every_answer_for_a_thread_has_its_tag(server: &Server) {
    let thread = server.client().thread();
    let written = thread.put("state", r#"{"a":[1]}"#).ok().await;

    for path in [
        "",
        "state",
        "state?key=a",
        "state/a",
        "state/a?tail=1",
        "keys",
    ] {
        let answer = thread.get(path).ok().await;

        assert_eq!(answer.etag(), written.etag(), "{path}");
    }
    let missing = thread.get("state/absent").send().await;
    missing.problem(404, "key_not_found");
    assert_eq!(missing.header("etag"), Some(written.etag()));
    let unmet = thread
        .put("state/a", "1")
        .header("if-match", "\"9\"")
        .send()
        .await;
    unmet.problem(412, "version_mismatch");
    assert_eq!(unmet.header("etag"), Some(written.etag()));
    let patched = thread.patch("", "{}").ok().await;
    assert!(patched.etag().starts_with("\"2-"));
}

async fn lives_of_two_threads_differ(server: &Server) {
    let client = server.client();

    let one = client.thread().put("state/k", "1").ok().await;
    let two = client.thread().put("state/k", "1").ok().await;

    assert_ne!(one.etag(), two.etag());
}

async fn a_write_may_ask_for_the_version_it_knows(server: &Server) {
    let thread = server.client().thread();
    let first = thread.put("state/k", "1").ok().await;

    let by_tag = thread
        .put("state/k", "2")
        .header("if-match", first.etag())
        .ok()
        .await;
    let by_number = thread
        .put("state/k", "3")
        .header("if-match", "\"2\"")
        .ok()
        .await;
    let problem = thread
        .put("state/k", "4")
        .header("if-match", by_tag.etag())
        .refused(412, "version_mismatch")
        .await;

    assert_eq!(by_number.version(), 3);
    assert_eq!(problem["current_version"], 3);
    assert_eq!(thread.state().await, r#"{"k":3}"#);
}

async fn the_same_version_of_another_life_does_not_match(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    thread.put("state/k", "1").ok().await;
    let other = client.thread().put("state/k", "1").ok().await;

    for tag in [other.etag(), "\"1-0000000000000000\""] {
        let problem = thread
            .put("state/k", "2")
            .header("if-match", tag)
            .refused(412, "version_mismatch")
            .await;

        assert_eq!(problem["current_version"], 1);
    }
}

async fn version_zero_asks_for_a_thread_that_does_not_exist(server: &Server) {
    for tag in ["\"0\"", ABSENT] {
        let thread = server.client().thread();

        let made = thread
            .put("state/k", "1")
            .header("if-match", tag)
            .ok()
            .await;
        let problem = thread
            .put("state/k", "2")
            .header("if-match", tag)
            .refused(412, "version_mismatch")
            .await;

        assert_eq!(made.version(), 1);
        assert_eq!(problem["current_version"], 1);
    }
}

async fn a_star_asks_for_a_thread_that_exists(server: &Server) {
    let thread = server.client().thread();

    let problem = thread
        .put("state/k", "1")
        .header("if-match", "*")
        .refused(412, "version_mismatch")
        .await;
    thread.put("state/k", "2").ok().await;
    let answer = thread
        .put("state/k", "3")
        .header("if-match", "*")
        .ok()
        .await;

    assert_eq!(problem["current_version"], 0);
    assert_eq!(answer.version(), 2);
}

async fn another_form_of_condition_is_refused(server: &Server) {
    let thread = server.client().thread();
    let etag = thread.put("state/k", "1").ok().await.etag().to_owned();

    for value in [
        String::new(),
        "1".into(),
        "\"\"".into(),
        "\"x\"".into(),
        "\"-1\"".into(),
        "\"+1\"".into(),
        "\"1".into(),
        "\"1-\"".into(),
        "\"1-xyz\"".into(),
        format!("W/{etag}"),
        "W/\"1\"".into(),
        format!("{etag}, \"2\""),
        "\"1\",\"2\"".into(),
        "*, \"1\"".into(),
        etag.trim_matches('"').to_owned(),
    ] {
        thread
            .put("state/k", "2")
            .header("if-match", &value)
            .refused(400, "invalid_parameter")
            .await;
    }
    thread
        .put("state/k", "2")
        .header("if-match", "\"1\"")
        .header("if-match", "\"2\"")
        .refused(400, "invalid_parameter")
        .await;
    assert_eq!(thread.state().await, r#"{"k":1}"#);
}

async fn every_write_takes_a_condition(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":[],"n":1}"#).ok().await;

    for request in [
        thread.put("state/k", "1"),
        thread.put("state", "{}"),
        thread.delete("state/a"),
        thread.delete("state"),
        thread.post("state/a/push", "1"),
        thread.post("state/n/increment", "{}"),
        thread.merge(r#"[{"op":"clear"}]"#),
        thread.merge_patch(r#"{"n":{"x":1}}"#),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        thread.delete(""),
    ] {
        let problem = request
            .header("if-match", "\"7\"")
            .refused(412, "version_mismatch")
            .await;

        assert_eq!(problem["current_version"], 1);
    }
    assert_eq!(thread.state().await, r#"{"a":[],"n":1}"#);
}

async fn a_destroy_may_ask_for_a_version_too(server: &Server) {
    let thread = server.client().thread();
    let etag = thread.put("state/k", "1").ok().await.etag().to_owned();

    let answer = thread.delete("").header("if-match", etag).send().await;

    assert_eq!(answer.status, 204);
    assert_eq!(thread.object().await["exists"], false);
}

async fn a_read_of_what_is_known_is_not_repeated(server: &Server) {
    let thread = server.client().thread();
    thread.put("state", r#"{"a":[1]}"#).ok().await;

    for path in [
        "",
        "state",
        "state?key=a",
        "state/a",
        "state/a?tail=1",
        "keys",
    ] {
        let etag = thread.get(path).ok().await.etag().to_owned();

        for known in [
            etag.clone(),
            format!("W/{etag}"),
            format!("\"other\", {etag}"),
            "*".into(),
        ] {
            let answer = thread
                .get(path)
                .header("if-none-match", &known)
                .send()
                .await;

            assert_eq!(answer.status, 304, "{path} {known}");
            assert!(answer.body.is_empty());
            assert_eq!(answer.etag(), etag);
            assert_eq!(answer.header("x-thread-id"), Some(&*thread.signed));
        }
    }
}

async fn a_read_of_what_has_changed_is_answered(server: &Server) {
    let thread = server.client().thread();
    let old = thread.put("state/k", "1").ok().await.etag().to_owned();
    let other = server.client().thread().put("state/k", "1").ok().await;
    thread.put("state/k", "2").ok().await;

    for known in [&old, other.etag(), ABSENT, "\"nonsense\"", ""] {
        let answer = thread
            .get("state")
            .header("if-none-match", known)
            .ok()
            .await;

        assert_eq!(answer.status, 200, "{known}");
        assert_eq!(answer.text(), r#"{"k":2}"#);
    }
}

/// Conditions count only for a read that would otherwise succeed (RFC 9110, section 13.2.1).
async fn a_value_that_is_not_there_is_not_found_whatever_is_known(server: &Server) {
    let thread = server.client().thread();
    let tag = thread.put("state/k", "1").ok().await.etag().to_owned();
    thread.get("state").ok().await;

    for known in [tag.as_str(), "*"] {
        let value = thread.get("state/absent").header("if-none-match", known);
        value.refused(404, "key_not_found").await;
        let tail = thread.get("state/k?tail=1").header("if-none-match", known);
        tail.refused(409, "not_an_array").await;
    }
    let value = thread.get("state/absent").header("if-match", "\"7\"");
    value.refused(404, "key_not_found").await;
}

async fn a_refusal_is_no_version(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", "\"text\"").ok().await;

    thread
        .post("state/k/push", "1")
        .refused(409, "not_an_array")
        .await;
    thread
        .put("state/k", "{")
        .refused(400, "invalid_json")
        .await;
    thread
        .put("state/k", "1")
        .header("if-match", "\"5\"")
        .refused(412, "version_mismatch")
        .await;

    assert_eq!(thread.put("state/k", "2").ok().await.version(), 2);
}

over_both_stores!(
    a_tag_is_version_and_life,
    every_answer_for_a_thread_has_its_tag,
    lives_of_two_threads_differ,
    a_write_may_ask_for_the_version_it_knows,
    the_same_version_of_another_life_does_not_match,
    version_zero_asks_for_a_thread_that_does_not_exist,
    a_star_asks_for_a_thread_that_exists,
    another_form_of_condition_is_refused,
    every_write_takes_a_condition,
    a_destroy_may_ask_for_a_version_too,
    a_read_of_what_is_known_is_not_repeated,
    a_read_of_what_has_changed_is_answered,
    a_value_that_is_not_there_is_not_found_whatever_is_known,
    a_refusal_is_no_version,
);
