use crate::support::client::OwnThread;
use crate::support::server::Server;

/// Creates a thread with an array `a` of `count` elements. With a large `padding`, the store splits the array into
/// several chunks.
async fn numbered_array(server: &Server, count: usize, padding: usize) -> OwnThread {
    let thread = server.client().thread();
    let elements: Vec<_> = (0..count).map(|n| element(n, padding)).collect();
    thread
        .put("state/a", &format!("[{}]", elements.join(",")))
        .ok()
        .await;
    thread
}

fn element(n: usize, padding: usize) -> String {
    format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(padding))
}

async fn read(thread: &OwnThread, query: &str) -> Vec<u64> {
    let answer = thread.get(&format!("state/a?{query}")).ok().await;
    let elements = answer.json();
    let elements = elements.as_array().unwrap();
    elements.iter().map(|e| e["n"].as_u64().unwrap()).collect()
}

async fn a_range_of_an_array_has_the_total_count(server: &Server) {
    for padding in [0, 300] {
        let thread = numbered_array(server, 100, padding).await;

        for (query, range) in [
            ("tail=20", 80..100),
            ("tail=0", 0..0),
            ("tail=100", 0..100),
            ("tail=1000", 0..100),
            ("offset=95", 95..100),
            ("offset=0", 0..100),
            ("offset=100", 0..0),
            ("offset=1000", 0..0),
            ("limit=3", 0..3),
            ("limit=0", 0..0),
            ("limit=1000", 0..100),
            ("offset=37&limit=5", 37..42),
            ("limit=5&offset=98", 98..100),
        ] {
            let expected: Vec<u64> = range.collect();

            assert_eq!(read(&thread, query).await, expected, "{query}");
            let answer = thread.get(&format!("state/a?{query}")).ok().await;
            assert_eq!(answer.header("x-total-count"), Some("100"), "{query}");
        }
    }
}

async fn a_range_takes_only_integers(server: &Server) {
    let thread = numbered_array(server, 3, 0).await;

    for query in [
        "tail=-1",
        "tail=1.5",
        "tail=x",
        "tail=",
        "tail",
        "offset=-1",
        "limit=1e2",
        "limit=%2B1",
        "tail=1&offset=1",
        "tail=1&limit=1",
        "tail=1&bogus=1",
    ] {
        thread
            .get(&format!("state/a?{query}"))
            .refused(400, "invalid_parameter")
            .await;
    }
}

async fn only_an_array_can_be_read_by_range(server: &Server) {
    let thread = server.client().thread();
    thread
        .put("state", r#"{"o":{},"s":"text","n":1,"z":null}"#)
        .ok()
        .await;

    for key in ["o", "s", "n", "z"] {
        thread
            .get(&format!("state/{key}?tail=1"))
            .refused(409, "not_an_array")
            .await;
    }
    thread
        .get("state/absent?tail=1")
        .refused(404, "key_not_found")
        .await;
}

async fn a_push_creates_the_array_and_returns_its_length(server: &Server) {
    let thread = server.client().thread();

    let first = thread.post("state/a/push", r#"{"x":1}"#).ok().await;
    let second = thread.post("state/a/push", " [ 1, 2 ] ").ok().await;

    assert_eq!(first.json()["length"], 1);
    assert_eq!(first.json()["version"], 1);
    assert_eq!(second.json()["length"], 2);
    assert_eq!(
        second.json()["size_bytes"],
        r#"{"a":[{"x":1},[1,2]]}"#.len()
    );
    assert_eq!(thread.state().await, r#"{"a":[{"x":1},[1,2]]}"#);
}

async fn pushing_past_the_window_drops_the_oldest(server: &Server) {
    let thread = server.client().thread();

    for n in 0..5 {
        let answer = thread
            .post("state/a/push?max_records=3", &n.to_string())
            .ok()
            .await;

        assert_eq!(answer.json()["length"], (n + 1).min(3));
    }

    assert_eq!(thread.state().await, r#"{"a":[2,3,4]}"#);
}

async fn a_smaller_window_drops_several_elements(server: &Server) {
    let thread = numbered_array(server, 100, 300).await;

    let answer = thread
        .post("state/a/push?max_records=10", &element(100, 300))
        .ok()
        .await;

    assert_eq!(answer.json()["length"], 10);
    assert_eq!(read(&thread, "").await, (91..=100).collect::<Vec<_>>());
    let state = thread.state().await;
    assert_eq!(answer.json()["size_bytes"], state.len());
}

async fn a_window_of_one_keeps_the_newest(server: &Server) {
    let thread = numbered_array(server, 50, 100).await;

    thread
        .post("state/a/push?max_records=1", "\"new\"")
        .ok()
        .await;

    assert_eq!(thread.state().await, r#"{"a":["new"]}"#);
}

async fn a_long_window_stays_exact_over_many_pushes(server: &Server) {
    let thread = server.client().thread();
    let pushes = |from: usize| {
        let operations: Vec<_> = (from..from + 250)
            .map(|n| {
                format!(
                    r#"{{"op":"push","key":"a","value":{},"max_records":120}}"#,
                    element(n, n % 97)
                )
            })
            .collect();
        format!("[{}]", operations.join(","))
    };

    for from in [0, 250, 500] {
        let answer = thread.merge(&pushes(from)).ok().await;

        let state = thread.state().await;
        let newest = from as u64 + 250;
        let oldest = newest - 120;
        assert_eq!(answer.json()["size_bytes"], state.len());
        assert_eq!(
            read(&thread, "").await,
            (oldest..newest).collect::<Vec<_>>()
        );
        assert_eq!(read(&thread, "tail=2").await, [newest - 2, newest - 1]);
        assert_eq!(read(&thread, "offset=1&limit=1").await, [oldest + 1]);
    }
}

async fn max_records_is_at_least_one(server: &Server) {
    let thread = server.client().thread();

    for value in ["0", "-1", "1.5", "x", ""] {
        thread
            .post(&format!("state/a/push?max_records={value}"), "1")
            .refused(400, "invalid_parameter")
            .await;
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn an_operation_accepts_both_spellings_of_max_records(server: &Server) {
    let thread = server.client().thread();

    for field in ["max_records", "maxRecords"] {
        thread
            .merge(&format!(
                r#"[{{"op":"set","key":"a","value":[1,2,3]}},
                    {{"op":"push","key":"a","value":4,"{field}":2}}]"#
            ))
            .ok()
            .await;

        assert_eq!(thread.state().await, r#"{"a":[3,4]}"#);
    }
}

async fn only_an_array_accepts_a_push(server: &Server) {
    let thread = server.client().thread();
    thread
        .put("state", r#"{"n":1,"o":{},"s":"[]","z":null}"#)
        .ok()
        .await;

    for key in ["n", "o", "s", "z"] {
        thread
            .post(&format!("state/{key}/push"), "1")
            .refused(409, "not_an_array")
            .await;
    }
    assert_eq!(thread.object().await["version"], 1);
}

async fn a_replaced_array_leaves_no_old_elements(server: &Server) {
    let thread = numbered_array(server, 100, 100).await;

    thread.put("state/a", "[]").ok().await;
    let emptied = thread.state().await;
    thread.post("state/a/push", "1").ok().await;
    let pushed = thread.state().await;
    thread.put("state/a", "\"text\"").ok().await;
    thread.delete("state/a").ok().await;
    thread.post("state/a/push", "2").ok().await;

    assert_eq!(emptied, r#"{"a":[]}"#);
    assert_eq!(pushed, r#"{"a":[1]}"#);
    assert_eq!(thread.state().await, r#"{"a":[2]}"#);
}

async fn a_merge_pops_the_newest_elements(server: &Server) {
    let thread = server.client().thread();
    thread.put("state/k", r#"[1.0,"2;",{"a":[]},4]"#).ok().await;

    let popped = thread.merge(
        r#"[{"op":"pop","key":"k"},{"op":"pop","key":"k","count":2},{"op":"pop","key":"none"},
            {"op":"push","key":"k","value":5},{"op":"pop","key":"k","count":1000}]"#,
    );
    let popped = popped.ok().await;

    let results = r#""results":[{"values":[4]},{"values":["2;",{"a":[]}]},{"values":[]},{"length":2},{"values":[1.0,5]}]"#;
    assert!(popped.text().contains(results), "{}", popped.text());
    assert_eq!(thread.state().await, r#"{"k":[]}"#);
    for (operation, status, code) in [
        (
            r#"{"op":"pop","key":"k","count":0}"#,
            400,
            "invalid_operation",
        ),
        (
            r#"{"op":"pop","key":"k","count":1001}"#,
            400,
            "invalid_operation",
        ),
        (
            r#"{"op":"pop","key":"k","count":1.5}"#,
            400,
            "invalid_operation",
        ),
        (r#"{"op":"pop"}"#, 400, "invalid_operation"),
        (r#"{"op":"pop","key":""}"#, 400, "invalid_key"),
    ] {
        let refused = thread.merge(&format!("[{operation}]"));
        let problem = refused.refused(status, code).await;
        assert_eq!(problem["operation"], 0);
    }
    thread.put("state/k", "1").ok().await;
    let refused = thread.merge(r#"[{"op":"set","key":"l","value":1},{"op":"pop","key":"k"}]"#);
    let problem = refused.refused(409, "not_an_array").await;
    assert_eq!(problem["operation"], 1);
}

over_both_stores!(
    a_merge_pops_the_newest_elements,
    a_range_of_an_array_has_the_total_count,
    a_range_takes_only_integers,
    only_an_array_can_be_read_by_range,
    a_push_creates_the_array_and_returns_its_length,
    pushing_past_the_window_drops_the_oldest,
    a_smaller_window_drops_several_elements,
    a_window_of_one_keeps_the_newest,
    a_long_window_stays_exact_over_many_pushes,
    max_records_is_at_least_one,
    an_operation_accepts_both_spellings_of_max_records,
    only_an_array_accepts_a_push,
    a_replaced_array_leaves_no_old_elements,
);
