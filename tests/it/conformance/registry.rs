use std::sync::Arc;

use super::room::Room;

const KIND: &str = "webhooks";
const RECORDS_MAX: usize = 100;

async fn put(
    room: &Room,
    name: &str,
    expected: Option<&str>,
    new: &str,
    max_records: usize,
) -> bool {
    let expected = expected.map(str::as_bytes);
    let put = room
        .backend
        .put_record(KIND, name, expected, new.as_bytes(), max_records);
    put.await.unwrap()
}

async fn records(room: &Room, kind: &str) -> Vec<(String, String)> {
    let records = room.backend.records(kind).await.unwrap().into_iter();
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    records.map(|(name, record)| (name, text(record))).collect()
}

fn pair(name: &str, record: &str) -> (String, String) {
    (name.into(), record.into())
}

async fn records_are_listed_by_name(room: Room) {
    for name in ["whk_b", "B.-_9", "whk_a"] {
        assert!(put(&room, name, None, &format!("of {name}\0\n"), RECORDS_MAX).await);
    }

    assert_eq!(
        records(&room, KIND).await,
        [
            pair("B.-_9", "of B.-_9\0\n"),
            pair("whk_a", "of whk_a\0\n"),
            pair("whk_b", "of whk_b\0\n"),
        ]
    );
    assert!(records(&room, "others").await.is_empty());
}

async fn a_record_replaces_the_expected_one(room: Room) {
    assert!(!put(&room, "a", Some("old"), "new", RECORDS_MAX).await);
    assert!(put(&room, "a", None, "old", RECORDS_MAX).await);

    assert!(!put(&room, "a", None, "new", RECORDS_MAX).await);
    assert!(!put(&room, "a", Some("other"), "new", RECORDS_MAX).await);
    assert!(!put(&room, "a", Some(""), "new", RECORDS_MAX).await);
    assert_eq!(records(&room, KIND).await, [pair("a", "old")]);

    assert!(put(&room, "a", Some("old"), "", RECORDS_MAX).await);
    assert!(!put(&room, "a", None, "new", RECORDS_MAX).await);
    assert!(put(&room, "a", Some(""), "new", RECORDS_MAX).await);
    assert_eq!(records(&room, KIND).await, [pair("a", "new")]);
}

async fn no_more_records_are_created_than_the_limit(room: Room) {
    assert!(!put(&room, "a", None, "1", 0).await);
    assert!(put(&room, "a", None, "1", 2).await);
    assert!(put(&room, "b", None, "1", 2).await);

    assert!(!put(&room, "c", None, "1", 2).await);
    assert!(put(&room, "b", Some("1"), "2", 2).await);
    assert!(put(&room, "b", Some("2"), "3", 1).await);

    assert_eq!(records(&room, KIND).await, [pair("a", "1"), pair("b", "3")]);
}

async fn deleting_a_record_frees_its_slot(room: Room) {
    put(&room, "a", None, "1", 1).await;
    let delete = async |name| room.backend.delete_record(KIND, name).await.unwrap();

    assert!(!delete("b").await);
    assert!(delete("a").await);
    assert!(!delete("a").await);

    assert!(records(&room, KIND).await.is_empty());
    assert!(!put(&room, "a", Some("1"), "2", 1).await);
    assert!(put(&room, "a", None, "2", 1).await);
}

async fn kinds_are_separate(room: Room) {
    put(&room, "a", None, "1", RECORDS_MAX).await;

    let other = room.backend.put_record("other", "a", None, b"2", 1).await;
    let deleted = room.backend.delete_record("third", "a").await;

    assert!(other.unwrap());
    assert!(!deleted.unwrap());
    assert_eq!(records(&room, KIND).await, [pair("a", "1")]);
    assert_eq!(records(&room, "other").await, [pair("a", "2")]);
}

async fn one_of_several_concurrent_changes_succeeds(room: Room) {
    let room = Arc::new(room);
    put(&room, "a", None, "old", RECORDS_MAX).await;
    let changes = (0..20).map(|number| {
        let room = Arc::clone(&room);
        tokio::spawn(
            async move { put(&room, "a", Some("old"), &number.to_string(), RECORDS_MAX).await },
        )
    });
    let mut done = 0;
    for change in changes.collect::<Vec<_>>() {
        done += usize::from(change.await.unwrap());
    }

    assert_eq!(done, 1);
    assert_ne!(records(&room, KIND).await, [pair("a", "old")]);
}

super::over_every_store! {
    records_are_listed_by_name,
    a_record_replaces_the_expected_one,
    no_more_records_are_created_than_the_limit,
    deleting_a_record_frees_its_slot,
    kinds_are_separate,
    one_of_several_concurrent_changes_succeeds,
}
