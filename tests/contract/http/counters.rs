use reqwest::Method;

use crate::support::server::Server;

async fn an_absent_counter_counts_from_zero(server: &Server) {
    let thread = server.client().thread();

    let first = thread.post("state/n/increment", "{}").ok().await;
    thread.request(Method::POST, "state/n/increment").ok().await;
    let second = thread.post("state/n/increment", r#"{"by":-6}"#).ok().await;

    assert_eq!(first.json()["value"], 1);
    assert_eq!(first.json()["version"], 1);
    assert_eq!(first.json()["size_bytes"], r#"{"n":1}"#.len());
    assert_eq!(second.json()["value"], -4);
    assert_eq!(thread.state().await, r#"{"n":-4}"#);
}

async fn sums_are_exact(server: &Server) {
    let thread = server.client().thread();

    for (stored, by, sum) in [
        ("9007199254740992", "1", "9007199254740993"),
        ("999999999999999", "1", "1000000000000000"),
        ("-1000000000000000", "1", "-999999999999999"),
        ("9223372036854775806", "1", "9223372036854775807"),
        ("-9223372036854775807", "-1", "-9223372036854775808"),
        ("9223372036854775807", "-9223372036854775808", "-1"),
        ("-9223372036854775808", "9223372036854775807", "-1"),
        ("9223372036854775807", "-9223372036854775807", "0"),
        ("0", "-9223372036854775808", "-9223372036854775808"),
        ("-0", "1", "1"),
        ("-0", "0", "0"),
        ("7", "0", "7"),
        ("-5", "5", "0"),
        (
            "123456789012345678",
            "987654321098765432",
            "1111111110111111110",
        ),
    ] {
        thread.put("state/n", stored).ok().await;

        let answer = thread
            .post("state/n/increment", &format!(r#"{{"by":{by}}}"#))
            .ok()
            .await;

        let state = thread.state().await;
        assert_eq!(state, format!(r#"{{"n":{sum}}}"#), "{stored} + {by}");
        assert_eq!(answer.json()["value"].to_string(), sum, "{stored} + {by}");
        assert_eq!(answer.json()["size_bytes"], state.len());
    }
}

async fn only_an_integer_can_be_incremented(server: &Server) {
    let thread = server.client().thread();

    for value in [
        "1.0", "1e2", "1E2", "0.5", "-1.5", "\"1\"", "\"\"", "null", "true", "[]", "[1]", "{}",
    ] {
        thread.put("state/n", value).ok().await;

        thread
            .post("state/n/increment", "{}")
            .refused(409, "not_an_integer")
            .await;
        assert_eq!(thread.get("state/n").ok().await.text(), value);
    }
}

async fn a_counter_cannot_exceed_64_bits(server: &Server) {
    let thread = server.client().thread();

    for (stored, by) in [
        ("9223372036854775807", "1"),
        ("-9223372036854775808", "-1"),
        ("9223372036854775808", "-1"),
        ("-9223372036854775809", "1"),
        ("9223372036854775808", "0"),
        ("100000000000000000000000000000000000000000", "1"),
        ("9223372036854775807", "9223372036854775807"),
    ] {
        thread.put("state/n", stored).ok().await;

        thread
            .post("state/n/increment", &format!(r#"{{"by":{by}}}"#))
            .refused(409, "integer_overflow")
            .await;
        assert_eq!(thread.get("state/n").ok().await.text(), stored);
    }
}

async fn an_increment_is_a_64_bit_integer(server: &Server) {
    let thread = server.client().thread();

    for body in [
        r#"{"by":1.0}"#,
        r#"{"by":1e2}"#,
        r#"{"by":"1"}"#,
        r#"{"by":[1]}"#,
        r#"{"by":9223372036854775808}"#,
        r#"{"by":-9223372036854775809}"#,
        r#"{"bogus":1}"#,
        r#"{"by":1,"bogus":1}"#,
        "1",
        "[]",
        "[5]",
    ] {
        thread
            .post("state/n/increment", body)
            .refused(400, "invalid_parameter")
            .await;
    }
    assert_eq!(thread.object().await["exists"], false);
}

async fn concurrent_increments_all_count(server: &Server) {
    let thread = server.client().thread();

    let increments: Vec<_> = (0..32)
        .map(|_| tokio::spawn(thread.post("state/n/increment", "{}").ok()))
        .collect();
    let mut values = Vec::new();
    for increment in increments {
        values.push(increment.await.unwrap().json()["value"].as_u64().unwrap());
    }

    values.sort_unstable();
    assert_eq!(values, (1..=32).collect::<Vec<_>>());
    assert_eq!(thread.state().await, r#"{"n":32}"#);
}

over_both_stores!(
    an_absent_counter_counts_from_zero,
    sums_are_exact,
    only_an_integer_can_be_incremented,
    a_counter_cannot_exceed_64_bits,
    an_increment_is_a_64_bit_integer,
    concurrent_increments_all_count,
);
