use threadkeep_domain::{Answer, Refusal};

use super::room::{Room, increment, set};

const NOT_AN_INTEGER: Refusal = Refusal::NotAnInteger { operation: 0 };
const OVERFLOW: Refusal = Refusal::IntegerOverflow { operation: 0 };

async fn check(room: &Room, stored: Option<&str>, by: i64, expected: Result<i64, Refusal>) {
    let thread = room.subject();
    if let Some(stored) = stored {
        thread.merge(&[set("k", stored)]).await;
    }

    let written = thread.try_merge(&[increment("k", by)]).await;

    let sum = written.map(|written| written.answers);
    assert_eq!(
        sum,
        expected.map(|sum| vec![Answer::Value(sum)]),
        "{stored:?} + {by}"
    );
    let text = match expected {
        Ok(sum) => Some(sum.to_string()),
        Err(_) => stored.map(ToOwned::to_owned),
    };
    assert_eq!(thread.value("k").await, text, "{stored:?} + {by}");
}

async fn an_absent_key_counts_as_0(room: Room) {
    for by in [0, 1, -1, i64::MAX, i64::MIN] {
        check(&room, None, by, Ok(by)).await;
    }
}

async fn sums_are_exact_where_doubles_are_not(room: Room) {
    for (stored, by, sum) in [
        ("9007199254740992", 1, 9_007_199_254_740_993),
        ("9007199254740993", 2, 9_007_199_254_740_995),
        ("-9007199254740992", -1, -9_007_199_254_740_993),
        ("999999999999999", 1, 1_000_000_000_000_000),
        ("1000000000000000", -1, 999_999_999_999_999),
        ("999999999999999999", 1, 1_000_000_000_000_000_000),
        ("1000000000000000000", -1, 999_999_999_999_999_999),
        (
            "123456789012345678",
            876_543_210_987_654_321,
            999_999_999_999_999_999,
        ),
        ("-123456789012345678", 123_456_789_012_345_678, 0),
        ("5", -12, -7),
        ("-5", 12, 7),
        ("100000000000000", -100_000_000_000_001, -1),
        ("-1000000000000000", 1, -999_999_999_999_999),
        ("1000000000000001", -1_000_000_000_000_000, 1),
    ] {
        check(&room, Some(stored), by, Ok(sum)).await;
    }
}

async fn sums_outside_64_bits_overflow(room: Room) {
    for (stored, by, sum) in [
        ("9223372036854775806", 1, Ok(i64::MAX)),
        ("9223372036854775807", 0, Ok(i64::MAX)),
        ("9223372036854775807", 1, Err(OVERFLOW)),
        ("9223372036854775807", i64::MIN, Ok(-1)),
        ("9223372036854775807", i64::MAX, Err(OVERFLOW)),
        ("0", i64::MAX, Ok(i64::MAX)),
        ("1", i64::MAX, Err(OVERFLOW)),
        ("-1", i64::MAX, Ok(i64::MAX - 1)),
        ("-9223372036854775807", -1, Ok(i64::MIN)),
        ("-9223372036854775808", 0, Ok(i64::MIN)),
        ("-9223372036854775808", -1, Err(OVERFLOW)),
        ("-9223372036854775808", i64::MAX, Ok(-1)),
        ("-9223372036854775808", i64::MIN, Err(OVERFLOW)),
        ("0", i64::MIN, Ok(i64::MIN)),
        ("-1", i64::MIN, Err(OVERFLOW)),
        ("1", i64::MIN, Ok(i64::MIN + 1)),
    ] {
        check(&room, Some(stored), by, sum).await;
    }
}

async fn stored_integers_past_64_bits_always_overflow(room: Room) {
    let huge = "9".repeat(400);
    for stored in [
        "9223372036854775808",
        "-9223372036854775809",
        "10000000000000000000",
        "99999999999999999999",
        &huge,
    ] {
        for by in [1, 0, -1, i64::MIN] {
            check(&room, Some(stored), by, Err(OVERFLOW)).await;
        }
    }
}

async fn negative_zero_is_an_integer(room: Room) {
    check(&room, Some("-0"), 5, Ok(5)).await;
    check(&room, Some("-0"), -5, Ok(-5)).await;
    check(&room, Some("-0"), 0, Ok(0)).await;
}

async fn non_integers_cannot_be_incremented(room: Room) {
    for stored in [
        "1.0", "-1.0", "1e2", "1E2", "0.5", "-0.0", "\"1\"", "\"\"", "null", "true", "[]", "[1]",
        "{}",
    ] {
        check(&room, Some(stored), 1, Err(NOT_AN_INTEGER)).await;
    }
    let long = format!("[{}0]", "1234567,".repeat(1_000));
    check(&room, Some(&long), 1, Err(NOT_AN_INTEGER)).await;
}

async fn increments_of_one_batch_add_up(room: Room) {
    let thread = room.subject();

    let written = thread
        .merge(&[
            increment("k", i64::MAX),
            increment("k", i64::MIN),
            increment("k", 1),
            increment("l", 3),
            increment("k", i64::MIN),
        ])
        .await;

    assert_eq!(
        written.answers,
        [i64::MAX, -1, 0, 3, i64::MIN].map(Answer::Value)
    );
    assert_eq!(
        thread.state().await.unwrap(),
        r#"{"k":-9223372036854775808,"l":3}"#
    );
}

async fn the_size_follows_the_digits(room: Room) {
    let thread = room.subject();
    for by in [9, 1, -11, 1_000_000_000_000_000, -999_999_999_999_999] {
        let written = thread.merge(&[increment("k", by)]).await;

        let state = thread.state().await.unwrap();
        assert_eq!(written.size_bytes as usize, state.len(), "{state}");
    }
}

over_every_store! {
    an_absent_key_counts_as_0,
    sums_are_exact_where_doubles_are_not,
    sums_outside_64_bits_overflow,
    stored_integers_past_64_bits_always_overflow,
    negative_zero_is_an_integer,
    non_integers_cannot_be_incremented,
    increments_of_one_batch_add_up,
    the_size_follows_the_digits,
}
