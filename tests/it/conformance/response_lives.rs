use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{
    Access, Conditions, Refusal, ResponseId, Retention, ThreadPolicy, TurnToken,
};
use threadkeep_store::{Begun, Floor, Rotate};

use super::response_room::{
    ANSWER_RETENTION, DUE_AFTER, LEASE, RETENTION, Response, SECOND, bytes, increment_n, living,
    owned, request, take,
};
use super::room::{Room, Subject, refused, set};

async fn heartbeats_keep_the_driver_the_turn_and_the_thread(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    response.append_events(token, 0, &["a"]).await.unwrap();
    let steps = ThreadPolicy::THREAD.ttl.as_secs() / 10 + 1;
    for _ in 0..steps {
        room.advance(10 * SECOND);
        response.keep(token).await.unwrap();
    }

    response.append_events(token, 1, &["b"]).await.unwrap();
    let (events, _) = response.events(0).await.unwrap();
    assert_eq!(events, ["a", "b"]);
    let other = response.begin(TurnToken::random()).await;
    assert!(matches!(other, Begun::Running { .. }), "{other:?}");
    let client = take(&room, &thread, false).await;
    assert!(
        matches!(client, Err(Refusal::TurnTaken { .. })),
        "{client:?}"
    );
    assert!(thread.exists().await);
}

async fn a_refused_heartbeat_does_not_extend_the_thread(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let old = response.begin_new().await;
    response.take_over().await;
    room.advance(ThreadPolicy::THREAD.ttl - 60 * SECOND);

    assert_eq!(response.keep(old).await, Err(Refusal::TurnLost));

    room.advance(60 * SECOND);
    assert!(!thread.exists().await);
}

async fn a_rotated_thread_ends_its_response_under_the_new_id(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    response.note(token, 1, "entry").await.unwrap();
    let conditions = Conditions {
        access: Access::All,
        precondition: None,
        turn: Some(token),
        idempotency: None,
    };
    let rotate = Rotate {
        conditions,
        tombstone: ThreadPolicy::THREAD.tombstone,
    };

    let rotated = refused(room.store.rotate(&thread.id, &rotate).await).unwrap();
    let late = response.note(token, 2, "late").await;
    let to = Subject {
        id: rotated.id,
        ..Subject::of(Arc::clone(&room.store))
    };
    let scope = room.scope_of(&to);
    let moved = Response {
        scope: &scope,
        ..response
    };
    let next = Response::new(&room, &scope);
    let locked = next.begin(TurnToken::random()).await;
    moved.end(None, 1, "closed").await.unwrap();
    next.begin_new().await;

    assert_eq!(late, Err(Refusal::Destroyed));
    assert!(matches!(locked, Begun::Locked { .. }), "{locked:?}");
    assert_eq!(moved.history().await, 1);
}

async fn open_responses_are_found_when_they_are_due(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let beside = || Response::new(&room, &scope).with(Floor::None);
    let (open, ended, lost) = (beside(), beside(), beside());
    let bucket = u16::from(open.id.bucket());
    let due = async || {
        let due = room.backend.due_responses(&[bucket], 100).await.unwrap();
        let is_ours = |id: &&ResponseId| [open.id, ended.id, lost.id].contains(id);
        due.iter().filter(is_ours).copied().collect::<Vec<_>>()
    };
    let token = ended.begin_new().await;
    ended.end(Some(token), 0, "answer").await.unwrap();
    lost.begin_new().await;
    room.advance(RETENTION - DUE_AFTER);
    let token = open.begin_new().await;
    room.advance(DUE_AFTER - SECOND);
    open.note(token, 1, "entry").await.unwrap();
    room.advance(DUE_AFTER - SECOND);

    let before = due().await;
    room.advance(SECOND);
    let after = due().await;
    open.keep(token).await.unwrap();
    let after_keep = due().await;

    // the abandoned response `lost` is deleted
    assert_eq!((before, after, after_keep), (vec![], vec![open.id], vec![]));
    assert_eq!(lost.view().await, None);
}

async fn a_response_belongs_to_one_life_of_its_thread(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    thread.destroy().await;
    for _ in 0..2 {
        let late = response.note_with(token, 1, "late", &increment_n()).await;
        assert_eq!(late, Err(Refusal::Destroyed));
        assert_eq!(
            response.note(token, 1, "late").await,
            Err(Refusal::Destroyed)
        );
        assert_eq!(response.keep(token).await, Err(Refusal::Destroyed));
        let ended = response.end(Some(token), 0, "answer").await;
        assert_eq!(ended, Err(Refusal::Destroyed));
        room.advance(ThreadPolicy::THREAD.tombstone);
        thread.merge(&[set("k", "2")]).await;
    }
    room.advance(LEASE);
    let resumed = response.begin_as(TurnToken::random(), &request()).await;
    assert_eq!(resumed, Err(Refusal::Destroyed));

    let ended = response.end_with(Some(token), 0, "destroyed", None).await;
    assert!(!ended.unwrap().replayed);
    assert_eq!(response.answer().await, Some(bytes("destroyed")));
    assert_eq!(response.history().await, 0);
}

async fn a_response_needs_its_thread(room: Room) {
    let thread = room.subject();
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);

    let begun = response.begin_as(TurnToken::random(), &request()).await;

    assert_eq!(begun, Err(Refusal::NoThread));
    assert_eq!(response.view().await, None);
}

async fn responses_expire_after_their_retention(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let (lost, ended) = (Response::new(&room, &scope), Response::new(&room, &scope));
    let token = lost.begin_new().await;
    room.advance(RETENTION - SECOND);
    lost.note(token, 1, "entry").await.unwrap();
    room.advance(RETENTION - SECOND);
    assert!(lost.view().await.unwrap().driven.is_none());

    room.advance(SECOND);
    assert_eq!(lost.view().await, None);
    assert_eq!(lost.note(token, 2, "late").await, Err(Refusal::TurnLost));
    let token = ended.begin_new().await;
    ended.end(Some(token), 0, "answer").await.unwrap();
    room.advance(ANSWER_RETENTION - SECOND);
    // the thread has expired meanwhile
    assert!(!thread.exists().await);
    assert_eq!(ended.answer().await, Some(bytes("answer")));
    room.advance(SECOND);
    assert_eq!(ended.view().await, None);
}

async fn a_response_is_deleted_once_it_has_ended(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let delete = async || room.backend.delete_response(&response.id).await.unwrap();
    assert!(!delete().await);
    let token = response.begin_new().await;

    let while_it_runs = delete().await;
    response.end(Some(token), 0, "answer").await.unwrap();

    assert!(!while_it_runs);
    assert!(delete().await);
    assert!(!delete().await);
    assert_eq!(response.view().await, None);
    assert_eq!(response.events(0).await, None);
    assert_eq!(response.history().await, 1);
}

async fn responses_are_erased_with_their_owner(room: Room) {
    let (owner, thread) = owned(&room).await;
    let scope = room.scope_of(&thread);
    let many: Vec<_> = (0..150)
        .map(|_| Response::new(&room, &scope).with(Floor::None))
        .collect();
    for response in &many {
        let token = response.begin_new().await;
        response.append_events(token, 0, &["event"]).await.unwrap();
        response
            .end_with(Some(token), 0, "answer", None)
            .await
            .unwrap();
    }
    let open = Response::new(&room, &scope);
    let token = open.begin_new().await;

    let erase = async || room.backend.erase_owned(owner.tag(), SECOND).await.unwrap();
    let mut threads = 0;
    while let Some(erased) = erase().await {
        threads += erased.threads;
    }

    assert_eq!(threads, 1);
    for response in many.iter().chain([&open]) {
        assert_eq!(response.view().await, None);
        assert_eq!(response.events(0).await, None);
    }
    assert!(open.note(token, 1, "late").await.is_err());
}

async fn responses_are_erased_even_without_the_archive_of_their_thread(room: Room) {
    let retention = Retention {
        archive: Duration::ZERO,
        ..Retention::DEFAULT
    };
    let room = room.keeping(retention).await;
    let (owner, thread) = owned(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    response.end(Some(token), 0, "answer").await.unwrap();
    thread.destroy().await;
    room.advance(24 * 3600 * SECOND);
    assert_eq!(response.answer().await, Some(bytes("answer")));

    let erase = async || room.backend.erase_owned(owner.tag(), SECOND).await.unwrap();
    while erase().await.is_some() {}

    assert_eq!(response.view().await, None);
}

super::over_every_store_and_confirmed!(
    heartbeats_keep_the_driver_the_turn_and_the_thread,
    a_refused_heartbeat_does_not_extend_the_thread,
    a_rotated_thread_ends_its_response_under_the_new_id,
    open_responses_are_found_when_they_are_due,
    a_response_belongs_to_one_life_of_its_thread,
    a_response_needs_its_thread,
    responses_expire_after_their_retention,
    a_response_is_deleted_once_it_has_ended,
    responses_are_erased_with_their_owner,
    responses_are_erased_even_without_the_archive_of_their_thread,
);
