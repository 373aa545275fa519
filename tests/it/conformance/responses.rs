use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use threadkeep_domain::scope::ScopeWrite;
use threadkeep_domain::{Conditions, Operation, Refusal, ThreadPolicy, TurnToken, Write};
use threadkeep_store::{Begun, EndWrite, Floor, Journal, JournalEntry, Journaled};

use super::response_room::{LEASE, RETENTION, Response, bytes, increment_n, living, request, take};
use super::room::{Room, numbered_key, push};
use super::scope_room;

async fn a_response_has_one_driver(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);

    let token = response.begin_new().await;
    let other = response.begin(TurnToken::random()).await;
    let again = response.begin(token).await;

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
    let another = response.begin_as(TurnToken::random(), &request).await;
    assert_eq!(another, Err(Refusal::IdempotencyKeyReused));
}

async fn another_driver_resumes_where_the_last_one_stopped(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);

    let mut tokens = vec![response.begin_new().await];
    for number in 1..=6 {
        let last = *tokens.last().unwrap();
        let entry = number.to_string();
        let noted = response
            .note_with(last, number, &entry, &increment_n())
            .await
            .unwrap();
        assert!(matches!(noted, Journaled::New(Some(_))), "{noted:?}");
        response
            .append_events(last, number - 1, &[&entry])
            .await
            .unwrap();
        let (token, journal) = response.take_over().await;
        tokens.push(token);
        assert_eq!(journal.entries.len() as u64, number);
        assert_eq!(journal.entries[number as usize - 1], entry);
        assert_eq!(journal.next_event, number);
        // each earlier driver tries to continue, and is rejected
        for old in &tokens[..tokens.len() - 1] {
            let late = response
                .note_with(*old, number + 1, "late", &increment_n())
                .await;
            assert_eq!(late, Err(Refusal::TurnLost));
            assert_eq!(
                response.note(*old, number + 1, "late").await,
                Err(Refusal::TurnLost)
            );
            assert_eq!(
                response.append_events(*old, number, &["late"]).await,
                Err(Refusal::TurnLost)
            );
            assert_eq!(response.keep(*old).await, Err(Refusal::TurnLost));
            let ended = response.end(Some(*old), number, "late").await;
            assert_eq!(ended, Err(Refusal::TurnLost));
        }
    }

    assert_eq!(scope.value("n").await.as_deref(), Some("6"));
    assert_eq!(response.view().await.unwrap().journal.entries.len(), 6);
    let events = ["1", "2", "3", "4", "5", "6"].map(str::to_owned);
    assert_eq!(response.events(0).await, Some((events.to_vec(), false)));
}

async fn an_entry_and_its_write_are_stored_atomically(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    let first = response
        .note_with(token, 1, "first", &increment_n())
        .await
        .unwrap();
    let repeat = response
        .note_with(token, 1, "again", &increment_n())
        .await
        .unwrap();
    let gap = response.note_with(token, 3, "third", &increment_n()).await;
    let text = [scope_room::set("s", "\"text\"")];
    response.note_with(token, 2, "second", &text).await.unwrap();
    let wrong = [scope_room::increment("s", 1)];
    let refused = response.note_with(token, 3, "third", &wrong).await;
    let nothing = response.note(token, 0, "none").await;

    let Journaled::New(Some(written)) = first else {
        panic!("{first:?}");
    };
    assert_eq!(written.keys, 1);
    assert_eq!(repeat, Journaled::Known(bytes("first")));
    assert_eq!(gap, Err(Refusal::Changed));
    assert_eq!(nothing, Err(Refusal::Changed));
    assert_eq!(refused, Err(Refusal::NotAnInteger { operation: 0 }));
    assert_eq!(scope.value("n").await.as_deref(), Some("1"));
    let entries = response.view().await.unwrap().journal.entries;
    assert_eq!(entries, [bytes("first"), bytes("second")]);
    assert_eq!(
        response.note(token, 3, "third").await,
        Ok(Journaled::New(None))
    );
    assert_eq!(
        response.note(token, 3, "again").await,
        Ok(Journaled::Known(bytes("third")))
    );
}

async fn a_write_that_only_repeats_items_is_journaled(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let items = [scope_room::item("1", "1")];
    scope.add(&items).await;
    let token = response.begin_new().await;

    let write = ScopeWrite {
        history: &items,
        ..scope.blank()
    };
    let text = bytes("entry");
    let entry = first_entry(token, &text);
    let noted = room
        .backend
        .journal(&response.id, &scope.id, &entry, Some(&write));
    let Journaled::New(Some(written)) = noted.await.unwrap() else {
        panic!("expected a new entry");
    };

    assert!(written.appended[0].repeated);
    assert_eq!(response.view().await.unwrap().journal.entries, [text]);
}

fn first_entry(token: TurnToken, text: &Bytes) -> JournalEntry<'_> {
    JournalEntry {
        token,
        number: 1,
        entry: text,
        events: (0, &[]),
    }
}

async fn an_entry_and_its_events_are_stored_atomically(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    response.append_events(token, 0, &["a"]).await.unwrap();
    let first = response
        .note_with_events(token, 1, "first", (1, &["b", "c"]))
        .await;
    let repeat = response
        .note_with_events(token, 1, "again", (3, &["d"]))
        .await;
    let gap = response
        .note_with_events(token, 2, "second", (4, &["e"]))
        .await;
    let overlap = response
        .note_with_events(token, 2, "second", (2, &["x", "d"]))
        .await;

    assert_eq!(first, Ok(Journaled::New(None)));
    assert_eq!(repeat, Ok(Journaled::Known(bytes("first"))));
    assert_eq!(gap, Err(Refusal::Changed));
    assert_eq!(overlap, Ok(Journaled::New(None)));
    let events = ["a", "b", "c", "d"].map(str::to_owned);
    assert_eq!(response.events(0).await, Some((events.to_vec(), false)));
    let view = response.view().await.unwrap();
    assert_eq!(view.journal.entries, [bytes("first"), bytes("second")]);
    assert_eq!(view.journal.next_event, 4);
}

async fn event_numbers_have_no_gaps(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    assert_eq!(response.events(0).await, None);
    let token = response.begin_new().await;
    assert_eq!(response.events(0).await, Some((vec![], false)));

    response.append_events(token, 0, &["a", "b"]).await.unwrap();
    response.append_events(token, 1, &["x", "c"]).await.unwrap();
    response.append_events(token, 0, &["y"]).await.unwrap();
    let gap = response.append_events(token, 4, &["e"]).await;

    assert_eq!(gap, Err(Refusal::Changed));
    let texts = |texts: &[&str]| {
        texts
            .iter()
            .map(|text| (*text).to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        response.events(0).await,
        Some((texts(&["a", "b", "c"]), false))
    );
    assert_eq!(response.events(2).await, Some((texts(&["c"]), false)));
    assert_eq!(response.events(3).await, Some((vec![], false)));
    assert_eq!(response.events(u64::MAX).await, Some((vec![], false)));
    let page = room
        .backend
        .read_events(&response.id, 1, 1)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(page.events, [bytes("b")]);
    response.end(Some(token), 0, "answer").await.unwrap();
    assert_eq!(
        response.events(2).await,
        Some((texts(&["c", "last"]), true))
    );
    assert_eq!(
        response.append_events(token, 4, &["e"]).await,
        Err(Refusal::TurnLost)
    );
    room.advance(RETENTION);
    assert_eq!(response.events(0).await, None);
    assert_eq!(response.answer().await, Some(bytes("answer")));
}

async fn concurrent_appends_succeed_or_fail_independently(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let responses = [(); 40].map(|()| Response::new(&room, &scope).with(Floor::None));
    let mut tokens = Vec::new();
    for (number, response) in responses.iter().enumerate() {
        tokens.push(match number % 4 {
            1 => TurnToken::random(),
            _ => response.begin_new().await,
        });
    }
    let long = "\u{1f4a1}\n".repeat(5_000);
    let events = |number: usize| match number % 4 {
        3 => vec![""; number],
        2 if number > 20 => vec!["first", &long, "last"],
        _ => vec!["first", "second\n"],
    };

    let appends = responses.iter().zip(&tokens).enumerate();
    let appends = appends.map(async |(number, (response, token))| {
        // one in four responses has not begun, and the events of responses 2 and 6 start with a gap
        let first = u64::from(number % 4 == 2 && number < 10);
        response.append_events(*token, first, &events(number)).await
    });
    let outcomes = join_all(appends).await;

    for (number, (response, outcome)) in responses.iter().zip(outcomes).enumerate() {
        let stored = response.events(0).await;
        match number % 4 {
            1 => assert_eq!((outcome, stored), (Err(Refusal::TurnLost), None)),
            2 if number < 10 => {
                assert_eq!(
                    (outcome, stored),
                    (Err(Refusal::Changed), Some((vec![], false)))
                );
            }
            _ => {
                let events = events(number).into_iter().map(str::to_owned);
                assert_eq!((outcome, stored), (Ok(()), Some((events.collect(), false))));
            }
        }
    }
}

async fn a_response_ends_once(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    response.note(token, 1, "entry").await.unwrap();

    let early = response.end(Some(token), 0, "early").await;
    let first = response.end(Some(token), 1, "answer").await.unwrap();
    let repeat = response.end(Some(token), 1, "again").await.unwrap();
    let by_other = response.end(None, 0, "cancelled").await.unwrap();

    assert_eq!(early, Err(Refusal::Changed));
    assert_eq!((&first.answer[..], first.replayed), (&b"answer"[..], false));
    for replay in [repeat, by_other] {
        assert_eq!(
            (&replay.answer[..], replay.replayed),
            (&b"answer"[..], true)
        );
    }
    assert_eq!(response.history().await, 1);
    assert_eq!(
        response.begin(TurnToken::random()).await,
        Begun::Ended(bytes("answer"))
    );
    assert_eq!(
        response.note(token, 2, "late").await,
        Err(Refusal::TurnLost)
    );
    // the thread's turn is free again
    take(&room, &thread, false).await.unwrap();
}

async fn a_refused_write_does_not_end_the_response(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    scope.add(&[scope_room::item("1", "1")]).await;
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    let items = [scope_room::item("1", "2")];
    let write = ScopeWrite {
        history: &items,
        ..scope.blank()
    };
    let refused = response
        .end_with(Some(token), 0, "answer", Some(&write))
        .await;

    assert_eq!(refused, Err(Refusal::ItemIdReused { item: 0 }));
    assert_eq!(response.answer().await, None);
    assert_eq!(response.events(0).await, Some((vec![], false)));
    assert!(matches!(
        take(&room, &thread, false).await,
        Err(Refusal::TurnTaken { .. })
    ));
    response.end(Some(token), 0, "answer").await.unwrap();
}

async fn an_end_can_write_to_the_thread_atomically(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
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
        response
            .end_writing(Some(token), (0, 0), answer, write)
            .await
    };

    let refused = end("answer", "k").await;
    let before = (response.answer().await, response.history().await);
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
    assert_eq!(response.history().await, 1);
    assert_eq!(response.events(0).await, Some((vec!["last".into()], true)));
    take(&room, &thread, false).await.unwrap();
}

async fn an_end_does_not_recreate_a_destroyed_thread(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    thread.destroy().await;

    let operations = [push("said", "1")];
    let write = Write {
        operations: &operations,
        ..Write::new(&ThreadPolicy::THREAD)
    };
    let write = Some(EndWrite::Thread(&write));
    let late = response
        .end_writing(Some(token), (0, 0), "answer", write)
        .await;
    let alone = response
        .end_writing(Some(token), (0, 0), "answer", None)
        .await;

    assert_eq!(late, Err(Refusal::Destroyed));
    assert!(!alone.unwrap().replayed);
    assert!(!thread.exists().await);
}

async fn an_end_without_a_token_needs_matching_entry_and_event_counts(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    response.note(token, 1, "entry").await.unwrap();

    let too_early = response.end(None, 0, "cancelled").await;
    response.append_events(token, 0, &["a", "b"]).await.unwrap();
    let before_events = response.end_after(None, (1, 1), "cancelled", None).await;
    let after_none = response
        .end_after(Some(token), (1, 3), "cancelled", None)
        .await;
    let ended = response.end(None, 1, "cancelled").await.unwrap();

    for refused in [too_early, before_events, after_none] {
        assert_eq!(refused, Err(Refusal::Changed));
    }
    assert!(!ended.replayed);
    let (events, _) = response.events(0).await.unwrap();
    assert_eq!(events, ["a", "b", "last"]);
    assert_eq!(
        response.note(token, 2, "late").await,
        Err(Refusal::TurnLost)
    );
    assert_eq!(response.keep(token).await, Err(Refusal::TurnLost));
    assert_eq!(response.history().await, 1);
    take(&room, &thread, false).await.unwrap();
}

async fn a_step_ignores_the_idempotency_key_of_its_write(room: Room) {
    let thread = living(&room).await;
    let scope = room.scope_of(&thread);
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;
    let operations = increment_n();
    let write = ScopeWrite {
        operations: &operations,
        conditions: Conditions {
            idempotency: Some(numbered_key(1)),
            ..Conditions::default()
        },
        ..scope.blank()
    };
    scope.write(&write).await.unwrap();

    let text = bytes("entry");
    let (backend, entry) = (&room.backend, first_entry(token, &text));
    let noted = backend
        .journal(&response.id, &scope.id, &entry, Some(&write))
        .await;

    assert!(matches!(noted.unwrap(), Journaled::New(Some(_))));
    assert_eq!(scope.value("n").await.as_deref(), Some("2"));
    assert_eq!(response.view().await.unwrap().journal.entries, [text]);
}

async fn a_response_is_bound_to_its_scope(room: Room) {
    let thread = living(&room).await;
    let (scope, session) = (room.scope_of(&thread), room.session());
    let response = Response::new(&room, &scope);
    let token = response.begin_new().await;

    let elsewhere = Response {
        scope: &session,
        ..Response::new(&room, &scope)
    };
    let elsewhere = Response {
        id: response.id,
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
    let scope = room.session();
    let response = Response::new(&room, &scope).with(Floor::None);
    let token = response.begin_new().await;

    response
        .note_with(token, 1, "entry", &increment_n())
        .await
        .unwrap();
    response.keep(token).await.unwrap();
    let (other, journal) = response.take_over().await;
    let late = response.note_with(token, 2, "late", &increment_n()).await;
    response.end(Some(other), 1, "answer").await.unwrap();

    assert_eq!(journal.entries, [bytes("entry")]);
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(scope.value("n").await.as_deref(), Some("1"));
    assert_eq!(response.history().await, 1);
    let view = response.view().await.unwrap();
    assert_eq!(view.scope, scope.id);
    assert_eq!(view.answer, Some(bytes("answer")));
    assert_eq!(view.driven, None);
}

async fn a_scope_without_a_thread_has_one_response_at_a_time_too(room: Room) {
    let scope = room.session();
    let [first, second, third] = [(); 3].map(|()| Response::new(&room, &scope));
    let missing = first.begin_as(TurnToken::random(), &request()).await;
    assert_eq!(missing, Err(Refusal::ScopeNotFound));
    scope.run(&increment_n()).await;

    let token = first.begin_new().await;
    let locked = second.begin(TurnToken::random()).await;
    Response::new(&room, &scope)
        .with(Floor::None)
        .begin_new()
        .await;
    assert_eq!(
        first.begin(token).await,
        Begun::Resumed(Journal {
            request: request(),
            entries: Vec::new(),
            next_event: 0,
        })
    );
    first.end(Some(token), 0, "answer").await.unwrap();
    let token = second.begin_new().await;
    second
        .note_with(token, 1, "entry", &increment_n())
        .await
        .unwrap();
    room.advance(LEASE);
    let behind = third.begin(TurnToken::random()).await;
    second.end(None, 1, "given up").await.unwrap();
    third.begin_new().await;

    let Begun::Locked { by, left } = locked else {
        panic!("{locked:?}");
    };
    assert_eq!(by, Some(first.id));
    assert!(left > Duration::ZERO && left <= LEASE, "{left:?}");
    assert_eq!(behind, Begun::Behind(second.id));
    let late = second.note_with(token, 2, "late", &increment_n()).await;
    assert_eq!(late, Err(Refusal::TurnLost));
    assert_eq!(scope.value("n").await.as_deref(), Some("2"));
}

super::over_every_store_and_confirmed!(
    a_response_has_one_driver,
    another_driver_resumes_where_the_last_one_stopped,
    an_entry_and_its_write_are_stored_atomically,
    a_write_that_only_repeats_items_is_journaled,
    an_entry_and_its_events_are_stored_atomically,
    event_numbers_have_no_gaps,
    concurrent_appends_succeed_or_fail_independently,
    a_response_ends_once,
    a_refused_write_does_not_end_the_response,
    an_end_can_write_to_the_thread_atomically,
    an_end_does_not_recreate_a_destroyed_thread,
    an_end_without_a_token_needs_matching_entry_and_event_counts,
    a_step_ignores_the_idempotency_key_of_its_write,
    a_response_is_bound_to_its_scope,
    a_scope_without_a_thread_has_responses_too,
    a_scope_without_a_thread_has_one_response_at_a_time_too,
);
