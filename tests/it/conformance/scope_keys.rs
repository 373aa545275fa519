use std::time::Duration;

use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{KvAnswer, KvOperation};
use threadkeep_store::{HistoryFrom, ScopeParts};

use super::room::Room;
use super::scope_room::{delete, increment, key, set, set_for, set_if_absent};

async fn a_set_value_can_be_read(room: Room) {
    let session = room.session();

    let written = session.run(&[set("a", "1"), set("b/c", "")]).await;

    assert_eq!(written.answers, [KvAnswer::Set(true), KvAnswer::Set(true)]);
    assert_eq!((written.keys, written.kv_bytes), (2, 1));
    assert_eq!(written.stamp.version, 1);
    assert!(!written.replayed);
    assert_eq!(session.value("a").await.unwrap(), "1");
    assert_eq!(session.value("b/c").await.unwrap(), "");
    assert_eq!(session.value("c").await, None);
    let view = session.view().await.unwrap();
    assert_eq!((view.key_count, view.kv_bytes), (2, 1));
    assert_eq!(view.stamp, written.stamp);
}

async fn a_scope_that_was_never_written_to_reads_as_none(room: Room) {
    for scope in [room.session(), room.tool(), room.handle()] {
        assert_eq!(scope.view().await, None);
        let page = scope.page(HistoryFrom::After(0), 10);
        assert_eq!(page.await, None);
    }
}

async fn a_read_returns_the_requested_values_in_order(room: Room) {
    let session = room.session();
    session.run(&[set("a", "1"), set("b", "2")]).await;
    session.put_tasks(&["t"], None).await.unwrap();
    session.put_record("r", None).await.unwrap();
    let values = [key("b"), key("none"), key("a"), key("b")];

    let parts = ScopeParts {
        values: &values,
        ..ScopeParts::default()
    };
    let view = session.read(&parts).await.unwrap().unwrap();

    let texts: Vec<_> = view.values.iter().map(|value| value.as_ref()).collect();
    let texts: Vec<_> = texts
        .iter()
        .map(|text| text.map(|text| text.as_str()))
        .collect();
    assert_eq!(texts, [Some("2"), None, Some("1"), Some("2")]);
    assert!(view.keys.is_empty() && view.tasks.is_empty() && view.record.is_none());
    assert_eq!((view.key_count, view.kv_bytes), (2, 2));
    assert_eq!((view.stamp.version, view.tasks_stamp.version), (3, 2));
}

async fn keys_are_exact_and_sorted_by_their_bytes(room: Room) {
    let session = room.session();
    let mut texts = [
        "b", "a", "", " ", "\n", "\r\n", "\0", "a\0b", "é", "e\u{301}", "\u{feff}", "😀",
        "\u{ffff}", "\u{2028}", "\"", "\\", "a:b/c", "A", "10", "9", "M", "T", "R", "ka", "xa",
    ];
    let sets: Vec<_> = texts.iter().map(|text| set(text, text)).collect();

    session.run(&sets).await;

    texts.sort_unstable();
    assert_eq!(session.keys().await, texts);
    for text in texts {
        assert_eq!(session.value(text).await.unwrap(), text);
    }
    let long = "k".repeat(1_024);
    session.run(&[set(&long, "long")]).await;
    assert_eq!(session.value(&long).await.unwrap(), "long");
}

async fn values_are_any_text(room: Room) {
    let session = room.session();
    let long = "\u{10ffff}".repeat(8_192);
    for text in [
        "",
        "\0",
        "\n\r\t",
        "é😀\u{feff}\u{ffff}",
        "\u{7f}\u{80}",
        "null",
        "{\"a\":[1.0,[]]}",
        "9007199254740993",
        "1e400",
        "-0",
        ";",
        "s1",
        &long,
    ] {
        session.run(&[set("k", text)]).await;
        assert_eq!(session.value("k").await.unwrap(), text);
        let view = session.view().await.unwrap();
        assert_eq!(view.kv_bytes, text.len() as u64);
    }
}

async fn a_delete_reports_whether_the_key_existed(room: Room) {
    let session = room.session();
    session.run(&[set("k", "1")]).await;

    assert_eq!(session.step(delete("k")).await, KvAnswer::Deleted(true));
    assert_eq!(session.step(delete("k")).await, KvAnswer::Deleted(false));

    assert_eq!(session.value("k").await, None);
    let view = session.view().await.unwrap();
    assert_eq!((view.key_count, view.kv_bytes), (0, 0));
    assert_eq!(view.stamp.version, 3);
}

async fn a_set_if_absent_keeps_an_existing_value(room: Room) {
    let session = room.session();

    let first = session.step(set_if_absent("k", "1")).await;
    let second = session.step(set_if_absent("k", "2")).await;

    assert_eq!((first, second), (KvAnswer::Set(true), KvAnswer::Set(false)));
    assert_eq!(session.value("k").await.unwrap(), "1");
    session.run(&[set("k", "")]).await;
    let of_empty = session.step(set_if_absent("k", "3")).await;
    assert_eq!(of_empty, KvAnswer::Set(false));
}

async fn a_set_if_absent_without_effect_keeps_the_ttl(room: Room) {
    let tool = room.tool();
    tool.run(&[set_for("k", "1", Duration::from_secs(100))])
        .await;

    tool.run(&[set_if_absent("k", "2")]).await;
    room.advance(Duration::from_secs(100));

    assert_eq!(tool.value("k").await, None);
}

async fn clearing_deletes_all_keys_and_nothing_else(room: Room) {
    let session = room.session();
    session
        .run(&[
            set("a", "1"),
            set_for("b", "2", Duration::from_secs(9)),
            set("", "3"),
        ])
        .await;
    session.put_tasks(&["t"], None).await.unwrap();
    session.put_record("r", None).await.unwrap();

    let written = session.run(&[KvOperation::Clear]).await;

    assert_eq!(written.answers, [KvAnswer::Cleared]);
    assert_eq!((written.keys, written.kv_bytes), (0, 0));
    assert!(session.keys().await.is_empty());
    assert_eq!(session.tasks().await, ["t"]);
    assert_eq!(session.record().await.unwrap(), "r");
    let of_nothing = session.run(&[KvOperation::Clear]).await;
    assert_eq!(of_nothing.stamp.version, 5);
}

async fn operations_see_the_effects_of_earlier_ones(room: Room) {
    let session = room.session();
    session.run(&[set("a", "1"), set("b", "2")]).await;

    let written = session
        .run(&[
            delete("a"),
            set_if_absent("a", "10"),
            increment("a", 5),
            set_if_absent("a", "x"),
            increment("n", 1),
            delete("n"),
            increment("n", -3),
            KvOperation::Clear,
            delete("b"),
            set_if_absent("b", "7"),
            increment("b", 1),
            set("c", "é"),
        ])
        .await;

    use KvAnswer::{Cleared, Deleted, Set, Value};
    assert_eq!(
        written.answers,
        [
            Deleted(true),
            Set(true),
            Value(15),
            Set(false),
            Value(1),
            Deleted(true),
            Value(-3),
            Cleared,
            Deleted(false),
            Set(true),
            Value(8),
            Set(true),
        ]
    );
    assert_eq!((written.keys, written.kv_bytes), (2, 3));
    assert_eq!(session.keys().await, ["b", "c"]);
    assert_eq!(session.value("b").await.unwrap(), "8");
}

async fn an_absent_key_counts_from_0(room: Room) {
    let session = room.session();

    assert_eq!(session.step(increment("n", 0)).await, KvAnswer::Value(0));
    assert_eq!(session.step(increment("n", 3)).await, KvAnswer::Value(3));
    assert_eq!(session.step(increment("n", -5)).await, KvAnswer::Value(-2));
    assert_eq!(session.value("n").await.unwrap(), "-2");
    let low = session.step(increment("low", i64::MIN)).await;
    assert_eq!(low, KvAnswer::Value(i64::MIN));
    assert_eq!(session.value("low").await.unwrap(), "-9223372036854775808");
}

async fn counters_are_exact_to_both_ends_of_64_bits(room: Room) {
    let session = room.session();
    for (old, by, sum) in [
        ("9223372036854775806", 1, i64::MAX),
        ("-9223372036854775807", -1, i64::MIN),
        ("9007199254740992", 1, 9_007_199_254_740_993),
        ("-9007199254740992", -1, -9_007_199_254_740_993),
        ("9223372036854775807", i64::MIN, -1),
        ("-9223372036854775808", i64::MAX, -1),
        ("999999999999999", 1, 1_000_000_000_000_000),
        ("-1000000000000000", 1, -999_999_999_999_999),
        ("1", -1, 0),
        ("-1", 1, 0),
    ] {
        session.run(&[set("n", old)]).await;
        assert_eq!(session.step(increment("n", by)).await, KvAnswer::Value(sum));
        assert_eq!(session.value("n").await.unwrap(), sum.to_string());
    }
}

async fn counters_do_not_pass_64_bits(room: Room) {
    let session = room.session();
    for (old, by) in [
        ("9223372036854775807", 1),
        ("1", i64::MAX),
        ("-9223372036854775808", -1),
        ("-1", i64::MIN),
        ("9223372036854775808", -1),
        ("-9223372036854775809", 1),
        ("99999999999999999999999999", 0),
    ] {
        session.run(&[set("n", old)]).await;
        let before = session.whole().await;

        let refused = session
            .try_run(&[set("other", "1"), increment("n", by)])
            .await;

        let operation = 1;
        assert_eq!(refused, Err(Refusal::IntegerOverflow { operation }));
        assert_eq!(session.whole().await, before);
    }
}

async fn an_increment_of_a_non_integer_is_refused(room: Room) {
    let session = room.session();
    for text in [
        "", " ", "a", "1.0", "1e2", " 1", "1 ", "+1", "-", "--1", "0x1", "1\n", "é", "١", "1\0",
    ] {
        session.run(&[set("n", text)]).await;
        let before = session.whole().await;

        let refused = session.try_run(&[increment("n", 1)]).await;

        let operation = 0;
        let expected = Err(Refusal::NotAnInteger { operation });
        assert_eq!(refused, expected, "{text:?}");
        assert_eq!(session.whole().await, before);
    }
}

async fn a_refused_operation_reports_its_index_and_undoes_the_batch(room: Room) {
    let session = room.session();
    session.run(&[set("a", "1"), set("t", "text")]).await;
    let before = session.whole().await;

    let refused = session
        .try_run(&[
            set("b", "1"),
            delete("a"),
            increment("n", 1),
            increment("t", 1),
            KvOperation::Clear,
        ])
        .await;

    let operation = 3;
    assert_eq!(refused, Err(Refusal::NotAnInteger { operation }));
    assert_eq!(session.whole().await, before);
}

async fn a_refused_first_write_makes_no_scope(room: Room) {
    let session = room.session();

    let refused = session
        .try_run(&[set("n", "text"), increment("n", 1)])
        .await;

    assert!(refused.is_err());
    assert!(!session.exists().await);
}

super::over_every_store! {
    a_set_value_can_be_read,
    a_scope_that_was_never_written_to_reads_as_none,
    a_read_returns_the_requested_values_in_order,
    keys_are_exact_and_sorted_by_their_bytes,
    values_are_any_text,
    a_delete_reports_whether_the_key_existed,
    a_set_if_absent_keeps_an_existing_value,
    a_set_if_absent_without_effect_keeps_the_ttl,
    clearing_deletes_all_keys_and_nothing_else,
    operations_see_the_effects_of_earlier_ones,
    an_absent_key_counts_from_0,
    counters_are_exact_to_both_ends_of_64_bits,
    counters_do_not_pass_64_bits,
    an_increment_of_a_non_integer_is_refused,
    a_refused_operation_reports_its_index_and_undoes_the_batch,
    a_refused_first_write_makes_no_scope,
}
