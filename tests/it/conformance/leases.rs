use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::room::Room;

const LEASE: Duration = Duration::from_secs(100);
/// Tolerance for delays on a busy machine.
const MOMENT: Duration = Duration::from_secs(30);

async fn hold(room: &Room, slots: u16, holder: &str) -> Vec<u16> {
    let mut held = room
        .backend
        .hold("pool", slots, holder, LEASE)
        .await
        .unwrap();
    held.sort_unstable();
    held
}

/// Calls [`hold`] twice for each holder, because slots move between holders until then. Returns each holder's slots.
async fn shares(room: &Room, slots: u16, holders: &[&str]) -> Vec<Vec<u16>> {
    let mut shares = Vec::new();
    for _ in 0..2 {
        shares.clear();
        for holder in holders {
            shares.push(hold(room, slots, holder).await);
        }
    }
    let mut all: Vec<_> = shares.concat();
    all.sort_unstable();
    assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{shares:?}");
    shares
}

fn sizes(shares: &[Vec<u16>]) -> Vec<usize> {
    shares.iter().map(Vec::len).collect()
}

async fn a_single_holder_gets_every_slot(room: Room) {
    assert_eq!(hold(&room, 16, "a").await, (0..16).collect::<Vec<_>>());
    assert_eq!(hold(&room, 16, "a").await.len(), 16);
}

async fn a_held_slot_stays_with_its_holder_until_it_is_given_up(room: Room) {
    hold(&room, 16, "a").await;

    let b_first = hold(&room, 16, "b").await;
    let a_then = hold(&room, 16, "a").await;
    let b_then = hold(&room, 16, "b").await;

    assert!(b_first.is_empty());
    assert_eq!((a_then.len(), b_then.len()), (8, 8));
    assert!(a_then.iter().all(|slot| !b_then.contains(slot)));
}

async fn slots_are_shared_fairly(room: Room) {
    assert_eq!(sizes(&shares(&room, 16, &["a", "b"]).await), [8, 8]);
    let mut of_three = sizes(&shares(&room, 16, &["a", "b", "c"]).await);
    of_three.sort_unstable();
    assert_eq!(of_three, [4, 6, 6]);
    let of_four = sizes(&shares(&room, 16, &["d", "b", "c", "a"]).await);
    assert_eq!(of_four, [4, 4, 4, 4]);
}

async fn surplus_holders_get_no_slot(room: Room) {
    let mut shares = sizes(&shares(&room, 2, &["a", "b", "c"]).await);
    shares.sort_unstable();
    assert_eq!(shares, [0, 1, 1]);
}

async fn a_holder_that_renews_keeps_its_slots(room: Room) {
    let before = shares(&room, 16, &["a", "b", "c"]).await;

    for _ in 0..3 {
        room.advance(LEASE - MOMENT);
        assert_eq!(shares(&room, 16, &["a", "b", "c"]).await, before);
    }
}

async fn slots_that_are_not_renewed_become_free(room: Room) {
    let before = shares(&room, 16, &["a", "b"]).await;
    room.advance(LEASE - MOMENT);
    assert_eq!(hold(&room, 16, "b").await, before[1]);
    room.advance(MOMENT);

    assert_eq!(hold(&room, 16, "b").await.len(), 16);
    assert!(hold(&room, 16, "a").await.is_empty());
}

async fn released_slots_are_free_immediately(room: Room) {
    shares(&room, 16, &["a", "b"]).await;

    room.backend.release("pool", "a").await.unwrap();
    room.backend.release("pool", "never there").await.unwrap();
    room.backend.release("no such pool", "a").await.unwrap();

    assert_eq!(hold(&room, 16, "b").await.len(), 16);
}

async fn pools_are_independent(room: Room) {
    hold(&room, 16, "a").await;

    let other = room.backend.hold("Other.pool-1_", 4, "b", LEASE).await;
    room.backend.release("pool", "b").await.unwrap();
    let again = room.backend.hold("Other.pool-1_", 4, "b", LEASE).await;

    assert_eq!(other.unwrap(), [0, 1, 2, 3]);
    assert_eq!(again.unwrap(), [0, 1, 2, 3]);
}

async fn concurrent_holders_get_distinct_slots(room: Room) {
    let room = Arc::new(room);
    let holders = (0..8).map(|number| {
        let room = Arc::clone(&room);
        tokio::spawn(async move { hold(&room, 16, &format!("holder {number}")).await })
    });
    let mut held = Vec::new();
    for holder in holders.collect::<Vec<_>>() {
        held.extend(holder.await.unwrap());
    }

    held.sort_unstable();
    assert_eq!(held, (0..16).collect::<Vec<_>>());
}

async fn announce(room: &Room, pool: &str, holder: &str) -> Vec<Option<String>> {
    let backend = &room.backend;
    let answer = backend.announce(pool, holder, holder.as_bytes(), None, LEASE);
    let announcements = answer.await.unwrap().announcements.into_iter();
    let decode = |text: Bytes| String::from_utf8(text.to_vec()).unwrap();
    let mut announcements: Vec<_> = announcements.map(|text| text.map(decode)).collect();
    announcements.sort_unstable();
    announcements
}

fn announcements(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

async fn announcements_reach_every_holder_until_they_expire(room: Room) {
    assert_eq!(announce(&room, "pool", "a").await, announcements(&["a"]));
    hold(&room, 16, "a").await;
    assert_eq!(
        announce(&room, "pool", "b\n b").await,
        announcements(&["a", "b\n b"])
    );
    assert_eq!(announce(&room, "other", "c").await, announcements(&["c"]));

    room.advance(LEASE - MOMENT);
    assert_eq!(
        announce(&room, "pool", "a").await,
        announcements(&["a", "b\n b"])
    );
    room.advance(MOMENT);
    assert_eq!(announce(&room, "pool", "a").await, announcements(&["a"]));

    room.backend.release("pool", "a").await.unwrap();
    assert_eq!(announce(&room, "pool", "b").await, announcements(&["b"]));
}

async fn a_note_outlives_its_holders(room: Room) {
    let note = async |holder: &str, new: Option<&str>| {
        let new = new.map(str::as_bytes);
        let answer = room.backend.announce("pool", holder, b"", new, LEASE);
        answer.await.unwrap().note
    };

    assert_eq!(note("a", None).await, None);
    assert_eq!(note("a", Some("first")).await, None);
    assert_eq!(note("b", Some("second")).await.unwrap(), "first");
    room.backend.release("pool", "a").await.unwrap();
    room.backend.release("pool", "b").await.unwrap();
    room.advance(LEASE * 100);
    hold(&room, 16, "c").await;

    assert_eq!(note("c", None).await.unwrap(), "second");
}

async fn a_holder_without_an_announcement_is_listed(room: Room) {
    hold(&room, 16, "silent").await;

    let before = announce(&room, "pool", "a").await;
    room.advance(LEASE);
    let after = announce(&room, "pool", "a").await;

    assert_eq!(before, [None, Some("a".to_owned())]);
    assert_eq!(after, announcements(&["a"]));
}

super::over_every_store! {
    a_single_holder_gets_every_slot,
    a_held_slot_stays_with_its_holder_until_it_is_given_up,
    slots_are_shared_fairly,
    surplus_holders_get_no_slot,
    a_holder_that_renews_keeps_its_slots,
    slots_that_are_not_renewed_become_free,
    released_slots_are_free_immediately,
    announcements_reach_every_holder_until_they_expire,
    a_holder_without_an_announcement_is_listed,
    a_note_outlives_its_holders,
    pools_are_independent,
    concurrent_holders_get_distinct_slots,
}
