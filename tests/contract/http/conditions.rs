use reqwest::Method;

use crate::support::client::{Answer, Request};
use crate::support::server::{API_SECRET, Server};

const ABSENT: &str = "\"0-0000000000000000\"";

async fn an_etag_has_version_and_life(server: &Server) {
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

async fn every_answer_for_a_thread_has_its_etag(server: &Server) {
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

async fn a_write_may_require_a_version(server: &Server) {
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

async fn version_zero_requires_an_absent_thread(server: &Server) {
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

async fn a_star_requires_an_existing_thread(server: &Server) {
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

async fn a_malformed_condition_is_refused(server: &Server) {
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
        "W/1".into(),
        "W/\"1\"\"".into(),
        "*, \"1\"".into(),
        format!("{etag},"),
        ["\"1\""; 9].join(","),
        etag.trim_matches('"').to_owned(),
    ] {
        thread
            .put("state/k", "2")
            .header("if-match", &value)
            .refused(400, "invalid_parameter")
            .await;
    }
    assert_eq!(thread.state().await, r#"{"k":1}"#);
}

async fn a_write_may_list_several_etags(server: &Server) {
    let thread = server.client().thread();
    let put = |value: &str, tags: &str| thread.put("state/k", value).header("if-match", tags);
    let first = put("1", "\"7\",\"0\"").ok().await.etag().to_owned();

    let second = put("2", &format!("{ABSENT} , {first}")).ok().await;
    let both = thread.put("state/k", "3");
    let both = both.header("if-match", &first).header("if-match", "\"2\"");
    assert_eq!(both.ok().await.version(), 3);
    let read = thread
        .get("state/k")
        .header("if-match", format!("{first}, \"3\""));
    assert_eq!(read.ok().await.text(), "3");
    for tags in [
        format!("{first}, {}", second.etag()),
        ["\"1\""; 8].join(","),
    ] {
        let problem = put("4", &tags).refused(412, "version_mismatch").await;
        assert_eq!(problem["current_version"], 3);
        let detail = problem["detail"].as_str().unwrap();
        assert!(!detail.contains("proxy"), "{detail}");
    }
}

async fn a_weak_tag_never_matches_but_the_version_does(server: &Server) {
    let thread = server.client().thread();
    let first = thread.put("state/k", "1").ok().await;
    let version = first.header("x-thread-version").unwrap();
    let weak = format!("W/{}", first.etag());

    for tags in [weak.clone(), format!("{weak}, \"7\"")] {
        for request in [thread.put("state/k", "2"), thread.get("state/k")] {
            let request = request.header("if-match", &tags);
            let problem = request.refused(412, "version_mismatch").await;
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains("a proxy has weakened it"), "{detail}");
        }
    }
    for tags in [format!("\"{version}\""), format!("{weak}, \"2\"")] {
        thread
            .put("state/k", "3")
            .header("if-match", tags)
            .ok()
            .await;
    }
    assert_eq!(thread.state().await, r#"{"k":3}"#);
}

fn life_of(answer: &Answer) -> String {
    let (_, life) = answer.etag().split_once('-').unwrap();
    life.trim_end_matches('"').to_owned()
}

async fn a_write_for_another_life_changes_nothing(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let first = thread.put("state/k", "1").ok().await;
    let life = life_of(&first);
    let other = life_of(&client.thread().put("state/k", "1").ok().await);
    let in_life = |request: Request, life: &str| request.header("x-thread-life", life);

    for request in [
        thread.put("state/k", "2"),
        thread.post("state/list/push", "1"),
        thread.merge(r#"[{"op":"set","key":"a","value":1}]"#),
        thread.put("state/k", "3").header("if-match", "*"),
        thread
            .put("state/k", "4")
            .header("if-match", "\"4\", \"5\""),
    ] {
        in_life(request, &life).ok().await;
    }
    let current = thread.get("state").ok().await;
    for request in [
        thread.put("state/k", "5"),
        thread.post("state/list/push", "1"),
        thread.delete("state/k"),
        thread.patch("", r#"{"metadata":{"a":1}}"#),
        thread.delete(""),
        thread.put("state/k", "5").header("if-match", "*"),
        thread
            .put("state/k", "5")
            .header("if-match", current.etag()),
        thread.put("state/k", "5").header("if-match", "\"6\""),
        client.thread().put("state/k", "5"),
        client.thread().delete(""),
    ] {
        in_life(request, &other)
            .refused(412, "version_mismatch")
            .await;
    }
    assert_eq!(thread.get("state").ok().await.etag(), current.etag());
    for wrong in ["", "*", "1", &life[1..], "\"0123456789abcdef\""] {
        let request = in_life(thread.put("state/k", "6"), wrong);
        request.refused(400, "invalid_parameter").await;
    }
    let ended = in_life(thread.delete(""), &life).send().await;
    assert_eq!(ended.status, 204);
}

async fn each_etag_comes_with_a_version_header(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let written = thread.put("state/k", "[1]").ok().await;
    let entry = format!("/v1/kv/{}/k", thread.id);
    let put = client
        .request(Method::PUT, &entry)
        .bearer(API_SECRET)
        .json("1")
        .ok()
        .await;
    let mut answers = vec![written, put];
    for (path, header) in [
        ("", None),
        ("state", None),
        ("state/k", None),
        ("keys", None),
        ("state", Some("if-none-match")),
        ("state", Some("if-match")),
    ] {
        let request = thread.get(path);
        let tag = answers[0].etag().replace("\"1-", "\"7-");
        answers.push(match header {
            Some("if-match") => request.header("if-match", tag).send().await,
            Some(name) => request.header(name, answers[0].etag()).send().await,
            None => request.ok().await,
        });
    }
    answers.push(client.get(&entry).bearer(API_SECRET).ok().await);
    answers.push(thread.post("checkpoints", "{}").send().await);
    answers.push(thread.delete("checkpoints/1").ok().await);
    answers.push(thread.post("rotate", "").ok().await);
    answers.push(client.thread().delete("").send().await);

    for answer in answers {
        let tag = answer.etag();
        let (version, _) = tag.trim_start_matches('"').split_once('-').unwrap();
        assert_eq!(answer.header("x-thread-version"), Some(version), "{tag}");
    }
}

async fn every_write_accepts_a_condition(server: &Server) {
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

async fn a_destroy_may_require_a_version(server: &Server) {
    let thread = server.client().thread();
    let etag = thread.put("state/k", "1").ok().await.etag().to_owned();

    let answer = thread.delete("").header("if-match", etag).send().await;

    assert_eq!(answer.status, 204);
    assert_eq!(thread.object().await["exists"], false);
}

async fn an_unchanged_value_is_not_sent_again(server: &Server) {
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

        for condition in [
            etag.clone(),
            format!("W/{etag}"),
            format!("\"other\", {etag}"),
            "*".into(),
        ] {
            let answer = thread
                .get(path)
                .header("if-none-match", &condition)
                .send()
                .await;

            assert_eq!(answer.status, 304, "{path} {condition}");
            assert!(answer.body.is_empty());
            assert_eq!(answer.etag(), etag);
            assert_eq!(answer.header("x-thread-id"), Some(&*thread.signed));
        }
    }
}

async fn a_changed_state_is_sent_again(server: &Server) {
    let thread = server.client().thread();
    let old = thread.put("state/k", "1").ok().await.etag().to_owned();
    let other = server.client().thread().put("state/k", "1").ok().await;
    thread.put("state/k", "2").ok().await;

    for condition in [&old, other.etag(), ABSENT, "\"nonsense\"", ""] {
        let answer = thread
            .get("state")
            .header("if-none-match", condition)
            .ok()
            .await;

        assert_eq!(answer.status, 200, "{condition}");
        assert_eq!(answer.text(), r#"{"k":2}"#);
    }
}

/// The server evaluates conditions only for a request that would otherwise succeed (RFC 9110, section 13.2.1).
async fn an_absent_value_is_not_found_whatever_the_condition(server: &Server) {
    let thread = server.client().thread();
    let tag = thread.put("state/k", "1").ok().await.etag().to_owned();
    thread.get("state").ok().await;

    for condition in [tag.as_str(), "*"] {
        let value = thread
            .get("state/absent")
            .header("if-none-match", condition);
        value.refused(404, "key_not_found").await;
        let tail = thread
            .get("state/k?tail=1")
            .header("if-none-match", condition);
        tail.refused(409, "not_an_array").await;
    }
    let value = thread.get("state/absent").header("if-match", "\"7\"");
    value.refused(404, "key_not_found").await;
}

async fn a_refused_write_does_not_raise_the_version(server: &Server) {
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
    an_etag_has_version_and_life,
    every_answer_for_a_thread_has_its_etag,
    lives_of_two_threads_differ,
    a_write_may_require_a_version,
    the_same_version_of_another_life_does_not_match,
    version_zero_requires_an_absent_thread,
    a_star_requires_an_existing_thread,
    a_malformed_condition_is_refused,
    a_write_may_list_several_etags,
    a_weak_tag_never_matches_but_the_version_does,
    a_write_for_another_life_changes_nothing,
    each_etag_comes_with_a_version_header,
    every_write_accepts_a_condition,
    a_destroy_may_require_a_version,
    an_unchanged_value_is_not_sent_again,
    a_changed_state_is_sent_again,
    an_absent_value_is_not_found_whatever_the_condition,
    a_refused_write_does_not_raise_the_version,
);
