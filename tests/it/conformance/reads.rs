use threadkeep_domain::{Slice, ThreadId};
use threadkeep_store::Reader;

use super::room::{Room, key, set, text};

async fn an_absent_thread_reads_as_none_and_stays_absent(room: Room) {
    let thread = room.subject();
    let (store, id) = (&thread.store, &thread.id);

    assert_eq!(store.get_state(id, Reader::ALL).await.unwrap(), None);
    assert_eq!(store.get_content(id, Reader::ALL).await.unwrap(), None);
    assert_eq!(
        store
            .get_values(id, Reader::ALL, &[key("k")])
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        store
            .get_value(id, Reader::ALL, &key("k"), None)
            .await
            .unwrap(),
        None
    );
    let found = store.find_key(id, Reader::ALL, &key("k")).await;
    assert_eq!(found.unwrap(), None);
    assert_eq!(store.get_keys(id, Reader::ALL).await.unwrap(), None);
    assert_eq!(store.get_thread(id, Reader::ALL).await.unwrap(), None);
    assert_eq!(store.get_state(id, Reader::ALL).await.unwrap(), None);
}

async fn all_reads_give_the_same_stamp(room: Room) {
    let thread = room.subject();
    thread.merge(&[]).await;
    let stamp = thread.merge(&[set("k", "1")]).await.stamp;
    let (store, id) = (&thread.store, &thread.id);

    let state = store.get_state(id, Reader::ALL).await.unwrap().unwrap();
    let whole = store.get_content(id, Reader::ALL).await.unwrap().unwrap();
    let values = store
        .get_values(id, Reader::ALL, &[key("k")])
        .await
        .unwrap()
        .unwrap();
    let value = store
        .get_value(id, Reader::ALL, &key("k"), None)
        .await
        .unwrap()
        .unwrap();
    let keys = store.get_keys(id, Reader::ALL).await.unwrap().unwrap();
    let object = store.get_thread(id, Reader::ALL).await.unwrap().unwrap();
    let found = async |text: &str| {
        let found = store.find_key(id, Reader::ALL, &key(text)).await;
        found.unwrap().unwrap()
    };
    let (present, absent) = (found("k").await, found("absent").await);

    assert!(present.content && !absent.content);
    for read in [
        present.stamp,
        absent.stamp,
        state.stamp,
        whole.stamp,
        values.stamp,
        value.stamp,
        keys.stamp,
        object.stamp,
    ] {
        assert_eq!(read, stamp);
    }
}

async fn a_whole_read_returns_state_and_metadata(room: Room) {
    let thread = room.subject();
    let long = format!("[{}0]", "[1,2],".repeat(2_000));
    thread.merge(&[set("b", &long), set("a", "1.0")]).await;
    let whole = async || {
        let found = thread
            .store
            .get_content(&thread.id, Reader::ALL)
            .await
            .unwrap()
            .unwrap();
        let state = String::from_utf8(found.content.state.to_vec()).unwrap();
        (state, found.content.metadata.as_str().to_owned())
    };

    let without_metadata = whole().await;
    thread.set_metadata(r#"{"m":1e400}"#).await.unwrap();
    let with_metadata = whole().await;

    let state = format!(r#"{{"a":1.0,"b":{long}}}"#);
    assert_eq!(without_metadata, (state.clone(), "{}".into()));
    assert_eq!(with_metadata, (state, r#"{"m":1e400}"#.into()));
}

async fn values_are_in_the_requested_order_with_none_for_absent_keys(room: Room) {
    let thread = room.subject();
    let long = format!("[{}0]", "[1,2],".repeat(2_000));
    thread
        .merge(&[set("a", "[]"), set("b", &long), set("c", "[1,[2]]")])
        .await;

    let requested = ["c", "absent", "a", "b", "c"].map(key);
    let found = thread
        .store
        .get_values(&thread.id, Reader::ALL, &requested)
        .await;

    let values = found.unwrap().unwrap().content;
    let values: Vec<_> = values.iter().map(|value| value.as_deref()).collect();
    assert_eq!(
        values,
        [
            Some(&b"[1,[2]]"[..]),
            None,
            Some(b"[]"),
            Some(long.as_bytes()),
            Some(b"[1,[2]]"),
        ]
    );
}

async fn a_request_for_no_keys_returns_only_the_stamp(room: Room) {
    let thread = room.subject();
    let stamp = thread.merge(&[set("a", "1")]).await.stamp;

    let found = thread.store.get_values(&thread.id, Reader::ALL, &[]).await;

    let found = found.unwrap().unwrap();
    assert_eq!(found.stamp, stamp);
    assert!(found.content.is_empty());
}

async fn an_absent_key_of_a_thread_is_none_with_a_stamp(room: Room) {
    let thread = room.subject();
    let stamp = thread.merge(&[set("a", "1")]).await.stamp;

    for slice in [None, Some(Slice::Tail(1))] {
        let found = thread
            .store
            .get_value(&thread.id, Reader::ALL, &key("b"), slice)
            .await;

        let found = found.unwrap().unwrap();
        assert_eq!(found.stamp, stamp);
        assert_eq!(found.content, None);
    }
}

async fn a_slice_of_a_non_array_is_the_whole_value_without_a_total(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[set("o", "{\"a\":[1,2]}"), set("s", "\"[1,2]\"")])
        .await;

    for (key, value) in [("o", "{\"a\":[1,2]}"), ("s", "\"[1,2]\"")] {
        let part = thread.part(key, Some(Slice::Tail(1))).await.unwrap();

        assert_eq!(text(&part), value);
        assert_eq!(part.total, None);
    }
}

async fn a_whole_array_has_no_total(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "[1,2]")]).await;

    let part = thread.part("k", None).await.unwrap();

    assert_eq!(text(&part), "[1,2]");
    assert_eq!(part.total, None);
}

async fn threads_with_similar_ids_are_separate(room: Room) {
    let ids: Vec<ThreadId> = [
        format!("thrd_{}", "a".repeat(27)),
        format!("thrd_{}", "A".repeat(27)),
        format!("thrd_{}", "a".repeat(28)),
        format!("thrd_{}", "a".repeat(59)),
    ]
    .iter()
    .map(|id| id.parse().unwrap())
    .collect();
    let threads = ids.into_iter().map(|id| super::room::Subject {
        id,
        ..room.subject()
    });
    let threads: Vec<_> = threads.collect();

    for (number, thread) in threads.iter().enumerate() {
        assert!(!thread.exists().await);
        thread.merge(&[set("n", &number.to_string())]).await;
    }

    for (number, thread) in threads.iter().enumerate() {
        assert_eq!(thread.state().await.unwrap(), format!("{{\"n\":{number}}}"));
    }
}

async fn a_store_that_is_up_answers_a_ping(room: Room) {
    assert!(room.store.ping().await.is_ok());
    assert!(room.backend.for_worker().ping().await.is_ok());
}

over_every_store! {
    an_absent_thread_reads_as_none_and_stays_absent,
    all_reads_give_the_same_stamp,
    a_whole_read_returns_state_and_metadata,
    values_are_in_the_requested_order_with_none_for_absent_keys,
    a_request_for_no_keys_returns_only_the_stamp,
    an_absent_key_of_a_thread_is_none_with_a_stamp,
    a_slice_of_a_non_array_is_the_whole_value_without_a_total,
    a_whole_array_has_no_total,
    threads_with_similar_ids_are_separate,
    a_store_that_is_up_answers_a_ping,
}
