use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use threadkeep_domain::{Operation, Refusal, ThreadPolicy, keyed_values_of_any_key};
use threadkeep_service::{Basis, Copies, RequestTimes, Saved, ServiceError, ThreadService};

use tokio::time::Instant;

use super::room::{Room, Subject, delete, json, push, set};

struct Client {
    copies: Copies,
    thread: Subject,
}

const UNMERGED: Saved = Saved {
    basis: Basis::Latest,
    conflicts: 0,
};
const MERGED: Saved = Saved {
    basis: Basis::Earlier,
    conflicts: 0,
};
const WITHOUT_BASIS: Saved = Saved {
    basis: Basis::Nothing,
    conflicts: 0,
};

impl Client {
    fn of(thread: &Subject) -> Self {
        let store = Arc::clone(&thread.store);
        let service = ThreadService::new(store, thread.policy, Duration::from_secs(30));
        Self {
            copies: Copies::new(&service, Duration::from_secs(30)),
            thread: thread.clone(),
        }
    }

    async fn restore(&self) -> Option<String> {
        let restored = self.copies.restore(&self.thread.id, RequestTimes::now());
        let copy = restored.await.unwrap().whole?;
        Some(String::from_utf8(copy.state.to_vec()).unwrap())
    }

    async fn try_save(&self, state: &str, metadata: Option<&str>) -> Result<Saved, Refusal> {
        let state = keyed_values_of_any_key(state, u32::MAX).unwrap();
        let saved = self.copies.save(
            &self.thread.id,
            state,
            metadata.map(json),
            RequestTimes::now(),
        );
        refused(saved.await)
    }

    async fn save(&self, state: &str) -> Saved {
        self.try_save(state, None).await.unwrap()
    }

    async fn merge(&self, operations: &[Operation]) -> Result<(), Refusal> {
        let merged = self
            .copies
            .merge(&self.thread.id, operations, None, RequestTimes::now());
        refused(merged.await).map(drop)
    }

    async fn destroy(&self) {
        self.copies
            .destroy(&self.thread.id, RequestTimes::now())
            .await
            .unwrap();
    }
}

fn refused<T>(answer: Result<T, ServiceError>) -> Result<T, Refusal> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(ServiceError::Refused(refusal)) => Err(refusal),
        Err(error) => panic!("{error}"),
    }
}

async fn state(thread: &Subject) -> String {
    thread.state().await.unwrap()
}

async fn a_save_writes_what_its_client_changed(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[set("a", "1"), set("b", "2"), set("c", "[1]")])
        .await;
    let client = Client::of(&thread);

    let restored = client.restore().await;
    let saved = client.save(r#"{"b":3,"c":[1,2],"d":{}}"#).await;

    assert_eq!(restored.unwrap(), r#"{"a":1,"b":2,"c":[1]}"#);
    assert_eq!(saved, UNMERGED);
    assert_eq!(state(&thread).await, r#"{"b":3,"c":[1,2],"d":{}}"#);
}

async fn a_save_keeps_changes_by_others(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[set("a", "1"), set("b", "2"), set("c", "3"), set("d", "4")])
        .await;
    let client = Client::of(&thread);
    client.restore().await;

    thread
        .merge(&[set("a", "10"), delete("b"), set("new", "5"), set("c", "30")])
        .await;
    let saved = client.save(r#"{"a":1,"b":2,"c":33}"#).await;

    assert_eq!(saved, MERGED);
    assert_eq!(state(&thread).await, r#"{"a":10,"c":33,"new":5}"#);
}

async fn two_clients_that_append_to_an_array_keep_every_element(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("m", "[1,2]")]).await;
    let (one, other) = (Client::of(&thread), Client::of(&thread));
    one.restore().await;
    other.restore().await;

    one.save(r#"{"m":[1,2,"one"]}"#).await;
    other.save(r#"{"m":[2,"other"]}"#).await;

    assert_eq!(state(&thread).await, r#"{"m":[2,"one","other"]}"#);
}

async fn two_clients_that_create_a_thread_keep_both_states(room: Room) {
    let thread = room.subject();
    let (one, other) = (Client::of(&thread), Client::of(&thread));
    assert_eq!(one.restore().await, None);
    assert_eq!(other.restore().await, None);

    assert_eq!(one.save(r#"{"a":1,"m":["one"]}"#).await, UNMERGED);
    assert_eq!(other.save(r#"{"b":2,"m":["other"]}"#).await, MERGED);

    assert_eq!(state(&thread).await, r#"{"a":1,"b":2,"m":["one","other"]}"#);
}

async fn two_saves_of_one_copy_keep_both_changes(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("m", "[1]")]).await;
    let client = Client::of(&thread);
    client.restore().await;
    client.restore().await;

    client.save(r#"{"m":[1,2],"a":1}"#).await;
    client.save(r#"{"m":[1,3],"b":2}"#).await;

    assert_eq!(state(&thread).await, r#"{"a":1,"b":2,"m":[1,2,3]}"#);
}

async fn a_save_without_a_restore_deletes_nothing(room: Room) {
    let thread = room.subject();
    thread
        .merge(&[set("a", "1.0"), set("b", "2"), set("m", "[1,2]")])
        .await;

    let saved = Client::of(&thread).save(r#"{"a":1,"c":3,"m":[9]}"#).await;
    let empty = Client::of(&thread).save("{}").await;

    assert_eq!([saved, empty], [WITHOUT_BASIS; 2]);
    assert_eq!(state(&thread).await, r#"{"a":1.0,"b":2,"c":3,"m":[1,2,9]}"#);
}

async fn unchanged_values_keep_their_text(room: Room) {
    let thread = room.subject();
    let exact = r#"[9007199254740993,1.0,1e400,"\u0061",{"b":1,"2":[],"b":3}]"#;
    thread.merge(&[set("k", exact), set("l", exact)]).await;
    let client = Client::of(&thread);
    client.restore().await;

    let read = r#"[9007199254740992,1,null,"a",{"2":[],"b":3}]"#;
    let longer = read.replace("}]", "},true]");
    client
        .save(&format!(r#"{{"k":{read},"l":{longer}}}"#))
        .await;

    let expected = format!(r#"{{"k":{exact},"l":{}}}"#, exact.replace("}]", "},true]"));
    assert_eq!(state(&thread).await, expected);
}

async fn a_save_without_changes_writes_nothing(room: Room) {
    let thread = room.subject();
    let before = thread.merge(&[set("a", "[1.0]")]).await.stamp;
    let client = Client::of(&thread);
    client.restore().await;

    client.save(r#"{"a":[1]}"#).await;
    let absent = room.subject();
    Client::of(&absent).save("{}").await;

    assert_eq!(thread.thread().await.unwrap().stamp, before);
    assert!(!absent.exists().await);
}

async fn metadata_is_replaced_or_unchanged(room: Room) {
    let thread = room.subject();
    let client = Client::of(&thread);
    let large = format!(r#"{{"large":"{}"}}"#, "x".repeat(20_000));
    let metadata = async || thread.thread().await.unwrap().metadata.as_str().to_owned();

    client.try_save(r#"{"a":1}"#, Some(&large)).await.unwrap();
    assert_eq!(metadata().await, large);
    client.save(r#"{"a":2}"#).await;
    assert_eq!(metadata().await, large);
    let id = &thread.id;
    let only = client
        .copies
        .merge(id, &[], Some(json("{}")), RequestTimes::now())
        .await;
    assert_eq!(only.unwrap().stamp.version, 3);
    assert_eq!(metadata().await, "{}");
}

async fn a_save_past_the_limit_is_refused_and_changes_nothing(room: Room) {
    let thread = room.subject_under(ThreadPolicy {
        max_bytes: 20,
        ..ThreadPolicy::THREAD
    });
    thread.merge(&[set("a", "1")]).await;
    let client = Client::of(&thread);
    client.restore().await;

    let refused = client
        .try_save(r#"{"a":2,"b":"0123456789"}"#, None)
        .await
        .unwrap_err();

    assert!(matches!(refused, Refusal::StateTooLarge { .. }));
    assert_eq!(state(&thread).await, r#"{"a":1}"#);
}

async fn a_save_after_expiry_writes_the_whole_state(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "1"), set("b", "2")]).await;
    let client = Client::of(&thread);
    client.restore().await;
    room.advance(thread.policy.ttl);

    let saved = client.save(r#"{"a":1,"b":3}"#).await;

    assert_eq!(saved.basis, Basis::Nothing);
    assert_eq!(state(&thread).await, r#"{"a":1,"b":3}"#);
}

async fn a_copy_of_an_earlier_life_is_no_basis(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "1"), set("m", "[1]")]).await;
    let client = Client::of(&thread);
    client.restore().await;
    room.advance(thread.policy.ttl);
    thread.merge(&[set("b", "2"), set("m", "[5]")]).await;

    let saved = client.save(r#"{"a":1,"m":[1,2]}"#).await;

    assert_eq!(saved.basis, Basis::Nothing);
    assert_eq!(state(&thread).await, r#"{"a":1,"b":2,"m":[5,1,2]}"#);
}

async fn a_destroyed_thread_refuses_only_clients_that_have_a_copy(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "1")]).await;
    let [late, restoring, stranger, destroyer] = [(); 4].map(|()| Client::of(&thread));
    late.restore().await;
    restoring.restore().await;
    destroyer.destroy().await;

    assert_eq!(
        late.try_save(r#"{"a":2}"#, None).await,
        Err(Refusal::Destroyed)
    );
    assert_eq!(late.merge(&[set("a", "3")]).await, Err(Refusal::Destroyed));
    assert_eq!(restoring.restore().await, None);
    assert_eq!(restoring.save(r#"{"b":1}"#).await.basis, Basis::Latest);
    stranger.merge(&[push("m", "1")]).await.unwrap();
    destroyer.merge(&[push("m", "2")]).await.unwrap();
    assert_eq!(late.merge(&[set("a", "4")]).await, Err(Refusal::Destroyed));
    assert_eq!(
        late.try_save(r#"{"a":5}"#, None).await,
        Err(Refusal::Destroyed)
    );

    assert_eq!(state(&thread).await, r#"{"b":1,"m":[1,2]}"#);
    late.restore().await;
    late.save(r#"{"b":1,"m":[1,2,3]}"#).await;
    assert_eq!(state(&thread).await, r#"{"b":1,"m":[1,2,3]}"#);
}

async fn a_client_that_destroyed_a_thread_can_write_but_not_save_its_old_state(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "1")]).await;
    let client = Client::of(&thread);
    client.restore().await;
    client.destroy().await;

    let late = client.try_save(r#"{"a":1,"b":2}"#, None).await;
    client.merge(&[set("c", "3")]).await.unwrap();
    let later = client.try_save(r#"{"a":1,"b":2}"#, None).await;

    assert_eq!(late, Err(Refusal::Destroyed));
    assert_eq!(later, Err(Refusal::Destroyed));
    assert_eq!(state(&thread).await, r#"{"c":3}"#);
    assert_eq!(client.restore().await.unwrap(), r#"{"c":3}"#);
    client.save("{}").await;
    assert_eq!(state(&thread).await, "{}");
}

async fn a_client_that_restores_after_its_destroy_saves_a_new_thread(room: Room) {
    let thread = room.subject();
    let client = Client::of(&thread);
    client.save(r#"{"a":[1,2]}"#).await;
    client.restore().await;
    client.destroy().await;

    let destroyed = client.restore().await;
    client.save(r#"{"b":1}"#).await;

    assert_eq!(destroyed, None);
    assert_eq!(state(&thread).await, r#"{"b":1}"#);
}

async fn destroying_an_absent_thread_is_no_error(room: Room) {
    let client = Client::of(&room.subject());

    client.destroy().await;
    client.destroy().await;
    client.merge(&[set("a", "1")]).await.unwrap();

    assert_eq!(client.restore().await.unwrap(), r#"{"a":1}"#);
}

async fn concurrent_saves_lose_nothing(room: Room) {
    const CLIENTS: usize = 6;
    const SAVES: usize = 12;
    let thread = room.subject();
    let clients = (0..CLIENTS).map(async |number| {
        let client = Client::of(&thread);
        let mut conflicts = 0;
        for save in 0..SAVES {
            let restored = client.restore().await.unwrap_or_else(|| "{}".into());
            let mut state: serde_json::Value = serde_json::from_str(&restored).unwrap();
            tokio::task::yield_now().await;
            let element = serde_json::json!([number, save]);
            match &mut state["m"] {
                serde_json::Value::Array(list) => list.push(element),
                new => *new = serde_json::json!([element]),
            }
            state[format!("{number} {save}")] = serde_json::json!(save);
            conflicts += client.save(&state.to_string()).await.conflicts;
        }
        conflicts
    });

    join_all(clients).await;

    let state: serde_json::Value = serde_json::from_str(&state(&thread).await).unwrap();
    let list = state["m"].as_array().unwrap();
    assert_eq!(list.len(), CLIENTS * SAVES);
    assert_eq!(state.as_object().unwrap().len(), 1 + CLIENTS * SAVES);
    for number in 0..CLIENTS {
        let own = list.iter().filter(|element| element[0] == number);
        let saves: Vec<_> = own.map(|element| element[1].as_u64().unwrap()).collect();
        assert_eq!(saves, (0..SAVES as u64).collect::<Vec<_>>());
    }
}

async fn a_restore_answered_too_late_is_no_basis(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "1"), set("b", "2")]).await;
    let client = Client::of(&thread);
    let long_ago = Instant::now() - Duration::from_secs(31);
    let times = RequestTimes {
        sent_after: long_ago,
        ..RequestTimes::now()
    };

    client.copies.restore(&thread.id, times).await.unwrap();
    let saved = client.save(r#"{"b":3}"#).await;
    assert_eq!(saved, WITHOUT_BASIS);
    assert_eq!(state(&thread).await, r#"{"a":1,"b":3}"#);
}

async fn a_client_with_several_copies_undoes_nothing(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("m", "[1]"), set("n", "1")]).await;
    let client = Client::of(&thread);
    client.restore().await;
    thread.merge(&[push("m", "2"), set("n", "2")]).await;
    client.restore().await;
    thread.merge(&[set("o", "3")]).await;
    client.restore().await;

    let slow = client.save(r#"{"m":[1,"slow"],"n":1}"#).await;
    let quick = client.save(r#"{"m":[1,2],"n":3,"o":3}"#).await;

    assert_eq!((slow, quick), (MERGED, MERGED));
    assert_eq!(state(&thread).await, r#"{"m":[1,2,"slow"],"n":3,"o":3}"#);
}

async fn a_save_after_a_late_restore_deletes_nothing(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "1"), set("m", "[1]")]).await;
    let client = Client::of(&thread);
    let long_ago = Instant::now() - Duration::from_secs(31);
    let times = RequestTimes {
        sent_after: long_ago,
        ..RequestTimes::now()
    };
    client.copies.restore(&thread.id, times).await.unwrap();
    client.restore().await;

    let saved = client.save(r#"{"m":["new"]}"#).await;
    assert_eq!(saved, WITHOUT_BASIS);
    assert_eq!(state(&thread).await, r#"{"a":1,"m":[1,"new"]}"#);
    client.restore().await;
    client.save(r#"{"b":2}"#).await;
    assert_eq!(state(&thread).await, r#"{"b":2}"#);
}

async fn an_unconfirmed_restore_is_a_basis_until_its_client_times_out(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "1"), set("b", "2")]).await;
    let client = Client::of(&thread);
    let saved_at = async |read: Instant, state: &str| {
        let times = RequestTimes {
            read,
            sent_after: read,
        };
        let state = keyed_values_of_any_key(state, u32::MAX).unwrap();
        let saved = client.copies.save(&thread.id, state, None, times);
        saved.await.unwrap()
    };
    let later = Instant::now() + Duration::from_secs(31);

    client.restore().await;
    let unconfirmed = saved_at(later, r#"{"b":3}"#).await;
    let restored = client.copies.restore(&thread.id, RequestTimes::now()).await;
    client.copies.received(restored.unwrap().receipt.unwrap());
    let confirmed = saved_at(later, r#"{"b":4}"#).await;

    assert_eq!((unconfirmed, confirmed), (WITHOUT_BASIS, UNMERGED));
    assert_eq!(state(&thread).await, r#"{"b":4}"#);
}

async fn unchanged_elements_keep_their_text(room: Room) {
    let thread = room.subject();
    let list = "[1.0,2.0,9007199254740993,4.0]";
    thread
        .merge(&["a", "b", "c"].map(|key| set(key, list)))
        .await;
    let (informed, blind) = (Client::of(&thread), Client::of(&thread));

    informed.restore().await;
    informed
        .save(
            r#"{"a":[2,9007199254740992,4,5],"b":[1,7,9007199254740992,4],"c":[1,9007199254740992]}"#,
        )
        .await;
    let saved = state(&thread).await;
    blind
        .save(r#"{"a":[2,9007199254740992,4,5,6],"b":[7,9007199254740992,4,8]}"#)
        .await;

    let big = "9007199254740993";
    assert_eq!(
        saved,
        format!(r#"{{"a":[2.0,{big},4.0,5],"b":[1.0,7,{big},4.0],"c":[1.0,9007199254740992]}}"#)
    );
    assert_eq!(
        state(&thread).await,
        format!(r#"{{"a":[2.0,{big},4.0,5,6],"b":[7,{big},4.0,8],"c":[1.0,9007199254740992]}}"#)
    );
}

async fn adding_many_elements_is_fast(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("a", "[0.0]")]).await;
    let (one, other) = (Client::of(&thread), Client::of(&thread));
    one.restore().await;
    other.restore().await;
    let many = vec!["1"; 200_000].join(",");

    one.save(r#"{"a":[0,7]}"#).await;
    let start = Instant::now();
    let saved = other.save(&format!(r#"{{"a":[0,{many}]}}"#)).await;
    let elapsed = start.elapsed();

    assert_eq!(saved, MERGED);
    assert_eq!(state(&thread).await, format!(r#"{{"a":[0.0,7,{many}]}}"#));
    // comparing every pair of elements would take hours
    assert!(elapsed < Duration::from_secs(100), "{elapsed:?}");
}

over_every_store! {
    a_save_writes_what_its_client_changed,
    a_save_keeps_changes_by_others,
    two_clients_that_append_to_an_array_keep_every_element,
    two_clients_that_create_a_thread_keep_both_states,
    two_saves_of_one_copy_keep_both_changes,
    a_save_without_a_restore_deletes_nothing,
    unchanged_values_keep_their_text,
    a_save_without_changes_writes_nothing,
    metadata_is_replaced_or_unchanged,
    a_save_past_the_limit_is_refused_and_changes_nothing,
    a_save_after_expiry_writes_the_whole_state,
    a_copy_of_an_earlier_life_is_no_basis,
    a_destroyed_thread_refuses_only_clients_that_have_a_copy,
    a_client_that_destroyed_a_thread_can_write_but_not_save_its_old_state,
    a_client_that_restores_after_its_destroy_saves_a_new_thread,
    destroying_an_absent_thread_is_no_error,
    concurrent_saves_lose_nothing,
    unchanged_elements_keep_their_text,
    adding_many_elements_is_fast,
    a_restore_answered_too_late_is_no_basis,
    a_client_with_several_copies_undoes_nothing,
    a_save_after_a_late_restore_deletes_nothing,
    an_unconfirmed_restore_is_a_basis_until_its_client_times_out,
}
