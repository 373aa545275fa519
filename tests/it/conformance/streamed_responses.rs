use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use threadkeep_domain::{Json, ResponseLimits, Status, ThreadId};
use threadkeep_responses::{
    NewResponse, Protocol, ResponseError, ResponseEvent, ResponseRequest, ResponseService,
    ResponseStream, StreamItem, UpstreamError,
};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::model_responses::{
    Counting, DyingResponses, LEASE, PATIENCE, count, response, responses, until_begun,
};
use super::room::Room;

fn streamed(responses: &ResponseService, thread: &ThreadId) -> NewResponse {
    changed(response(responses, thread, "one"), |request| {
        request.is_streamed = true;
    })
}

fn changed(mut new: NewResponse, change: impl FnOnce(&mut ResponseRequest)) -> NewResponse {
    change(Arc::make_mut(&mut new.request));
    new
}

async fn read(stream: &mut ResponseStream) -> Vec<(u64, String)> {
    let mut read = Vec::new();
    while let Some((number, item)) = timeout(PATIENCE, stream.next()).await.unwrap().unwrap() {
        read.push((number, text_of(&item)));
    }
    read
}

fn text_of(item: &StreamItem) -> String {
    match item {
        StreamItem::Ended(ended) => format!("{:?}", ended.outcome),
        StreamItem::Failed(error, _) => format!("failed: {error}"),
        item => format!("{item:?}"),
    }
}

async fn check(stream: &mut ResponseStream) -> Vec<Json> {
    let mut open: HashMap<u64, String> = HashMap::new();
    let (mut items, mut next_index, mut next_number) = (Vec::new(), 0, 0);
    let mut ended = None;
    while let Some((number, item)) = timeout(PATIENCE, stream.next()).await.unwrap().unwrap() {
        assert_eq!(number, next_number);
        next_number += 1;
        match item {
            StreamItem::Created => assert_eq!(number, 0),
            StreamItem::Running => assert_eq!(number, 1),
            StreamItem::Event(event) => match event {
                ResponseEvent::ItemAdded { index, .. } => {
                    assert_eq!(index, next_index);
                    next_index += 1;
                    open.insert(index, String::new());
                }
                ResponseEvent::TextDelta { text_ref, delta } => {
                    open.get_mut(&text_ref.index).unwrap().push_str(&delta);
                }
                ResponseEvent::TextDone { text_ref, text } => {
                    assert_eq!(open[&text_ref.index], text);
                }
                ResponseEvent::ItemDone { index, item, .. } => {
                    open.remove(&index).unwrap();
                    let value: Value = serde_json::from_str(item.as_str()).unwrap();
                    if value["status"] != "incomplete" {
                        items.push((index, item));
                    }
                }
                ResponseEvent::Resumed => {}
                other => assert!(open.contains_key(&other.index().unwrap()), "{other:?}"),
            },
            StreamItem::Ended(end) => {
                assert!(ended.replace(end).is_none());
            }
            StreamItem::Failed(error, _) => panic!("{error}"),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    let ended = ended.unwrap();
    assert_eq!(ended.outcome.status, Status::Completed);
    // the output is sorted by index, even if the items were completed in a different order
    items.sort_by_key(|(index, _)| *index);
    let items: Vec<_> = items.into_iter().map(|(_, item)| item).collect();
    let output = &ended.outcome.output;
    // `items` also contains complete reasoning from an answer that was cut off, but the output does not contain it
    let kept = items.iter().filter(|item| output.contains(item));
    assert!(kept.eq(output.iter()), "{items:?} {output:?}");
    ended.outcome.output.clone()
}

async fn all_readers_see_the_same_events_from_any_number(room: Room) {
    let model = Arc::new(Counting {
        steps: 2,
        held: Some(Notify::new()),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let thread = ThreadId::random();
    let new = streamed(&one, &thread);

    let mut first = one.stream(new.clone()).await.unwrap();
    let joined = one.stream(new.clone()).await.unwrap();
    let beside = other.stream(new.clone()).await.unwrap();
    let mut later = other.listen(Protocol::OpenAi, &new.id, Some(2)).await;
    assert!(
        matches!(later, Err(ResponseError::NoSuchEvent)),
        "{later:?}"
    );
    later = other.listen(Protocol::OpenAi, &new.id, Some(0)).await;
    model.held.as_ref().unwrap().notify_one();
    let all = read(&mut first).await;
    let mut streams = vec![(0, joined), (0, beside), (1, later.unwrap())];
    for responses in [&one, &other] {
        streams.push((0, responses.stream(new.clone()).await.unwrap()));
        streams.push((
            0,
            responses
                .listen(Protocol::OpenAi, &new.id, None)
                .await
                .unwrap(),
        ));
        for start in 1..=all.len() {
            let events = responses
                .listen(Protocol::OpenAi, &new.id, Some(start as u64 - 1))
                .await;
            streams.push((start, events.unwrap()));
        }
        let beyond = responses
            .listen(Protocol::OpenAi, &new.id, Some(all.len() as u64))
            .await;
        assert!(
            matches!(beyond, Err(ResponseError::NoSuchEvent)),
            "{beyond:?}"
        );
    }

    assert_eq!(
        check(&mut one.listen(Protocol::OpenAi, &new.id, None).await.unwrap())
            .await
            .len(),
        3
    );
    for (start, mut stream) in streams {
        assert_eq!(read(&mut stream).await, all[start..], "from {start}");
    }
    assert_eq!(count(&room, &thread).await.as_deref(), Some("2"));
}

async fn a_response_that_was_not_streamed_has_the_same_events(room: Room) {
    let model = Arc::new(Counting {
        steps: 1,
        held: Some(Notify::new()),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let thread = ThreadId::random();
    let new = response(&one, &thread, "one");
    let (running, copy) = (one.clone(), new.clone());
    let run = tokio::spawn(async move { running.run(copy).await.unwrap() });
    until_begun(&other, &new.id).await;

    let [mut local, mut remote] = [
        one.stream(new.clone()).await.unwrap(),
        other.stream(new.clone()).await.unwrap(),
    ];
    model.held.as_ref().unwrap().notify_one();
    let (local, items) = (read(&mut local).await, check(&mut remote).await);
    let mut after = one
        .listen(Protocol::OpenAi, &new.id, Some(3))
        .await
        .unwrap();

    assert_eq!(items, run.await.unwrap().outcome.output);
    assert_eq!(read(&mut after).await, local[4..]);
}

async fn each_event_is_sent_exactly_once_wherever_the_driver_dies(room: Room) {
    for is_done in [false, true] {
        // each round fails at a later store call; the number of calls varies, because one call may write several events
        let mut dies_at = 0;
        loop {
            let model = Arc::new(Counting {
                steps: 2,
                thinks: true,
                ..Counting::default()
            });
            let (dying, first) = DyingResponses::driver(&room, &model, dies_at, is_done);
            let second = responses(&room, &model, ResponseLimits::DEFAULT);
            let thread = ThreadId::random();
            let new = streamed(&second, &thread);

            let (running, copy) = (first.clone(), new.clone());
            let mut stuck = tokio::spawn(async move {
                let mut stream = running.stream(copy).await.unwrap();
                read(&mut stream).await
            });
            let has_died = tokio::select! {
                () = dying.died.notified() => true,
                () = tokio::time::sleep(PATIENCE) => panic!("the driver neither dies nor ends"),
                _ = &mut stuck => false,
            };
            stuck.abort();
            if !has_died {
                break;
            }
            room.advance(LEASE);
            let mut events = second.stream(new.clone()).await.unwrap();
            let items = check(&mut events).await;

            let case = format!("{dies_at}, {is_done}");
            let kinds: Vec<_> = items.iter().map(kind_of).collect();
            let step = ["reasoning", "mcp_call", "message"];
            let expected = [&step[..], &step, &["message"]].concat();
            assert_eq!(kinds, expected, "{case}");
            assert_eq!(count(&room, &thread).await.as_deref(), Some("2"), "{case}");
            dies_at += 1;
        }
        assert!(dies_at >= 8, "{dies_at}");
    }
}

fn kind_of(item: &Json) -> String {
    let item: Value = serde_json::from_str(item.as_str()).unwrap();
    item["type"].as_str().unwrap().to_owned()
}

async fn until_ended(responses: &ResponseService, new: &NewResponse) {
    loop {
        if let Ok(state) = responses.get(Protocol::OpenAi, &new.id).await
            && state.outcome.is_some()
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn a_failure_ends_the_stream_and_a_repeat_streams_the_whole_response(room: Room) {
    let model = Arc::new(Counting {
        steps: 2,
        fails_at: Some((1, UpstreamError::Failed)),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let thread = ThreadId::random();
    let new = streamed(&one, &thread);

    let failed = read(&mut one.stream(new.clone()).await.unwrap()).await;
    let elsewhere = read(&mut other.listen(Protocol::OpenAi, &new.id, None).await.unwrap()).await;
    let items = check(&mut other.stream(new).await.unwrap()).await;

    assert!(
        failed.last().unwrap().1.starts_with("failed: "),
        "{failed:?}"
    );
    assert_eq!(elsewhere, failed);
    assert_eq!(items.len(), 3);
    assert_eq!(count(&room, &thread).await.as_deref(), Some("2"));
}

async fn a_cancelled_response_ends_its_streams_everywhere(room: Room) {
    let model = Arc::new(Counting {
        held: Some(Notify::new()),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let new = streamed(&one, &ThreadId::random());

    let mut local = one.stream(new.clone()).await.unwrap();
    let mut remote = other.stream(new.clone()).await.unwrap();
    let cancelled = other.cancel(Protocol::OpenAi, &new.id).await.unwrap();
    let (local, remote) = (read(&mut local).await, read(&mut remote).await);

    assert_eq!(cancelled.outcome.status, Status::Cancelled);
    assert_eq!(local, remote);
    assert_eq!(local.len(), 3);
    assert!(local[2].1.contains("Cancelled"), "{local:?}");
}

async fn events_expire_ten_minutes_after_the_end(room: Room) {
    let model = Arc::new(Counting::default());
    let responses = responses(&room, &model, ResponseLimits::DEFAULT);
    for is_streamed in [true, false] {
        let new = changed(
            response(&responses, &ThreadId::random(), "one"),
            |request| {
                request.is_streamed = is_streamed;
            },
        );
        responses.run(new.clone()).await.unwrap();

        room.advance(Duration::from_secs(599));
        responses
            .listen(Protocol::OpenAi, &new.id, None)
            .await
            .unwrap();
        room.advance(Duration::from_secs(1));
        let late = responses
            .listen(Protocol::OpenAi, &new.id, None)
            .await
            .unwrap_err();
        let items = check(&mut responses.stream(new.clone()).await.unwrap()).await;

        assert!(matches!(late, ResponseError::StreamExpired), "{late:?}");
        assert!(!items.is_empty());
        assert!(
            responses
                .get(Protocol::OpenAi, &new.id)
                .await
                .unwrap()
                .outcome
                .is_some()
        );
    }
}

async fn a_background_response_continues_without_its_driver(room: Room) {
    let model = Arc::new(Counting {
        steps: 1,
        held: Some(Notify::new()),
        ..Counting::default()
    });
    let [one, other] = [(); 2].map(|()| responses(&room, &model, ResponseLimits::DEFAULT));
    let thread = ThreadId::random();
    let new = changed(response(&one, &thread, "one"), |request| {
        request.is_background = true;
        request.created_ms = room.clock.now_ms();
    });

    let begun = one.stream(new.clone()).await.unwrap();
    assert!(begun.ended().is_none());
    drop(begun);
    one.shutdown(Duration::ZERO).await;
    model.held.as_ref().unwrap().notify_one();
    room.advance(LEASE);
    other.recover_interrupted().await.unwrap();
    timeout(PATIENCE, until_ended(&other, &new)).await.unwrap();

    let state = other.get(Protocol::OpenAi, &new.id).await.unwrap();
    assert_eq!(state.outcome.unwrap().status, Status::Completed);
    assert_eq!(count(&room, &thread).await.as_deref(), Some("1"));
    assert_eq!(model.answers.load(Ordering::Relaxed), 2);
}

super::over_every_store_and_confirmed! {
    all_readers_see_the_same_events_from_any_number,
    a_response_that_was_not_streamed_has_the_same_events,
    each_event_is_sent_exactly_once_wherever_the_driver_dies,
    a_failure_ends_the_stream_and_a_repeat_streams_the_whole_response,
    a_cancelled_response_ends_its_streams_everywhere,
    events_expire_ten_minutes_after_the_end,
    a_background_response_continues_without_its_driver,
}
