use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::room::Room;

const LASTS: Duration = Duration::from_secs(100);
/// Tolerance for delays on a busy machine.
const MOMENT: Duration = Duration::from_secs(30);

async fn hold(room: &Room, slots: u16, holder: &str) -> Vec<u16> {
    let mut held = room
        .backend
        .hold("pool", slots, holder, LASTS)
        .await
        .unwrap();
    held.sort_unstable();
    held
}

/// Calls [`hold`] twice for each holder, after which slots no longer move. Returns the slots of each holder.
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

async fn one_holder_has_all(room: Room) {
    assert_eq!(hold(&room, 16, "a").await, (0..16).collect::<Vec<_>>());
    assert_eq!(hold(&room, 16, "a").await.len(), 16);
}

async fn what_is_held_is_nobody_elses_until_it_is_given_back(room: Room) {
    hold(&room, 16, "a").await;

    let b_first = hold(&room, 16, "b").await;
    let a_then = hold(&room, 16, "a").await;
    let b_then = hold(&room, 16, "b").await;

    assert!(b_first.is_empty());
    assert_eq!((a_then.len(), b_then.len()), (8, 8));
    assert!(a_then.iter().all(|slot| !b_then.contains(slot)));
}

async fn the_shares_are_fair(room: Room) {
    assert_eq!(sizes(&shares(&room, 16, &["a", "b"]).await), [8, 8]);
    let mut of_three = sizes(&shares(&room, 16, &["a", "b", "c"]).await);
    of_three.sort_unstable();
    assert_eq!(of_three, [4, 6, 6]);
    let of_four = sizes(&shares(&room, 16, &["d", "b", "c", "a"]).await);
    assert_eq!(of_four, [4, 4, 4, 4]);
}

async fn of_more_holders_than_slots_some_have_none(room: Room) {
    let mut shares = sizes(&shares(&room, 2, &["a", "b", "c"]).await);
    shares.sort_unstable();
    assert_eq!(shares, [0, 1, 1]);
}

async fn who_renews_keeps_the_same_slots(room: Room) {
    let before = shares(&room, 16, &["a", "b", "c"]).await;

    for _ in 0..3 {
        room.advance(LASTS - MOMENT);
        assert_eq!(shares(&room, 16, &["a", "b", "c"]).await, before);
    }
}

async fn what_is_not_renewed_is_free(room: Room) {
    let before = shares(&room, 16, &["a", "b"]).await;
    room.advance(LASTS - MOMENT);
    assert_eq!(hold(&room, 16, "b").await, before[1]);
    room.advance(MOMENT);

    assert_eq!(hold(&room, 16, "b").await.len(), 16);
    assert!(hold(&room, 16, "a").await.is_empty());
}

async fn what_is_given_back_is_free_at_once(room: Room) {
    shares(&room, 16, &["a", "b"]).await;

    room.backend.release("pool", "a").await.unwrap();
    room.backend.release("pool", "never there").await.unwrap();
    room.backend.release("no such pool", "a").await.unwrap();

    assert_eq!(hold(&room, 16, "b").await.len(), 16);
}

async fn pools_are_apart(room: Room) {
    hold(&room, 16, "a").await;

    let other = room.backend.hold("Other.pool-1_", 4, "b", LASTS).await;
    room.backend.release("pool", "b").await.unwrap();
    let again = room.backend.hold("Other.pool-1_", 4, "b", LASTS).await;

    assert_eq!(other.unwrap(), [0, 1, 2, 3]);
    assert_eq!(again.unwrap(), [0, 1, 2, 3]);
}

async fn of_many_who_come_at_once_no_two_hold_the_same(room: Room) {
    let room = Arc::new(room);
    let all = (0..8).map(|number| {
        let room = Arc::clone(&room);
        tokio::spawn(async move { hold(&room, 16, &format!("holder {number}")).await })
    });
    let mut held = Vec::new();
    for one in all.collect::<Vec<_>>() {
        held.extend(one.await.unwrap());
    }

    held.sort_unstable();
    assert_eq!(held, (0..16).collect::<Vec<_>>());
}

async fn introduce(room: &Room, pool: &str, holder: &str) -> Vec<Option<String>> {
    let backend = &room.backend;
    let heard = backend.introduce(pool, holder, holder.as_bytes(), None, LASTS);
    let said = heard.await.unwrap().said.into_iter();
    let text = |words: Bytes| String::from_utf8(words.to_vec()).unwrap();
    let mut said: Vec<_> = said.map(|words| words.map(text)).collect();
    said.sort_unstable();
    said
}

fn said(words: &[&str]) -> Vec<Option<String>> {
    words.iter().map(|word| Some((*word).to_owned())).collect()
}

async fn what_a_holder_says_is_heard_by_all_until_it_ends(room: Room) {
    assert_eq!(introduce(&room, "pool", "a").await, said(&["a"]));
    hold(&room, 16, "a").await;
    assert_eq!(
        introduce(&room, "pool", "b\n b").await,
        said(&["a", "b\n b"])
    );
    assert_eq!(introduce(&room, "other", "c").await, said(&["c"]));

    room.advance(LASTS - MOMENT);
    assert_eq!(introduce(&room, "pool", "a").await, said(&["a", "b\n b"]));
    room.advance(MOMENT);
    assert_eq!(introduce(&room, "pool", "a").await, said(&["a"]));

    room.backend.release("pool", "a").await.unwrap();
    assert_eq!(introduce(&room, "pool", "b").await, said(&["b"]));
}

async fn a_note_outlives_those_who_left_it(room: Room) {
    let note = async |holder: &str, new: Option<&str>| {
        let new = new.map(str::as_bytes);
        let heard = room.backend.introduce("pool", holder, b"", new, LASTS);
        heard.await.unwrap().note
    };

    assert_eq!(note("a", None).await, None);
    assert_eq!(note("a", Some("first")).await, None);
    assert_eq!(note("b", Some("second")).await.unwrap(), "first");
    room.backend.release("pool", "a").await.unwrap();
    room.backend.release("pool", "b").await.unwrap();
    room.advance(LASTS * 100);
    hold(&room, 16, "c").await;

    assert_eq!(note("c", None).await.unwrap(), "second");
}

async fn a_holder_that_says_nothing_is_known_to_be_there(room: Room) {
    hold(&room, 16, "silent").await;

    let heard = introduce(&room, "pool", "a").await;
    room.advance(LASTS);
    let later = introduce(&room, "pool", "a").await;

    assert_eq!(heard, [None, Some("a".to_owned())]);
    assert_eq!(later, said(&["a"]));
}

super::over_every_store! {
    one_holder_has_all,
    what_is_held_is_nobody_elses_until_it_is_given_back,
    the_shares_are_fair,
    of_more_holders_than_slots_some_have_none,
    who_renews_keeps_the_same_slots,
    what_is_not_renewed_is_free,
    what_is_given_back_is_free_at_once,
    what_a_holder_says_is_heard_by_all_until_it_ends,
    a_holder_that_says_nothing_is_known_to_be_there,
    a_note_outlives_those_who_left_it,
    pools_are_apart,
    of_many_who_come_at_once_no_two_hold_the_same,
}
