use threadkeep_domain::Refusal;
use threadkeep_domain::scope::{HistoryItem, HistorySummary};
use threadkeep_store::HistoryFrom::{After, Before};

use super::histories::summary;
use super::room::Room;
use super::scope_room::{item, numbered, places, set};

fn cost(id: &str, value: &str) -> u64 {
    (id.len() + value.len() + 64) as u64
}

async fn a_history_may_fill_its_limit_to_the_byte(room: Room) {
    let limit = cost("a", "1") + cost("bb", "22");
    let session = room.session().keeping(limit, false);
    session.add(&[item("a", "1")]).await;
    let before = session.whole().await;

    let refused = session.try_add(&[item("bb", "222")]).await;
    assert_eq!(session.whole().await, before);
    let fits = session.try_add(&[item("bb", "22")]).await;
    let full = session.try_add(&[item("c", "1")]).await;
    let repeated = session.add(&[item("a", "1"), item("bb", "22")]).await;

    assert_eq!(
        refused,
        Err(Refusal::HistoryTooLarge {
            limit_bytes: limit,
            size_bytes: 66,
            attempted_bytes: limit + 1,
        })
    );
    assert_eq!(places(&fits.unwrap()), [(2, false)]);
    assert!(matches!(full, Err(Refusal::HistoryTooLarge { .. })));
    assert_eq!(repeated, [(1, true), (2, true)]);
    assert_eq!(summary(&session).await.bytes, limit);
}

async fn items_that_fit_one_by_one_are_refused_together(room: Room) {
    let session = room.session().keeping(3 * 66, false);
    session.add(&numbered(1..3)).await;
    let before = session.whole().await;

    let refused = session.try_add(&numbered(2..5)).await;

    assert!(matches!(
        refused,
        Err(Refusal::HistoryTooLarge {
            size_bytes: 132,
            attempted_bytes: 264,
            ..
        })
    ));
    assert_eq!(session.whole().await, before);
    assert_eq!(session.add(&numbered(2..4)).await, [(2, true), (3, false)]);
}

async fn a_lowered_limit_refuses_only_new_items(room: Room) {
    let session = room.session();
    session.add(&numbered(1..5)).await;
    let lowered = session.clone().keeping(100, false);

    assert!(lowered.try_add(&numbered(5..6)).await.is_err());
    assert_eq!(lowered.add(&numbered(4..5)).await, [(4, true)]);
    lowered.run(&[set("k", "1")]).await;

    assert_eq!(session.items().await.len(), 4);
}

async fn the_oldest_items_are_dropped_if_the_limit_allows_it(room: Room) {
    let session = room.session().keeping(3 * 66, true);
    session.add(&numbered(1..4)).await;

    assert_eq!(session.add(&numbered(4..6)).await, [(4, false), (5, false)]);

    assert_eq!(session.seqs(After(0), 10).await, [3, 4, 5]);
    let expected = HistorySummary {
        first_seq: 3,
        next_seq: 6,
        removed: 0,
        bytes: 3 * 66,
    };
    assert_eq!(summary(&session).await, expected);
    assert_eq!(session.seqs(After(1), 1).await, [3]);
    assert!(session.seqs(Before(3), 10).await.is_empty());
    let readded = session.add(&[item("1", "\"new\"")]).await;
    assert_eq!(readded, [(6, false)]);
    assert_eq!(session.seqs(After(0), 10).await, [5, 6]);
}

async fn items_that_exceed_the_whole_limit_are_refused(room: Room) {
    let session = room.session().keeping(3 * 66, true);
    session.add(&numbered(1..3)).await;
    let before = session.whole().await;
    let large = item("l", &"1".repeat(200));

    let refused = session.try_add(&[large]).await;
    let together = session.try_add(&numbered(3..7)).await;
    assert_eq!(session.whole().await, before);
    let just = session.add(&numbered(3..6)).await;

    assert_eq!(
        refused,
        Err(Refusal::HistoryTooLarge {
            limit_bytes: 198,
            size_bytes: 132,
            attempted_bytes: 132 + 265,
        })
    );
    assert!(matches!(together, Err(Refusal::HistoryTooLarge { .. })));
    assert_eq!(just, [(3, false), (4, false), (5, false)]);
    assert_eq!(session.seqs(After(0), 10).await, [3, 4, 5]);
}

async fn one_large_item_drops_all_others(room: Room) {
    let session = room.session().keeping(1_000, true);
    session.add(&numbered(1..10)).await;
    let value = "7".repeat(1_000 - 64 - 1);

    session.add(&[item("l", &value)]).await;

    assert_eq!(session.items().await, [(10, "l".into(), value)]);
    assert_eq!(summary(&session).await.bytes, 1_000);
}

async fn a_write_without_items_drops_items_past_a_lowered_limit(room: Room) {
    let session = room.session();
    session.add(&numbered(1..6)).await;
    let lowered = session.clone().keeping(2 * 66, true);

    assert_eq!(lowered.add(&[item("1", "1")]).await, [(1, true)]);
    assert_eq!(session.items().await.len(), 5);
    lowered.run(&[set("k", "1")]).await;

    assert_eq!(session.seqs(After(0), 10).await, [4, 5]);
    assert_eq!(summary(&session).await.bytes, 2 * 66);
}

async fn large_items_fill_the_documented_8_mib(room: Room) {
    let session = room.session();
    assert_eq!(session.policy.history.max_bytes, 8_388_608);
    let value = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let mibibyte = |number: u32| item(&number.to_string(), &value(1_048_576 - 65));
    for number in 1..8 {
        session.add(&[mibibyte(number)]).await;
    }

    let refused = session.try_add(&[item("8", &value(1_048_576 - 64))]).await;
    let fits = session.add(&[mibibyte(8)]).await;

    assert!(matches!(refused, Err(Refusal::HistoryTooLarge { .. })));
    assert_eq!(fits, [(8, false)]);
    let items = session.items().await;
    assert!(
        items
            .iter()
            .all(|(.., text)| *text == value(1_048_576 - 65))
    );
    assert_eq!(summary(&session).await.bytes, 8_388_608);
}

async fn history_bytes_match_the_cost_of_the_items(room: Room) {
    let session = room.session();
    let items: Vec<HistoryItem> = [("a", "\"é\""), ("bb", "[1,2]"), ("c", "null")]
        .map(|(id, value)| item(id, value))
        .into();

    session.add(&items).await;

    let sum: u64 = items.iter().map(HistoryItem::cost_bytes).sum();
    assert_eq!(summary(&session).await.bytes, sum);
    assert_eq!(
        sum,
        cost("a", "\"é\"") + cost("bb", "[1,2]") + cost("c", "null")
    );
}

super::over_every_store! {
    a_history_may_fill_its_limit_to_the_byte,
    items_that_fit_one_by_one_are_refused_together,
    a_lowered_limit_refuses_only_new_items,
    the_oldest_items_are_dropped_if_the_limit_allows_it,
    items_that_exceed_the_whole_limit_are_refused,
    one_large_item_drops_all_others,
    a_write_without_items_drops_items_past_a_lowered_limit,
    large_items_fill_the_documented_8_mib,
    history_bytes_match_the_cost_of_the_items,
}
