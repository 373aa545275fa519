use std::time::Duration;

use threadkeep_store::KeyOrder;

use super::room::Room;
use super::space::{key, seconds};

async fn keys_are_sorted_by_bytes(room: Room) {
    let space = room.space("n");
    let names = [
        "",
        "/",
        "A",
        "a",
        "a b",
        "a!",
        "a/1",
        "a/10",
        "a/2",
        "aa",
        "b",
        "\u{7e}",
        "ä",
        "é",
        "\u{ffff}",
        "\u{10000}",
        "😀",
    ];
    for name in names.iter().rev().filter(|name| !name.is_empty()) {
        space.put(name, name).await;
    }
    // entries of namespaces with adjacent names must not be listed
    for name in ["m", "n2", "N"] {
        room.space(name).put("a/1", "x").await;
    }

    let mut sorted: Vec<_> = names[1..].to_vec();
    sorted.sort_unstable();
    let reversed: Vec<_> = sorted.iter().rev().copied().collect();
    for limit in [1, 3, 1_000] {
        assert_eq!(space.keys("", limit).await, sorted);
        let descending = space.keys_in("", KeyOrder::Descending, limit).await;
        assert_eq!(descending, reversed);
    }
    for prefix in [
        "a",
        "a/",
        "a/1",
        "ä",
        "\u{10000}",
        "b",
        "none",
        "😀😀",
        "\n",
    ] {
        let expected: Vec<_> = sorted.iter().filter(|k| k.starts_with(prefix)).collect();
        let listed = space.keys(prefix, 2).await;
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{prefix:?}");
        let descending = space.keys_in(prefix, KeyOrder::Descending, 2).await;
        assert!(descending.iter().eq(listed.iter().rev()), "{prefix:?}");
    }
}

async fn a_list_and_a_read_return_the_same_head(room: Room) {
    let space = room.space("n");
    space.put_for("a", "12", seconds(50)).await;
    space.put("b", "").await;
    space.put("b", "123").await;

    let page = space.page("", None, KeyOrder::Ascending, 10).await;

    assert_eq!(page.next, None);
    assert_eq!(page.entries.len(), 2);
    for (key, head) in page.entries {
        assert_eq!(space.get(key.as_str()).await.unwrap().head, head);
    }
}

async fn a_page_may_start_after_any_key(room: Room) {
    let space = room.space("n");
    for name in ["a", "b1", "b2", "b3", "c"] {
        space.put(name, "").await;
    }
    let list = async |prefix: &str, after: &str| {
        let after = key(after);
        let page = space.page(prefix, Some(&after), KeyOrder::Ascending, 10);
        let entries = page.await.entries.into_iter();
        let names = entries.map(|(key, _)| key.as_str().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };

    assert_eq!(list("b", "b1").await, "b2 b3");
    assert_eq!(list("b", "b15").await, "b2 b3");
    assert_eq!(list("b", "a").await, "b1 b2 b3");
    assert_eq!(list("b", "b3").await, "");
    assert_eq!(list("b", "c").await, "");
    assert_eq!(list("", "b2").await, "b3 c");
}

async fn a_descending_page_may_start_before_any_key(room: Room) {
    let space = room.space("n");
    for name in ["a", "b1", "b2", "b3", "c"] {
        space.put(name, "").await;
    }
    let list = async |prefix: &str, after: &str| {
        let after = key(after);
        let page = space.page(prefix, Some(&after), KeyOrder::Descending, 10);
        let entries = page.await.entries.into_iter();
        let names = entries.map(|(key, _)| key.as_str().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };

    assert_eq!(list("b", "b3").await, "b2 b1");
    assert_eq!(list("b", "b15").await, "b1");
    assert_eq!(list("b", "c").await, "b3 b2 b1");
    assert_eq!(list("b", "b1").await, "");
    assert_eq!(list("b", "b").await, "");
    assert_eq!(list("b", "a").await, "");
    assert_eq!(list("", "b2").await, "b1 a");
}

async fn puts_and_deletes_between_pages_neither_hide_nor_repeat_entries(room: Room) {
    let space = room.space("n");
    let name = |number: u32| format!("{number:04}");
    for number in 0..600 {
        space.put(&name(number), "x").await;
    }
    let mut listed = Vec::new();
    let mut after = None;
    let mut round = 0;

    loop {
        let page = space
            .page("", after.as_ref(), KeyOrder::Ascending, 50)
            .await;
        listed.extend(page.entries.iter().map(|(key, _)| key.as_str().to_owned()));
        after = page.next;
        let Some(last) = &after else { break };
        // delete the last listed entry and an unlisted entry whose number is not a multiple of 3, and add a new entry
        space.delete(last.as_str()).await;
        space.delete(&name(599 - 3 * round)).await;
        space.put(&format!("{}+", name(30 * round)), "new").await;
        round += 1;
    }

    assert!(listed.is_sorted());
    let stays = |number: &u32| number.is_multiple_of(3);
    for number in (0..600).filter(stays) {
        let found = listed.iter().filter(|key| **key == name(number)).count();
        assert_eq!(found, 1, "{number}");
    }
    assert!(round > 10);
}

async fn expired_entries_leave_no_gaps_in_a_list(room: Room) {
    let space = room.space("n");
    for number in 0..200 {
        let lifetime = seconds(if number % 10 == 0 { 1_000 } else { 10 });
        space.put_for(&format!("{number:03}"), "x", lifetime).await;
    }
    room.advance(Duration::from_secs(10));

    let keys = space.keys("", 7).await;

    let living: Vec<_> = (0..20)
        .map(|number| format!("{:03}", number * 10))
        .collect();
    assert_eq!(keys, living);
}

super::over_every_store! {
    keys_are_sorted_by_bytes,
    a_list_and_a_read_return_the_same_head,
    a_page_may_start_after_any_key,
    a_descending_page_may_start_before_any_key,
    puts_and_deletes_between_pages_neither_hide_nor_repeat_entries,
    expired_entries_leave_no_gaps_in_a_list,
}
