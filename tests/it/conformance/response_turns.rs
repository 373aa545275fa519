use std::time::Duration;

use threadkeep_domain::{Access, Refusal, Release, TurnToken};
use threadkeep_store::{Begun, EndResponse, Floor};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::response_room::{LEASE, Response, bytes, increment_n, living, request, take};
use super::room::{Room, Subject, refused};
use super::rotations::rotate;
use crate::support::until;

async fn end_of_turn(room: &Room, thread: &Subject) -> u64 {
    let turn = room.backend.get_turn(&thread.id, Access::All).await;
    turn.unwrap().held.unwrap().ends_ms
}

async fn number_of_turn(room: &Room, thread: &Subject) -> u32 {
    let turn = room.backend.get_turn(&thread.id, Access::All).await;
    turn.unwrap().number
}

async fn the_turns_of_responses_are_numbered(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let mut numbers = Vec::new();

    let token = response.begin_new().await;
    response.begin(token).await;
    response.keep(token).await.unwrap();
    response.note(token, 1, "entry").await.unwrap();
    numbers.push(number_of_turn(&room, &thread).await);
    let (token, _) = response.take_over().await;
    numbers.push(number_of_turn(&room, &thread).await);
    response.end(Some(token), 1, "answer").await.unwrap();
    numbers.push(number_of_turn(&room, &thread).await);
    let client = take(&room, &thread, false).await.unwrap();
    let lent = Response::new(&room, &scope).with(Floor::Lent(client.token));
    lent.begin_new().await;
    numbers.push(number_of_turn(&room, &thread).await);

    assert_eq!(numbers, [1, 2, 2, 3]);
    assert_eq!(client.number, 3);
}

async fn a_thread_has_one_response_at_a_time(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let (first, second) = (Response::new(&room, &scope), Response::new(&room, &scope));
    let beside = Response::new(&room, &scope).with(Floor::None);
    let token = first.begin_new().await;

    let locked = second.begin(TurnToken::random()).await;
    beside.begin_new().await;
    first.end(Some(token), 0, "answer").await.unwrap();
    second.begin_new().await;

    let Begun::Locked { by, left } = locked else {
        panic!("{locked:?}");
    };
    assert_eq!(by, Some(first.id));
    assert!(left > Duration::ZERO && left <= LEASE, "{left:?}");
}

async fn a_response_begins_only_with_its_request(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    for floor in [Floor::Taken, Floor::None] {
        let response = Response::new(&room, &scope).with(floor);
        let token = TurnToken::random();

        assert_eq!(response.begin_without_request(token).await, Begun::Free);
        let view = room.backend.get_response(&response.id).await.unwrap();
        assert_eq!(view, None);
        assert_eq!(response.begin(token).await, Begun::New);
        let again = response.begin_without_request(token).await;
        assert!(matches!(again, Begun::Resumed(_)), "{again:?}");
    }
    let second = Response::new(&room, &scope);
    let locked = second.begin_without_request(TurnToken::random()).await;
    assert!(matches!(locked, Begun::Locked { .. }), "{locked:?}");
}

async fn a_clients_turn_keeps_responses_out_unless_it_is_lent(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let client = take(&room, &thread, false).await.unwrap();

    let locked = response.begin(TurnToken::random()).await;
    let lent = Response::new(&room, &scope).with(Floor::Lent(client.token));
    let token = lent.begin_new().await;
    let wrong = Response::new(&room, &scope).with(Floor::Lent(TurnToken::random()));
    let wrong = wrong.begin_as(TurnToken::random(), &request()).await;
    lent.note_with(token, 1, "entry", &increment_n())
        .await
        .unwrap();
    lent.end(Some(token), 1, "answer").await.unwrap();

    assert!(
        matches!(locked, Begun::Locked { by: None, .. }),
        "{locked:?}"
    );
    assert_eq!(wrong, Err(Refusal::TurnLost));
    // the client still holds the turn
    assert_eq!(end_of_turn(&room, &thread).await, client.ends_ms);
}

async fn responses_under_one_lent_turn_wait_for_each_other(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let client = take(&room, &thread, false).await.unwrap();
    let lent = || Response::new(&room, &scope).with(Floor::Lent(client.token));
    let (first, second, own) = (lent(), lent(), Response::new(&room, &scope));
    let token = first.begin_new().await;

    let beside = second.begin(TurnToken::random()).await;
    room.backend
        .end_turn(&thread.id, Access::All, client.token, Release::Complete)
        .await
        .unwrap();
    let after = own.begin(TurnToken::random()).await;

    for locked in [beside, after] {
        let is_locked = matches!(&locked, Begun::Locked { by, .. } if *by == Some(first.id));
        assert!(is_locked, "{locked:?}");
    }
    first.end(Some(token), 0, "answer").await.unwrap();
    own.begin_new().await;
}

async fn a_lent_turn_that_is_lost_stops_the_driver(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let client = take(&room, &thread, false).await.unwrap();
    let response = Response::new(&room, &scope).with(Floor::Lent(client.token));
    let token = response.begin_new().await;

    room.advance(LEASE);
    response.note(token, 1, "nobody else has it").await.unwrap();
    take(&room, &thread, false).await.unwrap();

    let late = response.note_with(token, 2, "late", &increment_n()).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(
        response.note(token, 2, "late").await,
        Err(Refusal::TurnLost)
    );
    let ended = response.end_with(Some(token), 1, "late", None).await;
    assert_eq!(ended, Err(Refusal::TurnLost));
    assert_eq!(scope.value("n").await, None);
}

async fn a_later_turn_of_a_client_stops_a_driver(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    room.advance(LEASE);
    let client = take(&room, &thread, false).await.unwrap();

    let late = response.note_with(token, 1, "late", &increment_n()).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(
        response.note(token, 1, "late").await,
        Err(Refusal::TurnLost)
    );
    assert_eq!(response.keep(token).await, Err(Refusal::TurnLost));
    assert_eq!(scope.value("n").await, None);
    let resumed = response.begin(TurnToken::random()).await;
    assert!(
        matches!(resumed, Begun::Locked { by: None, .. }),
        "{resumed:?}"
    );
    // the client lends its turn to a second response, which cannot begin until the open response has ended
    let next = Response::new(&room, &scope).with(Floor::Lent(client.token));
    assert_eq!(
        next.begin(TurnToken::random()).await,
        Begun::Behind(response.id)
    );
    response.end(None, 0, "closed").await.unwrap();
    next.begin_new().await;
    assert_eq!(end_of_turn(&room, &thread).await, client.ends_ms);
}

async fn an_open_response_must_end_before_the_next_begins(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let (first, second) = (Response::new(&room, &scope), Response::new(&room, &scope));
    first.begin_new().await;
    room.advance(LEASE);

    let behind = second.begin(TurnToken::random()).await;
    first.end(None, 0, "closed").await.unwrap();
    second.begin_new().await;

    assert_eq!(behind, Begun::Behind(first.id));
    assert_eq!(
        first.begin(TurnToken::random()).await,
        Begun::Ended(bytes("closed"))
    );
}

async fn an_ended_response_of_a_rotated_thread_blocks_no_other(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    let moved = rotate(&room, &thread).await;
    let new_scope = room.scope_of(&moved);
    let next = Response::new(&room, &new_scope);
    let locked = next.begin(TurnToken::random()).await;
    let late = response.note(token, 1, "late").await;
    response.end_with(None, 0, "closed", None).await.unwrap();

    assert!(
        matches!(locked, Begun::Locked { by: Some(by), .. } if by == response.id),
        "{locked:?}"
    );
    assert_eq!(late, Err(Refusal::Destroyed));
    next.begin_new().await;
}

async fn a_lost_turn_can_be_released(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    room.advance(LEASE);
    let client = take(&room, &thread, false).await.unwrap();
    let is_driven = async || {
        let view = room.backend.get_response(&response.id).await.unwrap();
        view.unwrap().driven.is_some()
    };
    let release = async |token| {
        let backend = &room.backend;
        refused(
            backend
                .keep_response(&response.id, &scope.id, token, Duration::ZERO)
                .await,
        )
    };
    let again = Response::new(&room, &scope).with(Floor::Lent(client.token));
    assert_eq!(
        again.begin(TurnToken::random()).await,
        Begun::Behind(response.id)
    );

    assert_eq!(release(token).await, Ok(()));
    assert!(!is_driven().await);
    assert_eq!(release(TurnToken::random()).await, Err(Refusal::TurnLost));
    assert_eq!(end_of_turn(&room, &thread).await, client.ends_ms);
}

async fn a_withdrawn_response_leaves_nothing(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    let withdraw = async |token| {
        let end = EndResponse {
            token: Some(token),
            entries: 0,
            events: (0, &[]),
            answer: &bytes("{}"),
            kept: Duration::ZERO,
            events_kept: Duration::ZERO,
        };
        let ended = room
            .backend
            .end_response(&response.id, &scope.id, &end, None);
        refused(ended.await)
    };

    let by_another = withdraw(TurnToken::random()).await;
    withdraw(token).await.unwrap();

    assert_eq!(by_another, Err(Refusal::TurnLost));
    assert!(response.view().await.is_none());
    let next = Response::new(&room, &scope);
    let token = next.begin_new().await;
    next.end(Some(token), 0, "answer").await.unwrap();
    // a response with a journal entry cannot be withdrawn
    let token = response.begin_new().await;
    response.note(token, 1, "entry").await.unwrap();
    assert_eq!(withdraw(token).await, Err(Refusal::Changed));
    assert!(response.view().await.is_some());
}

async fn the_end_wakes_callers_that_wait_for_the_turn(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let ended = Mutex::new(room.backend.ended_turns());

    // retry, because the end of a turn is reported only once the subscription is active
    let is_woken = async || {
        let response = Response::new(&room, &scope);
        let token = response.begin_new().await;
        take(&room, &thread, true).await.unwrap_err();
        response.end(Some(token), 0, "answer").await.unwrap();
        let mut ended = ended.lock().await;
        let woken = timeout(Duration::from_millis(200), ended.recv()).await;
        woken.is_ok_and(|woken| woken.unwrap() == thread.id)
    };
    until(is_woken).await;
}

super::over_every_store_and_confirmed!(
    the_turns_of_responses_are_numbered,
    a_thread_has_one_response_at_a_time,
    a_response_begins_only_with_its_request,
    a_clients_turn_keeps_responses_out_unless_it_is_lent,
    responses_under_one_lent_turn_wait_for_each_other,
    a_lent_turn_that_is_lost_stops_the_driver,
    a_later_turn_of_a_client_stops_a_driver,
    an_open_response_must_end_before_the_next_begins,
    an_ended_response_of_a_rotated_thread_blocks_no_other,
    a_lost_turn_can_be_released,
    a_withdrawn_response_leaves_nothing,
    the_end_wakes_callers_that_wait_for_the_turn,
);
