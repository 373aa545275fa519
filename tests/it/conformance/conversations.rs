//! Lists of conversations: sorted by newest item, with each thread listed once, even while other threads are changing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::scope::{HistoryItem, Removal};
use threadkeep_domain::{Json, Operation, Owner, OwnerChange, ThreadId, Write};
use threadkeep_service::{
    ConversationLabel, ConversationPage, ConversationService, ListedConversation, PageStart,
};
use threadkeep_store::{HistoryPreview, MOVES_AFTER_MS, Reader, Rotate, ThreadOrder};

use super::room::{Room, Subject, in_parallel, json, set};
use super::scope_room::{self, item};

const SECOND: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(10);

fn ann() -> Owner {
    Owner::new("ann").unwrap()
}

fn service(room: &Room) -> ConversationService {
    ConversationService::new(Arc::clone(&room.backend) as _, Duration::from_secs(30))
}

fn label(id: &ThreadId, _: &Json) -> ConversationLabel {
    ConversationLabel {
        id: id.to_string(),
        title: None,
    }
}

async fn owned(room: &Room) -> Subject {
    let thread = room.subject();
    let ann = ann();
    let write = Write {
        owner: OwnerChange::Set(&ann),
        ..thread.blank()
    };
    thread.write(&write).await.unwrap();
    thread
}

async fn two(room: &Room) -> [Subject; 2] {
    let first = owned(room).await;
    room.advance(MOMENT);
    [first, owned(room).await]
}

async fn append(room: &Room, thread: &Subject, id: &str) {
    room.scope_of(thread).add(&[item(id, "1")]).await;
}

async fn merge_append(thread: &Subject, id: &str) {
    let item = HistoryItem {
        id: id.parse().unwrap(),
        value: json("1"),
    };
    thread.merge(&[Operation::Append(item)]).await;
}

async fn preview(room: &Room, thread: &Subject, opening: usize) -> Option<HistoryPreview> {
    let previews = room.backend.preview_histories(&[thread.id], opening).await;
    previews.unwrap().remove(0)
}

async fn updated(room: &Room) -> Vec<ThreadId> {
    let order = ThreadOrder::Updated;
    let page = room.backend.list_owned(ann().tag(), order, None, 100).await;
    let threads = page.unwrap().threads;
    threads.into_iter().map(|((_, id), _)| id).collect()
}

async fn page(room: &Room, start: PageStart, limit: usize) -> ConversationPage {
    let page = service(room).list(&ann(), start, limit, label).await;
    page.unwrap().unwrap()
}

fn ids(page: &ConversationPage) -> Vec<ThreadId> {
    let conversations = page.conversations.iter();
    conversations.map(|listed| listed.thread).collect()
}

fn after(last: &ListedConversation) -> PageStart {
    PageStart::After {
        newest_ms: last.newest_ms,
        id: last.label.id.clone(),
    }
}

/// Lists all conversations page by page, following the cursors. Runs `between` before each page except the first.
async fn by_cursor(room: &Room, limit: usize, between: impl AsyncFn()) -> Vec<ThreadId> {
    let mut all = Vec::new();
    let mut start = PageStart::Offset(0);
    loop {
        let page = page(room, start, limit).await;
        all.extend(ids(&page));
        if !page.has_more {
            return all;
        }
        start = after(page.conversations.last().unwrap());
        between().await;
    }
}

async fn appends_move_an_owned_thread_at_most_once_a_second(room: Room) {
    let [first, second] = two(&room).await;
    let version = first.stamp().await;
    room.advance(2 * SECOND);

    append(&room, &first, "a").await;

    assert_eq!(updated(&room).await, [first.id, second.id]);
    let moved = first.thread().await.unwrap();
    assert_eq!(
        moved.stamp, version,
        "an append does not change the version of the thread"
    );
    let first_ms = preview(&room, &first, 0).await.unwrap().newest_ms.unwrap();
    assert_eq!(moved.updated_ms, first_ms);
    append(&room, &second, "a").await;
    let mut last_ms = first_ms;
    for number in 0..12 {
        room.advance(Duration::from_millis(300));
        append(&room, &first, &format!("b{number}")).await;
        let updated_ms = first.thread().await.unwrap().updated_ms;
        let newest_ms = preview(&room, &first, 0).await.unwrap().newest_ms.unwrap();
        assert!(updated_ms == last_ms || updated_ms >= last_ms + MOVES_AFTER_MS);
        assert!((updated_ms..updated_ms + MOVES_AFTER_MS).contains(&newest_ms));
        last_ms = updated_ms;
    }
    assert!(last_ms >= first_ms + 3_000);
    assert_eq!(updated(&room).await, [first.id, second.id]);
}

async fn other_writes_to_a_scope_and_repeated_appends_move_no_thread(room: Room) {
    let [first, second] = two(&room).await;
    append(&room, &first, "a").await;
    let before = first.thread().await.unwrap().updated_ms;
    room.advance(2 * SECOND);

    append(&room, &first, "a").await;
    let scope = room.scope_of(&first);
    scope.run(&[scope_room::set("k", "1")]).await;

    assert_eq!(updated(&room).await, [second.id, first.id]);
    assert_eq!(first.thread().await.unwrap().updated_ms, before);
}

async fn an_append_to_a_thread_without_an_owner_moves_nothing(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "1")]).await;
    let before = thread.thread().await.unwrap();
    room.advance(2 * SECOND);

    append(&room, &thread, "a").await;

    let after = thread.thread().await.unwrap();
    assert_eq!(
        (after.updated_ms, after.stamp),
        (before.updated_ms, before.stamp)
    );
}

async fn a_moved_thread_keeps_its_position_when_it_is_rotated(room: Room) {
    let [first, second] = two(&room).await;
    room.advance(2 * SECOND);
    append(&room, &first, "a").await;
    let rotate = Rotate {
        conditions: threadkeep_domain::Conditions::default(),
        tombstone: 60 * SECOND,
    };

    let rotated = room.store.rotate(&first.id, &rotate).await.unwrap();

    assert_eq!(updated(&room).await, [rotated.id, second.id]);
    let listed = page(&room, PageStart::Offset(0), 10).await;
    assert_eq!(ids(&listed), [rotated.id, second.id]);
}

async fn a_glance_shows_count_time_and_opening_and_extends_no_lifetime(room: Room) {
    let thread = owned(&room).await;
    let empty = preview(&room, &thread, 2).await;
    assert_eq!(empty, Some(HistoryPreview::default()));
    let long = format!("\"{}\"", "é".repeat(3_000));
    let scope = room.scope_of(&thread);
    scope
        .add(&[item("a", "1"), item("b", &long), item("c", "3")])
        .await;
    room.advance(SECOND);
    append(&room, &thread, "d").await;
    room.advance(600 * SECOND);
    let before = room.backend.list_threads(None, 10).await.unwrap().threads[0]
        .1
        .clone();

    let shown = preview(&room, &thread, 2).await.unwrap();

    assert_eq!(shown.items, 4);
    let page = scope.page(threadkeep_store::HistoryFrom::Before(u64::MAX), 1);
    let after = room.backend.list_threads(None, 10).await.unwrap().threads[0]
        .1
        .clone();
    // Redis may pause between two clock readings, so allow a minute; a use would extend the lifetime by ten minutes
    assert!(after.expires_ms <= before.expires_ms + 60_000);
    assert_eq!(shown.newest_ms, Some(page.await.unwrap().items[0].at_ms));
    assert_eq!(&*shown.opening[0], "1");
    // the text is cut before byte 4,096, which is inside a character
    assert_eq!(&*shown.opening[1], &long[..4_095]);
    assert!(preview(&room, &thread, 0).await.unwrap().opening.is_empty());
    assert_eq!(preview(&room, &room.subject(), 1).await, None);
    room.advance(3_601 * SECOND);
    assert_eq!(preview(&room, &thread, 1).await, None);
}

async fn a_glance_at_many_large_histories_is_complete(room: Room) {
    let mut threads = Vec::new();
    let large = format!("\"{}\"", "x".repeat(200_000));
    for _ in 0..12 {
        let thread = owned(&room).await;
        room.scope_of(&thread).add(&[item("a", &large)]).await;
        threads.push(thread.id);
    }
    let repeated: Vec<_> = threads.iter().cycle().take(200).copied().collect();

    let previews = room.backend.preview_histories(&repeated, 1).await.unwrap();

    assert_eq!(previews.len(), 200);
    for shown in previews {
        assert_eq!(shown.unwrap().items, 1);
    }
}

async fn a_removed_message_is_not_counted(room: Room) {
    let thread = owned(&room).await;
    append(&room, &thread, "a").await;
    let first = preview(&room, &thread, 0).await.unwrap();
    room.advance(5 * SECOND);
    append(&room, &thread, "b").await;

    let newest = Removal::Newest(1);
    room.scope_of(&thread).remove(newest).await;

    assert_eq!(preview(&room, &thread, 0).await.unwrap(), first);
}

async fn conversations_are_sorted_by_newest_message_despite_other_writes(room: Room) {
    let mut threads = Vec::new();
    for _ in 0..6 {
        threads.push(owned(&room).await);
        room.advance(2 * SECOND);
    }
    // the last two threads have no messages, so they are sorted by creation time
    for (number, thread) in threads[..4].iter().enumerate() {
        match number % 2 {
            0 => append(&room, thread, "a").await,
            _ => merge_append(thread, "a").await,
        }
        room.advance(2 * SECOND);
    }
    let expected: Vec<_> = [3, 2, 1, 0, 5, 4]
        .map(|index: usize| threads[index].id)
        .into();
    for thread in [&threads[4], &threads[0], &threads[2]] {
        thread.merge(&[set("k", "1")]).await;
        thread.set_metadata(r#"{"a":1}"#).await.unwrap();
        room.advance(2 * SECOND);
    }

    for limit in [1, 2, 4, 10] {
        assert_eq!(by_cursor(&room, limit, async || ()).await, expected);
        let mut by_offset = Vec::new();
        for offset in (0..6).step_by(limit) {
            let page = page(&room, PageStart::Offset(offset), limit).await;
            assert_eq!(page.total, 6);
            assert_eq!(page.has_more, offset + limit < 6);
            by_offset.extend(ids(&page));
        }
        assert_eq!(by_offset, expected);
    }
    threads[3].destroy().await;
    assert_eq!(by_cursor(&room, 2, async || ()).await, expected[1..]);
    let listed = page(&room, PageStart::Offset(0), 10).await;
    let counts: Vec<_> = listed
        .conversations
        .iter()
        .map(|one| one.messages)
        .collect();
    assert_eq!(counts, [1, 1, 1, 0, 0]);
}

async fn a_list_has_each_thread_once_during_concurrent_writes(room: Room) {
    let mut threads = Vec::new();
    for number in 0..120 {
        threads.push(owned(&room).await);
        if number % 3 == 0 {
            append(&room, &threads[number], "a").await;
        }
    }
    room.advance(5 * SECOND);
    let (steady, busy) = threads.split_at(100);
    let writes = std::cell::Cell::new(0);
    let between = async || {
        let number = writes.replace(writes.get() + 1);
        append(&room, &busy[number % busy.len()], &format!("m{number}")).await;
        // these writes add no message, so they do not move their threads in the list
        for thread in steady.iter().skip(number % 7).step_by(7) {
            thread.merge(&[set("k", "1")]).await;
        }
    };

    let all = by_cursor(&room, 7, between).await;

    let distinct: BTreeSet<_> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "a thread is listed twice");
    for thread in steady {
        assert!(distinct.contains(&thread.id));
    }
}

async fn a_slow_listing_misses_no_thread_that_moves_up_meanwhile(room: Room) {
    let mut threads = Vec::new();
    for _ in 0..150 {
        threads.push(owned(&room).await);
    }
    room.advance(5 * SECOND);
    let oldest: Vec<_> = threads[..5].to_vec();
    let moving = in_parallel(async move {
        for number in 0..200 {
            oldest[number % 5].merge(&[set("k", "1")]).await;
        }
    });

    while !moving.is_finished() {
        let all = by_cursor(&room, 40, async || ()).await;
        assert_eq!(all.len(), 150);
        assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), 150);
    }

    moving.await.unwrap();
}

async fn threads_of_one_millisecond_are_sorted_by_descending_id(room: Room) {
    room.advance(10 * SECOND);
    let made = std::sync::Mutex::new(BTreeSet::new());
    room.for_each_concurrently(0..80, async |_| {
        let thread = owned(&room).await;
        made.lock().unwrap().insert(thread.id);
    })
    .await;
    let made = made.into_inner().unwrap();

    let all = by_cursor(&room, 9, async || ()).await;

    assert_eq!(all.len(), 80);
    assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), made);
    let listed = page(&room, PageStart::Offset(0), 100).await;
    let positions = listed.conversations.iter();
    let positions: Vec<_> = positions.map(|one| (one.newest_ms, one.thread)).collect();
    assert!(positions.is_sorted_by(|a, b| a > b));
    assert_eq!(ids(&listed), all);
}

async fn messages_are_read_newest_first(room: Room) {
    let (_, scopes) = room.services();
    let thread = owned(&room).await;
    let items: Vec<_> = (0..450)
        .map(|number| item(&format!("m{number}"), "1"))
        .collect();
    room.scope_of(&thread).add(&items).await;
    let read = async |limit: usize| {
        let mut seqs = Vec::new();
        let service = service(&room);
        let summary = service.read_back(&scopes, &thread.id, |item| {
            seqs.push(item.seq);
            match seqs.len() == limit {
                true => std::ops::ControlFlow::Break(()),
                false => std::ops::ControlFlow::Continue(()),
            }
        });
        assert_eq!(summary.await.unwrap().len(), 450);
        seqs
    };

    assert_eq!(read(1_000).await, (1..=450).rev().collect::<Vec<_>>());
    assert_eq!(read(3).await, [450, 449, 448]);
    assert!(
        thread
            .store
            .get_thread(&thread.id, Reader::ALL)
            .await
            .is_ok()
    );
}

super::over_every_store! {
    appends_move_an_owned_thread_at_most_once_a_second,
    other_writes_to_a_scope_and_repeated_appends_move_no_thread,
    an_append_to_a_thread_without_an_owner_moves_nothing,
    a_moved_thread_keeps_its_position_when_it_is_rotated,
    a_glance_shows_count_time_and_opening_and_extends_no_lifetime,
    a_glance_at_many_large_histories_is_complete,
    a_removed_message_is_not_counted,
    conversations_are_sorted_by_newest_message_despite_other_writes,
    a_list_has_each_thread_once_during_concurrent_writes,
    a_slow_listing_misses_no_thread_that_moves_up_meanwhile,
    threads_of_one_millisecond_are_sorted_by_descending_id,
    messages_are_read_newest_first,
}
