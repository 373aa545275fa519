use std::time::Duration;

use threadkeep_domain::{Access, Refusal, TurnToken};
use threadkeep_store::{Begun, EndResponse, Floor};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::response_room::{LEASE, Turn, bytes, living, one, request, take};
use super::room::{Room, Subject, refused};
use super::rotations::rotate;
use crate::support::until;

async fn end_of_turn(room: &Room, thread: &Subject) -> u64 {
    let held = room.backend.get_turn(&thread.id, Access::All).await;
    held.unwrap().unwrap().ends_ms
}

async fn a_thread_has_one_response_at_a_time(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let (first, second) = (Turn::new(&room, &place), Turn::new(&room, &place));
    let beside = Turn::new(&room, &place).with(Floor::None);
    let token = first.begun().await;

    let locked = second.begin(TurnToken::random()).await;
    beside.begun().await;
    first.end(Some(token), 0, "answer").await.unwrap();
    second.begun().await;

    let Begun::Locked { by, left } = locked else {
        panic!("{locked:?}");
    };
    assert_eq!(by, Some(first.id));
    assert!(left > Duration::ZERO && left <= LEASE, "{left:?}");
}

async fn a_response_begins_only_with_its_request(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    for floor in [Floor::Taken, Floor::None] {
        let turn = Turn::new(&room, &place).with(floor);
        let token = TurnToken::random();

        assert_eq!(turn.ask(token).await, Begun::Free);
        let view = room.backend.get_response(&turn.id).await.unwrap();
        assert_eq!(view, None);
        assert_eq!(turn.begin(token).await, Begun::New);
        let again = turn.ask(token).await;
        assert!(matches!(again, Begun::Resumed(_)), "{again:?}");
    }
    let second = Turn::new(&room, &place);
    let locked = second.ask(TurnToken::random()).await;
    assert!(matches!(locked, Begun::Locked { .. }), "{locked:?}");
}

async fn a_clients_turn_keeps_responses_out_unless_it_is_lent(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let client = take(&room, &thread, false).await.unwrap();

    let locked = turn.begin(TurnToken::random()).await;
    let lent = Turn::new(&room, &place).with(Floor::Lent(client.token));
    let token = lent.begun().await;
    let wrong = Turn::new(&room, &place).with(Floor::Lent(TurnToken::random()));
    let wrong = wrong.begin_as(TurnToken::random(), &request()).await;
    lent.note_with(token, 1, "entry", &one()).await.unwrap();
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
    let place = room.scope_of(&thread);
    let client = take(&room, &thread, false).await.unwrap();
    let lent = || Turn::new(&room, &place).with(Floor::Lent(client.token));
    let (first, second, own) = (lent(), lent(), Turn::new(&room, &place));
    let token = first.begun().await;

    let beside = second.begin(TurnToken::random()).await;
    room.backend
        .end_turn(&thread.id, Access::All, client.token)
        .await
        .unwrap();
    let after = own.begin(TurnToken::random()).await;

    for locked in [beside, after] {
        let is_locked = matches!(&locked, Begun::Locked { by, .. } if *by == Some(first.id));
        assert!(is_locked, "{locked:?}");
    }
    first.end(Some(token), 0, "answer").await.unwrap();
    own.begun().await;
}

async fn a_lent_turn_that_is_lost_stops_the_driver(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let client = take(&room, &thread, false).await.unwrap();
    let turn = Turn::new(&room, &place).with(Floor::Lent(client.token));
    let token = turn.begun().await;

    room.advance(LEASE);
    turn.note(token, 1, "nobody else has it").await.unwrap();
    take(&room, &thread, false).await.unwrap();

    let late = turn.note_with(token, 2, "late", &one()).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(turn.note(token, 2, "late").await, Err(Refusal::TurnLost));
    let ended = turn.end_with(Some(token), 1, "late", None).await;
    assert_eq!(ended, Err(Refusal::TurnLost));
    assert_eq!(place.value("n").await, None);
}

async fn a_later_turn_of_a_client_stops_a_driver(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    room.advance(LEASE);
    let client = take(&room, &thread, false).await.unwrap();

    let late = turn.note_with(token, 1, "late", &one()).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(turn.note(token, 1, "late").await, Err(Refusal::TurnLost));
    assert_eq!(turn.keep(token).await, Err(Refusal::TurnLost));
    assert_eq!(place.value("n").await, None);
    let resumed = turn.begin(TurnToken::random()).await;
    assert!(
        matches!(resumed, Begun::Locked { by: None, .. }),
        "{resumed:?}"
    );
    // the client lends its turn to a second response, which must first end the open response
    let next = Turn::new(&room, &place).with(Floor::Lent(client.token));
    assert_eq!(
        next.begin(TurnToken::random()).await,
        Begun::Behind(turn.id)
    );
    turn.end(None, 0, "closed").await.unwrap();
    next.begun().await;
    assert_eq!(end_of_turn(&room, &thread).await, client.ends_ms);
}

async fn an_open_response_is_ended_before_the_next(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let (first, second) = (Turn::new(&room, &place), Turn::new(&room, &place));
    first.begun().await;
    room.advance(LEASE);

    let behind = second.begin(TurnToken::random()).await;
    first.end(None, 0, "closed").await.unwrap();
    second.begun().await;

    assert_eq!(behind, Begun::Behind(first.id));
    assert_eq!(
        first.begin(TurnToken::random()).await,
        Begun::Ended(bytes("closed"))
    );
}

async fn a_response_whose_thread_has_moved_keeps_none_out_after_its_end(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    let moved = rotate(&room, &thread).await;
    let new_place = room.scope_of(&moved);
    let next = Turn::new(&room, &new_place);
    let locked = next.begin(TurnToken::random()).await;
    let late = turn.note(token, 1, "late").await;
    turn.end_with(None, 0, "closed", None).await.unwrap();

    assert!(
        matches!(locked, Begun::Locked { by: Some(by), .. } if by == turn.id),
        "{locked:?}"
    );
    assert_eq!(late, Err(Refusal::Destroyed));
    next.begun().await;
}

async fn a_lost_turn_can_be_let_go(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    room.advance(LEASE);
    let client = take(&room, &thread, false).await.unwrap();
    let is_driven = async || {
        let view = room.backend.get_response(&turn.id).await.unwrap();
        view.unwrap().driven.is_some()
    };
    let let_go = async |token| {
        let backend = &room.backend;
        refused(
            backend
                .keep_response(&turn.id, &place.scope, token, Duration::ZERO)
                .await,
        )
    };
    let again = Turn::new(&room, &place).with(Floor::Lent(client.token));
    assert_eq!(
        again.begin(TurnToken::random()).await,
        Begun::Behind(turn.id)
    );

    assert_eq!(let_go(token).await, Ok(()));
    assert!(!is_driven().await);
    assert_eq!(let_go(TurnToken::random()).await, Err(Refusal::TurnLost));
    assert_eq!(end_of_turn(&room, &thread).await, client.ends_ms);
}

async fn a_response_that_is_taken_back_leaves_nothing(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    let take_back = async |token| {
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
            .end_response(&turn.id, &place.scope, &end, None);
        refused(ended.await)
    };

    let of_another = take_back(TurnToken::random()).await;
    take_back(token).await.unwrap();

    assert_eq!(of_another, Err(Refusal::TurnLost));
    assert!(turn.view().await.is_none());
    let next = Turn::new(&room, &place);
    let token = next.begun().await;
    next.end(Some(token), 0, "answer").await.unwrap();
    // a response with a journal entry cannot be taken back
    let token = turn.begun().await;
    turn.note(token, 1, "entry").await.unwrap();
    assert_eq!(take_back(token).await, Err(Refusal::Changed));
    assert!(turn.view().await.is_some());
}

async fn the_end_wakes_callers_that_wait_for_the_turn(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let ended = Mutex::new(room.backend.ended_turns());

    // retry, because an end is not reported until the subscription is active
    let is_woken = async || {
        let turn = Turn::new(&room, &place);
        let token = turn.begun().await;
        take(&room, &thread, true).await.unwrap_err();
        turn.end(Some(token), 0, "answer").await.unwrap();
        let mut ended = ended.lock().await;
        let woken = timeout(Duration::from_millis(200), ended.recv()).await;
        woken.is_ok_and(|woken| woken.unwrap() == thread.id)
    };
    until(is_woken).await;
}

super::over_every_store_and_confirmed!(
    a_thread_has_one_response_at_a_time,
    a_response_begins_only_with_its_request,
    a_clients_turn_keeps_responses_out_unless_it_is_lent,
    responses_under_one_lent_turn_wait_for_each_other,
    a_lent_turn_that_is_lost_stops_the_driver,
    a_later_turn_of_a_client_stops_a_driver,
    an_open_response_is_ended_before_the_next,
    a_response_whose_thread_has_moved_keeps_none_out_after_its_end,
    a_lost_turn_can_be_let_go,
    a_response_that_is_taken_back_leaves_nothing,
    the_end_wakes_callers_that_wait_for_the_turn,
);
