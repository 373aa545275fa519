use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{KV_MAX_BYTES, KV_MAX_KEYS, KvOperation, ScopeWrite};

use super::room::Room;
use super::scope_room::{Scope, delete, fill, increment, item, set, set_for, tasks};

const VALUE_BYTES_MAX: usize = 32_768;
const BYTES_MAX: usize = KV_MAX_BYTES as usize;

fn too_large(attempted: usize) -> Refusal {
    Refusal::KvTooLarge {
        limit_bytes: KV_MAX_BYTES,
        attempted_bytes: attempted as u64,
    }
}

const TOO_MANY: Refusal = Refusal::TooManyKeys {
    limit_keys: KV_MAX_KEYS,
};

async fn fill_leaving(scope: &Scope, remaining: usize) {
    let fills = [
        fill("a", VALUE_BYTES_MAX),
        fill("b", VALUE_BYTES_MAX),
        fill("c", VALUE_BYTES_MAX),
        fill("d", VALUE_BYTES_MAX - remaining),
    ];
    let written = scope.run(&fills).await;
    assert_eq!(written.kv_bytes, (BYTES_MAX - remaining) as u64);
}

fn keys(count: u32) -> Vec<KvOperation> {
    let number = |number: u32| set(&format!("k{number:03}"), "");
    (0..count).map(number).collect()
}

async fn a_value_of_the_maximum_size_is_stored(room: Room) {
    let session = room.session();

    let written = session.run(&[fill("k", VALUE_BYTES_MAX)]).await;

    assert_eq!(written.kv_bytes, VALUE_BYTES_MAX as u64);
    assert_eq!(session.value("k").await.unwrap().len(), VALUE_BYTES_MAX);
}

async fn values_can_total_exactly_the_byte_limit(room: Room) {
    let session = room.session();
    fill_leaving(&session, 0).await;
    let before = session.whole().await;

    let refused = session.try_run(&[set("e", "x")]).await;
    let empty = session.try_run(&[set("e", "")]).await;

    assert_eq!(refused, Err(too_large(BYTES_MAX + 1)));
    assert_eq!(empty.unwrap().kv_bytes, KV_MAX_BYTES);
    assert_ne!(session.whole().await, before);
    assert_eq!(session.version().await, 2);
}

async fn keys_do_not_count_toward_the_byte_limit(room: Room) {
    let session = room.session();
    fill_leaving(&session, 1).await;

    let written = session.run(&[set(&"k".repeat(1_024), "x")]).await;

    assert_eq!(written.kv_bytes, KV_MAX_BYTES);
}

async fn the_limit_counts_bytes_not_characters(room: Room) {
    let session = room.session();
    fill_leaving(&session, 3).await;

    assert_eq!(
        session.try_run(&[set("k", "😀")]).await,
        Err(too_large(BYTES_MAX + 1))
    );
    let fits = session.run(&[set("k", "€")]).await;

    assert_eq!(fits.kv_bytes, KV_MAX_BYTES);
}

async fn a_value_of_a_full_scope_can_be_replaced(room: Room) {
    let session = room.session();
    fill_leaving(&session, 0).await;

    let same = session.run(&[set("a", &"y".repeat(VALUE_BYTES_MAX))]).await;
    assert_eq!(same.kv_bytes, KV_MAX_BYTES);
    let smaller = session.run(&[fill("a", VALUE_BYTES_MAX - 10)]).await;
    assert_eq!(smaller.kv_bytes, KV_MAX_BYTES - 10);
    let to_the_limit = session.run(&[fill("a", VALUE_BYTES_MAX)]).await;
    assert_eq!(to_the_limit.kv_bytes, KV_MAX_BYTES);
}

async fn a_value_can_grow_by_exactly_the_remaining_bytes(room: Room) {
    let session = room.session();
    fill_leaving(&session, 8).await;
    session.run(&[set("n", "9999999")]).await;

    let grown = session.run(&[increment("n", 1)]).await;
    assert_eq!(grown.kv_bytes, KV_MAX_BYTES);
    session.run(&[increment("n", 89_999_999)]).await;
    let before = session.whole().await;
    let refused = session.try_run(&[increment("n", 1)]).await;

    assert_eq!(session.value("n").await.unwrap(), "99999999");
    assert_eq!(refused, Err(too_large(BYTES_MAX + 1)));
    assert_eq!(session.whole().await, before);
    let shorter = session.run(&[increment("n", -90_000_000)]).await;
    assert_eq!(shorter.kv_bytes, KV_MAX_BYTES - 1);
}

async fn limits_apply_to_the_result_of_a_batch(room: Room) {
    let session = room.session();
    fill_leaving(&session, 0).await;

    let through_larger = session
        .run(&[
            fill("e", VALUE_BYTES_MAX),
            fill("f", 1),
            delete("a"),
            delete("f"),
        ])
        .await;
    assert_eq!(through_larger.kv_bytes, KV_MAX_BYTES);
    let through_clear = session
        .run(&[
            fill("f", VALUE_BYTES_MAX),
            KvOperation::Clear,
            fill("f", VALUE_BYTES_MAX),
        ])
        .await;
    assert_eq!(
        (through_clear.kv_bytes, through_clear.keys),
        (VALUE_BYTES_MAX as u64, 1)
    );
    session.run(&[KvOperation::Clear]).await;
    fill_leaving(&session, 0).await;
    let too_large_at_the_end = session
        .try_run(&[
            delete("f"),
            delete("a"),
            fill("g", VALUE_BYTES_MAX),
            set("h", "x"),
        ])
        .await;

    assert_eq!(too_large_at_the_end, Err(too_large(BYTES_MAX + 1)));
}

async fn a_scope_can_have_exactly_256_keys(room: Room) {
    let session = room.session();
    let written = session.run(&keys(256)).await;
    assert_eq!(written.keys, 256);
    let before = session.whole().await;

    let refused = session.try_run(&[set("more", "")]).await;
    let counted = session.try_run(&[increment("more", 1)]).await;

    assert_eq!((refused, counted), (Err(TOO_MANY), Err(TOO_MANY)));
    assert_eq!(session.whole().await, before);
    session.run(&[set("k000", "1"), increment("k000", 1)]).await;
    session.run(&[delete("k001"), set("more", "")]).await;
    let through_more_keys = session
        .run(&[set("a", ""), set("b", ""), delete("a"), delete("more")])
        .await;
    assert_eq!(through_more_keys.keys, 256);
}

async fn limits_apply_to_the_first_write(room: Room) {
    let session = room.session();

    let too_many = session.try_run(&keys(257)).await;
    let fills: Vec<_> = ["a", "b", "c", "d"]
        .map(|key| fill(key, VALUE_BYTES_MAX))
        .into();
    let more = [&fills[..], &[set("e", "x")]].concat();
    let too_much = session.try_run(&more).await;

    assert_eq!(too_many, Err(TOO_MANY));
    assert_eq!(too_much, Err(too_large(BYTES_MAX + 1)));
    assert!(!session.exists().await);
    assert!(session.try_run(&fills).await.is_ok());
}

async fn bytes_are_checked_before_keys_and_both_before_the_history(room: Room) {
    let session = room.session().keeping(10, false);
    let mut more = keys(257);
    let write = ScopeWrite {
        operations: &more,
        history: &[item("1", "1")],
        ..session.blank()
    };
    assert_eq!(session.write(&write).await, Err(TOO_MANY));

    more.extend(["a", "b", "c", "d"].map(|key| fill(key, VALUE_BYTES_MAX)));
    more.push(set("e", "x"));

    assert_eq!(session.try_run(&more).await, Err(too_large(BYTES_MAX + 1)));
}

async fn tasks_records_and_histories_have_separate_limits(room: Room) {
    let session = room.session();
    fill_leaving(&session, 0).await;
    let large = "x".repeat(100_000);

    session.put_tasks(&[&large], None).await.unwrap();
    session.put_record(&large[..65_536], None).await.unwrap();
    let value = format!("\"{large}\"");
    session.add(&[item("1", &value), item("2", &value)]).await;

    let view = session.view().await.unwrap();
    assert_eq!(view.kv_bytes, KV_MAX_BYTES);
    assert_eq!(view.tasks, tasks(&[&large]));
    assert_eq!(view.history.bytes, 2 * (100_002 + 1 + 64));
}

async fn a_refused_write_keeps_the_ttls_of_keys_and_scope(room: Room) {
    let second = std::time::Duration::from_secs(1);
    let handle = room.handle();
    handle.make().await;
    handle.set_ttl(1_000 * second).await;
    fill_leaving(&handle, 1).await;
    handle.run(&[set_for("k", "1", 100 * second)]).await;
    let over = [
        set("k", "2"),
        set_for("l", "", second),
        set("m", &"x".repeat(2)),
    ];
    let write = ScopeWrite {
        operations: &over,
        ttl: Some(9_999 * second),
        ..handle.blank()
    };

    assert_eq!(handle.write(&write).await, Err(too_large(BYTES_MAX + 2)));
    room.advance(90 * second);
    assert_eq!(handle.value("k").await.unwrap(), "1");
    room.advance(10 * second);
    assert_eq!(handle.value("k").await, None);
    room.advance(890 * second);
    assert!(handle.exists().await);
    room.advance(10 * second);

    assert!(!handle.exists().await);
}

super::over_every_store! {
    a_value_of_the_maximum_size_is_stored,
    values_can_total_exactly_the_byte_limit,
    keys_do_not_count_toward_the_byte_limit,
    the_limit_counts_bytes_not_characters,
    a_value_of_a_full_scope_can_be_replaced,
    a_value_can_grow_by_exactly_the_remaining_bytes,
    limits_apply_to_the_result_of_a_batch,
    a_scope_can_have_exactly_256_keys,
    limits_apply_to_the_first_write,
    bytes_are_checked_before_keys_and_both_before_the_history,
    tasks_records_and_histories_have_separate_limits,
    a_refused_write_keeps_the_ttls_of_keys_and_scope,
}
