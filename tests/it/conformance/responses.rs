use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use threadkeep_domain::scope::ScopeWrite;
use threadkeep_domain::{Conditions, Operation, Refusal, ThreadPolicy, TurnToken, Write};
use threadkeep_store::{Begun, EndWrite, Floor, Journal, JournalEntry, Journaled};

use super::response_room::{KEPT, LEASE, Turn, bytes, living, one, request, take};
use super::room::{Room, numbered_once, push};
use super::scope_room;

async fn a_response_has_one_driver(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);

    let token = turn.begun().await;
    let other = turn.begin(TurnToken::random()).await;
    let again = turn.begin(token).await;

    let Begun::Running { left } = other else {
        panic!("{other:?}");
    };
    assert!(left > Duration::ZERO && left <= LEASE, "{left:?}");
    let begun = Journal {
        request: request(),
        entries: Vec::new(),
        next_event: 0,
    };
    assert_eq!(again, Begun::Resumed(begun));
    let request = bytes("another request");
    let another = turn.begin_as(TurnToken::random(), &request).await;
    assert_eq!(another, Err(Refusal::IdempotencyKeyReused));
}

async fn another_driver_goes_on_where_the_last_one_stopped(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);

    let mut tokens = vec![turn.begun().await];
    for number in 1..=6 {
        let last = *tokens.last().unwrap();
        let entry = number.to_string();
        let noted = turn.note_with(last, number, &entry, &one()).await.unwrap();
        assert!(matches!(noted, Journaled::New(Some(_))), "{noted:?}");
        turn.tell(last, number - 1, &[&entry]).await.unwrap();
        let (token, journal) = turn.taken_over().await;
        tokens.push(token);
        assert_eq!(journal.entries.len() as u64, number);
        assert_eq!(journal.entries[number as usize - 1], entry);
        assert_eq!(journal.next_event, number);
        // each earlier driver tries to continue, and is rejected
        for old in &tokens[..tokens.len() - 1] {
            let late = turn.note_with(*old, number + 1, "late", &one()).await;
            assert_eq!(late, Err(Refusal::TurnLost));
            assert_eq!(
                turn.note(*old, number + 1, "late").await,
                Err(Refusal::TurnLost)
            );
            assert_eq!(
                turn.tell(*old, number, &["late"]).await,
                Err(Refusal::TurnLost)
            );
            assert_eq!(turn.keep(*old).await, Err(Refusal::TurnLost));
            let ended = turn.end(Some(*old), number, "late").await;
            assert_eq!(ended, Err(Refusal::TurnLost));
        }
    }

    assert_eq!(place.value("n").await.as_deref(), Some("6"));
    assert_eq!(turn.view().await.unwrap().journal.entries.len(), 6);
    let events = ["1", "2", "3", "4", "5", "6"].map(str::to_owned);
    assert_eq!(turn.told(0).await, Some((events.to_vec(), false)));
}

async fn an_entry_and_its_write_are_one_step(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    let first = turn.note_with(token, 1, "first", &one()).await.unwrap();
    let repeat = turn.note_with(token, 1, "again", &one()).await.unwrap();
    let gap = turn.note_with(token, 3, "third", &one()).await;
    let text = [scope_room::set("s", "\"text\"")];
    turn.note_with(token, 2, "second", &text).await.unwrap();
    let wrong = [scope_room::increment("s", 1)];
    let refused = turn.note_with(token, 3, "third", &wrong).await;
    let nothing = turn.note(token, 0, "none").await;

    let Journaled::New(Some(written)) = first else {
        panic!("{first:?}");
    };
    assert_eq!(written.keys, 1);
    assert_eq!(repeat, Journaled::Known(bytes("first")));
    assert_eq!(gap, Err(Refusal::Changed));
    assert_eq!(nothing, Err(Refusal::Changed));
    assert_eq!(refused, Err(Refusal::NotAnInteger { operation: 0 }));
    assert_eq!(place.value("n").await.as_deref(), Some("1"));
    let entries = turn.view().await.unwrap().journal.entries;
    assert_eq!(entries, [bytes("first"), bytes("second")]);
    assert_eq!(turn.note(token, 3, "third").await, Ok(Journaled::New(None)));
    assert_eq!(
        turn.note(token, 3, "again").await,
        Ok(Journaled::Known(bytes("third")))
    );
}

async fn a_write_of_nothing_new_is_a_step_too(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let items = [scope_room::item("1", "1")];
    place.add(&items).await;
    let token = turn.begun().await;

    let write = ScopeWrite {
        history: &items,
        ..place.blank()
    };
    let (scope, text) = (&place.scope, bytes("entry"));
    let entry = first_entry(token, &text);
    let noted = room.backend.journal(&turn.id, scope, &entry, Some(&write));
    let Journaled::New(Some(written)) = noted.await.unwrap() else {
        panic!("it is known");
    };

    assert!(written.appended[0].repeated);
    assert_eq!(turn.view().await.unwrap().journal.entries, [text]);
}

fn first_entry(token: TurnToken, text: &Bytes) -> JournalEntry<'_> {
    JournalEntry {
        token,
        number: 1,
        entry: text,
        events: (0, &[]),
    }
}

async fn an_entry_and_its_events_are_one_step(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    turn.tell(token, 0, &["a"]).await.unwrap();
    let first = turn
        .note_with_events(token, 1, "first", (1, &["b", "c"]))
        .await;
    let repeat = turn.note_with_events(token, 1, "again", (3, &["d"])).await;
    let gap = turn.note_with_events(token, 2, "second", (4, &["e"])).await;
    let known = turn
        .note_with_events(token, 2, "second", (2, &["x", "d"]))
        .await;

    assert_eq!(first, Ok(Journaled::New(None)));
    assert_eq!(repeat, Ok(Journaled::Known(bytes("first"))));
    assert_eq!(gap, Err(Refusal::Changed));
    assert_eq!(known, Ok(Journaled::New(None)));
    let events = ["a", "b", "c", "d"].map(str::to_owned);
    assert_eq!(turn.told(0).await, Some((events.to_vec(), false)));
    let view = turn.view().await.unwrap();
    assert_eq!(view.journal.entries, [bytes("first"), bytes("second")]);
    assert_eq!(view.journal.next_event, 4);
}

async fn events_have_one_numbering_without_gaps(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    assert_eq!(turn.told(0).await, None);
    let token = turn.begun().await;
    assert_eq!(turn.told(0).await, Some((vec![], false)));

    turn.tell(token, 0, &["a", "b"]).await.unwrap();
    turn.tell(token, 1, &["x", "c"]).await.unwrap();
    turn.tell(token, 0, &["y"]).await.unwrap();
    let gap = turn.tell(token, 4, &["e"]).await;

    assert_eq!(gap, Err(Refusal::Changed));
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(turn.told(0).await, Some((texts(&["a", "b", "c"]), false)));
    assert_eq!(turn.told(2).await, Some((texts(&["c"]), false)));
    assert_eq!(turn.told(3).await, Some((vec![], false)));
    assert_eq!(turn.told(u64::MAX).await, Some((vec![], false)));
    let some = room.backend.told(&turn.id, 1, 1).await.unwrap().unwrap();
    assert_eq!(some.events, [bytes("b")]);
    turn.end(Some(token), 0, "answer").await.unwrap();
    assert_eq!(turn.told(2).await, Some((texts(&["c", "last"]), true)));
    assert_eq!(turn.tell(token, 4, &["e"]).await, Err(Refusal::TurnLost));
    room.advance(KEPT);
    assert_eq!(turn.told(0).await, None);
    assert_eq!(turn.answer().await, Some(bytes("answer")));
}

async fn events_of_many_turns_have_outcomes_of_their_own(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turns = [(); 40].map(|()| Turn::new(&room, &place).with(Floor::None));
    let mut tokens = Vec::new();
    for (number, turn) in turns.iter().enumerate() {
        tokens.push(match number % 4 {
            1 => TurnToken::random(),
            _ => turn.begun().await,
        });
    }
    let long = "\u{1f4a1}\n".repeat(5_000);
    let events = |number: usize| match number % 4 {
        3 => vec![""; number],
        2 if number > 20 => vec!["first", &long, "last"],
        _ => vec!["first", "second\n"],
    };

    let told = turns.iter().zip(&tokens).enumerate();
    let told = told.map(async |(number, (turn, token))| {
        // a quarter of the responses have not begun, and the events of two others start with a gap
        let first = u64::from(number % 4 == 2 && number < 10);
        turn.tell(*token, first, &events(number)).await
    });
    let outcomes = join_all(told).await;

    for (number, (turn, outcome)) in turns.iter().zip(outcomes).enumerate() {
        let kept = turn.told(0).await;
        match number % 4 {
            1 => assert_eq!((outcome, kept), (Err(Refusal::TurnLost), None)),
            2 if number < 10 => {
                assert_eq!(
                    (outcome, kept),
                    (Err(Refusal::Changed), Some((vec![], false)))
                );
            }
            _ => {
                let events = events(number).into_iter().map(str::to_owned);
                assert_eq!((outcome, kept), (Ok(()), Some((events.collect(), false))));
            }
        }
    }
}

async fn the_end_is_one_step_and_comes_once(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    turn.note(token, 1, "entry").await.unwrap();

    let early = turn.end(Some(token), 0, "early").await;
    let first = turn.end(Some(token), 1, "answer").await.unwrap();
    let repeat = turn.end(Some(token), 1, "again").await.unwrap();
    let by_other = turn.end(None, 0, "cancelled").await.unwrap();

    assert_eq!(early, Err(Refusal::Changed));
    assert_eq!((&first.answer[..], first.replayed), (&b"answer"[..], false));
    for replay in [repeat, by_other] {
        assert_eq!(
            (&replay.answer[..], replay.replayed),
            (&b"answer"[..], true)
        );
    }
    assert_eq!(turn.history().await, 1);
    assert_eq!(
        turn.begin(TurnToken::random()).await,
        Begun::Ended(bytes("answer"))
    );
    assert_eq!(turn.note(token, 2, "late").await, Err(Refusal::TurnLost));
    // the thread's turn is free again
    take(&room, &thread, false).await.unwrap();
}

async fn a_refused_write_ends_nothing(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    place.add(&[scope_room::item("1", "1")]).await;
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    let items = [scope_room::item("1", "2")];
    let write = ScopeWrite {
        history: &items,
        ..place.blank()
    };
    let refused = turn.end_with(Some(token), 0, "answer", Some(&write)).await;

    assert_eq!(refused, Err(Refusal::ItemIdReused { item: 0 }));
    assert_eq!(turn.answer().await, None);
    assert_eq!(turn.told(0).await, Some((vec![], false)));
    assert!(matches!(
        take(&room, &thread, false).await,
        Err(Refusal::TurnTaken { .. })
    ));
    turn.end(Some(token), 0, "answer").await.unwrap();
}

async fn an_end_may_write_to_the_thread_in_the_same_step(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    let operations = |key: &str| {
        [
            Operation::Append(scope_room::item("1", "1")),
            push(key, r#""said""#),
        ]
    };
    let end = async |answer: &str, key: &str| {
        let operations = operations(key);
        let write = Write {
            operations: &operations,
            ..Write::new(&ThreadPolicy::THREAD)
        };
        let write = Some(EndWrite::Thread(&write));
        turn.end_writing(Some(token), (0, 0), answer, write).await
    };

    let refused = end("answer", "k").await;
    let before = (turn.answer().await, turn.history().await);
    let first = end("answer", "said").await.unwrap();
    let repeat = end("again", "k").await.unwrap();

    assert_eq!(refused, Err(Refusal::NotAnArray { operation: 1 }));
    assert_eq!(before, (None, 0));
    assert_eq!((&first.answer[..], first.replayed), (&b"answer"[..], false));
    assert_eq!(
        (&repeat.answer[..], repeat.replayed),
        (&b"answer"[..], true)
    );
    assert_eq!(
        thread.state().await.as_deref(),
        Some(r#"{"k":1,"said":["said"]}"#)
    );
    assert_eq!(turn.history().await, 1);
    assert_eq!(turn.told(0).await, Some((vec!["last".into()], true)));
    take(&room, &thread, false).await.unwrap();
}

async fn an_end_brings_no_thread_back(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    thread.destroy().await;

    let operations = [push("said", "1")];
    let write = Write {
        operations: &operations,
        ..Write::new(&ThreadPolicy::THREAD)
    };
    let write = Some(EndWrite::Thread(&write));
    let late = turn.end_writing(Some(token), (0, 0), "answer", write).await;
    let alone = turn.end_writing(Some(token), (0, 0), "answer", None).await;

    assert_eq!(late, Err(Refusal::Destroyed));
    assert!(!alone.unwrap().replayed);
    assert!(!thread.exists().await);
}

async fn anybody_may_end_a_response_from_all_that_it_did(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    turn.note(token, 1, "entry").await.unwrap();

    let too_early = turn.end(None, 0, "cancelled").await;
    turn.tell(token, 0, &["a", "b"]).await.unwrap();
    let before_events = turn.end_after(None, (1, 1), "cancelled", None).await;
    let after_none = turn.end_after(Some(token), (1, 3), "cancelled", None).await;
    let ended = turn.end(None, 1, "cancelled").await.unwrap();

    for refused in [too_early, before_events, after_none] {
        assert_eq!(refused, Err(Refusal::Changed));
    }
    assert!(!ended.replayed);
    let (events, _) = turn.told(0).await.unwrap();
    assert_eq!(events, ["a", "b", "last"]);
    assert_eq!(turn.note(token, 2, "late").await, Err(Refusal::TurnLost));
    assert_eq!(turn.keep(token).await, Err(Refusal::TurnLost));
    assert_eq!(turn.history().await, 1);
    take(&room, &thread, false).await.unwrap();
}

async fn a_step_ignores_the_idempotency_key_of_its_write(room: Room) {
    let thread = living(&room).await;
    let place = room.scope_of(&thread);
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;
    let operations = one();
    let write = ScopeWrite {
        operations: &operations,
        conditions: Conditions {
            idempotency: Some(numbered_once(1)),
            ..Conditions::default()
        },
        ..place.blank()
    };
    place.write(&write).await.unwrap();

    let (scope, text) = (&place.scope, bytes("entry"));
    let (backend, entry) = (&room.backend, first_entry(token, &text));
    let noted = backend.journal(&turn.id, scope, &entry, Some(&write)).await;

    assert!(matches!(noted.unwrap(), Journaled::New(Some(_))));
    assert_eq!(place.value("n").await.as_deref(), Some("2"));
    assert_eq!(turn.view().await.unwrap().journal.entries, [text]);
}

async fn a_response_stays_in_its_scope(room: Room) {
    let thread = living(&room).await;
    let (place, session) = (room.scope_of(&thread), room.session());
    let turn = Turn::new(&room, &place);
    let token = turn.begun().await;

    let elsewhere = Turn {
        place: &session,
        ..Turn::new(&room, &place)
    };
    let elsewhere = Turn {
        id: turn.id,
        ..elsewhere
    };
    let begun = elsewhere.begin_as(TurnToken::random(), &request()).await;

    assert_eq!(begun, Err(Refusal::IdempotencyKeyReused));
    assert_eq!(
        elsewhere.note(token, 1, "entry").await,
        Err(Refusal::TurnLost)
    );
    assert_eq!(elsewhere.keep(token).await, Err(Refusal::TurnLost));
}

async fn a_scope_without_a_thread_has_responses_too(room: Room) {
    let place = room.session();
    let turn = Turn::new(&room, &place).with(Floor::None);
    let token = turn.begun().await;

    turn.note_with(token, 1, "entry", &one()).await.unwrap();
    turn.keep(token).await.unwrap();
    let (other, journal) = turn.taken_over().await;
    let late = turn.note_with(token, 2, "late", &one()).await;
    turn.end(Some(other), 1, "answer").await.unwrap();

    assert_eq!(journal.entries, [bytes("entry")]);
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(place.value("n").await.as_deref(), Some("1"));
    assert_eq!(turn.history().await, 1);
    let view = turn.view().await.unwrap();
    assert_eq!(view.scope, place.scope);
    assert_eq!(view.answer, Some(bytes("answer")));
    assert_eq!(view.driven, None);
}

async fn a_scope_without_a_thread_has_one_response_at_a_time_too(room: Room) {
    let place = room.session();
    let [first, second, third] = [(); 3].map(|()| Turn::new(&room, &place));
    let missing = first.begin_as(TurnToken::random(), &request()).await;
    assert_eq!(missing, Err(Refusal::ScopeNotFound));
    place.run(&one()).await;

    let token = first.begun().await;
    let locked = second.begin(TurnToken::random()).await;
    Turn::new(&room, &place).with(Floor::None).begun().await;
    assert_eq!(
        first.begin(token).await,
        Begun::Resumed(Journal {
            request: request(),
            entries: Vec::new(),
            next_event: 0,
        })
    );
    first.end(Some(token), 0, "answer").await.unwrap();
    let token = second.begun().await;
    second.note_with(token, 1, "entry", &one()).await.unwrap();
    room.advance(LEASE);
    let behind = third.begin(TurnToken::random()).await;
    second.end(None, 1, "given up").await.unwrap();
    third.begun().await;

    let Begun::Locked { by, left } = locked else {
        panic!("{locked:?}");
    };
    assert_eq!(by, Some(first.id));
    assert!(left > Duration::ZERO && left <= LEASE, "{left:?}");
    assert_eq!(behind, Begun::Behind(second.id));
    let late = second.note_with(token, 2, "late", &one()).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(place.value("n").await.as_deref(), Some("2"));
}

super::over_every_store_and_confirmed!(
    a_response_has_one_driver,
    another_driver_goes_on_where_the_last_one_stopped,
    an_entry_and_its_write_are_one_step,
    a_write_of_nothing_new_is_a_step_too,
    an_entry_and_its_events_are_one_step,
    events_have_one_numbering_without_gaps,
    events_of_many_turns_have_outcomes_of_their_own,
    the_end_is_one_step_and_comes_once,
    a_refused_write_ends_nothing,
    an_end_may_write_to_the_thread_in_the_same_step,
    an_end_brings_no_thread_back,
    anybody_may_end_a_response_from_all_that_it_did,
    a_step_ignores_the_idempotency_key_of_its_write,
    a_response_stays_in_its_scope,
    a_scope_without_a_thread_has_responses_too,
    a_scope_without_a_thread_has_one_response_at_a_time_too,
);
