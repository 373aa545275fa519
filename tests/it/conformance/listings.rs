use threadkeep_store::Listing;

use super::room::Room;

const HANDLES: Listing<'_> = Listing {
    name: "state-handles",
    owner: None,
};

fn of<'a>(owner: &'a str) -> Listing<'a> {
    Listing {
        owner: Some(owner),
        ..HANDLES
    }
}

async fn add(room: &Room, listing: Listing<'_>, member: &str, at_ms: u64) {
    let added = room
        .backend
        .list_add(&listing, member, at_ms, at_ms + 1_000);
    added.await.unwrap();
}

async fn page(room: &Room, listing: Listing<'_>, offset: u64, limit: usize) -> Vec<String> {
    let page = room.backend.list_page(&listing, offset, limit);
    page.await.unwrap()
}

async fn all(room: &Room, listing: Listing<'_>) -> Vec<String> {
    page(room, listing, 0, 1_000).await
}

async fn due(room: &Room, by_ms: u64, limit: usize) -> Vec<String> {
    let due = room.backend.list_due(HANDLES.name, by_ms, limit);
    due.await.unwrap()
}

async fn remove(room: &Room, members: &[&str]) {
    let members: Vec<_> = members.iter().map(|member| (*member).to_owned()).collect();
    let removed = room.backend.list_remove(HANDLES.name, &members);
    removed.await.unwrap();
}

async fn schedule_check(room: &Room, member: &str, check_ms: u64) {
    let members = [(member.to_owned(), check_ms)];
    let moved = room.backend.list_reschedule(HANDLES.name, &members);
    moved.await.unwrap();
}

async fn an_unknown_list_is_empty(room: Room) {
    assert!(all(&room, HANDLES).await.is_empty());
    assert!(all(&room, of("a")).await.is_empty());
    assert!(due(&room, u64::MAX >> 12, 10).await.is_empty());
    remove(&room, &["a"]).await;
    remove(&room, &[]).await;
    schedule_check(&room, "a", 1).await;
    assert!(due(&room, u64::MAX >> 12, 10).await.is_empty());
}

async fn the_newest_member_comes_first(room: Room) {
    for (member, at_ms) in [("b", 2_000), ("a", 3_000), ("c", 1_000)] {
        add(&room, HANDLES, member, at_ms).await;
    }

    assert_eq!(all(&room, HANDLES).await, ["a", "b", "c"]);
}

async fn members_of_equal_times_have_a_fixed_order(room: Room) {
    for member in ["b", "c", "a"] {
        add(&room, HANDLES, member, 1_000).await;
    }

    assert_eq!(all(&room, HANDLES).await, ["c", "b", "a"]);
}

async fn pages_begin_at_any_offset(room: Room) {
    for number in 0..10 {
        add(&room, HANDLES, &number.to_string(), 1_000 + number).await;
    }

    assert_eq!(page(&room, HANDLES, 0, 3).await, ["9", "8", "7"]);
    assert_eq!(page(&room, HANDLES, 3, 3).await, ["6", "5", "4"]);
    assert_eq!(page(&room, HANDLES, 9, 3).await, ["0"]);
    assert!(page(&room, HANDLES, 10, 3).await.is_empty());
    assert!(page(&room, HANDLES, u64::MAX, 3).await.is_empty());
    assert!(page(&room, HANDLES, 0, 0).await.is_empty());
    assert_eq!(page(&room, HANDLES, 8, 1_000_000).await, ["1", "0"]);
}

async fn an_owner_sees_only_its_members(room: Room) {
    add(&room, of("a"), "1", 1_000).await;
    add(&room, of("b"), "2", 2_000).await;
    add(&room, of("a"), "3", 3_000).await;
    add(&room, HANDLES, "4", 4_000).await;

    assert_eq!(all(&room, HANDLES).await, ["4", "3", "2", "1"]);
    assert_eq!(all(&room, of("a")).await, ["3", "1"]);
    assert_eq!(page(&room, of("a"), 1, 1).await, ["1"]);
    assert_eq!(all(&room, of("b")).await, ["2"]);
    assert!(all(&room, of("c")).await.is_empty());
}

async fn an_owner_may_be_any_text(room: Room) {
    let owners = ["", " ", "a", "A", "a:b", "é", "e\u{301}", "{x}", "a\n", "*"];
    for (number, owner) in owners.iter().enumerate() {
        add(&room, of(owner), &number.to_string(), 1_000).await;
    }

    for (number, owner) in owners.iter().enumerate() {
        assert_eq!(all(&room, of(owner)).await, [number.to_string()]);
    }
}

async fn a_member_that_is_added_again_keeps_its_position(room: Room) {
    add(&room, of("a"), "1", 1_000).await;
    add(&room, of("a"), "2", 2_000).await;

    add(&room, of("a"), "1", 3_000).await;

    assert_eq!(all(&room, HANDLES).await, ["2", "1"]);
    assert_eq!(all(&room, of("a")).await, ["2", "1"]);
    assert_eq!(due(&room, 2_000, 10).await, ["1"]);
}

async fn a_removed_member_is_in_no_list(room: Room) {
    add(&room, of("a"), "1", 1_000).await;
    add(&room, of("b"), "2", 2_000).await;
    add(&room, HANDLES, "3", 3_000).await;
    add(&room, of("a"), "4", 4_000).await;

    remove(&room, &["1", "3", "unknown", "2"]).await;

    assert_eq!(all(&room, HANDLES).await, ["4"]);
    assert_eq!(all(&room, of("a")).await, ["4"]);
    assert!(all(&room, of("b")).await.is_empty());
    assert_eq!(due(&room, 100_000, 10).await, ["4"]);
    remove(&room, &["1"]).await;
    add(&room, of("b"), "1", 9_000).await;
    assert_eq!(all(&room, HANDLES).await, ["1", "4"]);
    assert_eq!(all(&room, of("a")).await, ["4"]);
    assert_eq!(all(&room, of("b")).await, ["1"]);
}

async fn the_most_overdue_come_first(room: Room) {
    for (member, check_ms) in [("a", 500), ("b", 300), ("c", 400), ("d", 300)] {
        let added = room.backend.list_add(&HANDLES, member, 1, check_ms);
        added.await.unwrap();
    }

    assert!(due(&room, 299, 10).await.is_empty());
    assert_eq!(due(&room, 300, 10).await, ["b", "d"]);
    assert_eq!(due(&room, 1_000, 3).await, ["b", "d", "c"]);
    assert_eq!(due(&room, 1_000, 10).await, ["b", "d", "c", "a"]);
    assert!(due(&room, 1_000, 0).await.is_empty());
    assert_eq!(all(&room, HANDLES).await.len(), 4);
}

async fn a_checked_member_is_due_at_its_next_check(room: Room) {
    for member in ["a", "b"] {
        add(&room, HANDLES, member, 1_000).await;
    }

    schedule_check(&room, "a", 5_000).await;
    schedule_check(&room, "b", 1_500).await;
    schedule_check(&room, "unknown", 1).await;

    assert_eq!(due(&room, 4_999, 10).await, ["b"]);
    assert_eq!(due(&room, 5_000, 10).await, ["b", "a"]);
    remove(&room, &["a"]).await;
    schedule_check(&room, "a", 1).await;
    assert_eq!(due(&room, 10_000, 10).await, ["b"]);
    assert_eq!(all(&room, HANDLES).await, ["b"]);
}

async fn lists_with_different_names_are_independent(room: Room) {
    let sessions = Listing {
        name: "sessions",
        owner: Some("a"),
    };
    add(&room, of("a"), "1", 1_000).await;
    add(&room, sessions, "1", 2_000).await;
    add(&room, sessions, "2", 3_000).await;

    remove(&room, &["1", "2"]).await;

    assert!(all(&room, HANDLES).await.is_empty());
    assert_eq!(all(&room, sessions).await, ["2", "1"]);
    let unfiltered = Listing {
        owner: None,
        ..sessions
    };
    assert_eq!(all(&room, unfiltered).await, ["2", "1"]);
    assert!(due(&room, 100_000, 10).await.is_empty());
}

async fn a_list_may_have_thousands_of_members(room: Room) {
    let members = (0..3_000_u64).map(|number| {
        let room = &room;
        async move {
            let owner = if number % 2 == 0 { "even" } else { "odd" };
            add(room, of(owner), &format!("{number:04}"), 1_000 + number).await;
        }
    });
    futures_util::future::join_all(members).await;

    assert_eq!(page(&room, HANDLES, 2_999, 10).await, ["0000"]);
    assert_eq!(page(&room, of("odd"), 1_499, 10).await, ["0001"]);
    let overdue = due(&room, 1_000_000, 5_000).await;
    let overdue: Vec<_> = overdue.iter().map(String::as_str).collect();
    remove(&room, &overdue).await;
    assert!(all(&room, of("even")).await.is_empty());
}

super::over_every_store_and_confirmed! {
    an_unknown_list_is_empty,
    the_newest_member_comes_first,
    members_of_equal_times_have_a_fixed_order,
    pages_begin_at_any_offset,
    an_owner_sees_only_its_members,
    an_owner_may_be_any_text,
    a_member_that_is_added_again_keeps_its_position,
    a_removed_member_is_in_no_list,
    the_most_overdue_come_first,
    a_checked_member_is_due_at_its_next_check,
    lists_with_different_names_are_independent,
    a_list_may_have_thousands_of_members,
}
