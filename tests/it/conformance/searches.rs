use std::sync::Arc;
use std::time::Duration;

use threadkeep_domain::{ContentType, EntryPolicy, Lifetime};
use threadkeep_service::{
    EntryDraft, NamespaceOrder, NamespaceRanking, NamespaceService, ServiceError,
};
use threadkeep_store::{EntryTerms, NamespaceChange, Reading};

use super::room::{Room, in_parallel};
use super::space::{Space, key, seconds};

fn service(room: &Room, policy: EntryPolicy) -> NamespaceService {
    NamespaceService::new(Arc::clone(&room.backend) as _, policy)
}

async fn search(space: &Space, keyword: &str, limit: usize, max_bytes: u64) -> Vec<String> {
    let service = NamespaceService::new(Arc::clone(&space.backend) as _, EntryPolicy::DEFAULT);
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = service
            .search(&space.namespace, keyword, after.as_ref(), limit, max_bytes)
            .await
            .unwrap();
        let keys = page.entries.iter().map(|(key, entry)| {
            assert_eq!(entry.body, key.as_str());
            key.as_str()
        });
        pages.push(keys.collect::<Vec<_>>().join(" "));
        after = page.next;
        if after.is_none() {
            return pages;
        }
    }
}

async fn a_keyword_is_found_anywhere_in_a_key(room: Room) {
    let space = room.space("n");
    for name in ["cat", "concat", "dog", "scatter", "Cat", "ca"] {
        space.put(name, name).await;
    }
    for number in 0..600 {
        space.put(&format!("filler {number}"), "").await;
    }
    space.put("zcat", "zcat").await;

    assert_eq!(
        search(&space, "cat", 9, 99).await,
        ["cat concat scatter zcat"]
    );
    assert_eq!(
        search(&space, "cat", 2, 99).await,
        ["cat concat", "scatter zcat"]
    );
    assert_eq!(
        search(&space, "cat", 9, 4).await,
        ["cat concat", "scatter", "zcat"]
    );
    assert_eq!(search(&space, "none", 9, 99).await, [""]);
    assert_eq!(space.get("cat").await.unwrap().uses, 0);
}

async fn a_search_spans_several_pages_and_misses_nothing(room: Room) {
    let space = room.space("n");
    let writers = (0..10).map(|writer| {
        let space = space.clone();
        in_parallel(async move {
            for number in 0..450 {
                space.put(&format!("filler {writer} {number}"), "").await;
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    for name in ["a needle", "needles", "zneedle"] {
        space.put(name, name).await;
    }

    let pages = search(&space, "needle", 9, 99).await;

    assert!(pages.len() > 1, "{pages:?}");
    let found: Vec<_> = pages.iter().filter(|page| !page.is_empty()).collect();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], "a needle");
    assert_eq!(found[1], "needles zneedle");
}

async fn ranked(room: &Room, ranking: &NamespaceRanking) -> (String, usize) {
    let ranked = service(room, EntryPolicy::DEFAULT);
    let ranked = ranked.rank(ranking).await.unwrap();
    let names = ranked.views.iter();
    let names: Vec<_> = names.map(|view| view.record.namespace.as_str()).collect();
    (names.join(" "), ranked.total)
}

async fn namespaces_can_be_sorted_in_any_order(room: Room) {
    for (name, bodies) in [
        ("one", vec!["4444", "4444"]),
        ("none", vec![]),
        ("two", vec!["1"]),
        ("three", vec!["22", "", ""]),
    ] {
        let space = room.space(name);
        space.set_default(None).await;
        for (number, body) in bodies.iter().enumerate() {
            space.put(&number.to_string(), body).await;
        }
        room.advance(Duration::from_secs(1));
    }
    room.space("one").read("0", Reading::Use).await;
    let all = NamespaceRanking {
        name_part: String::new(),
        order: NamespaceOrder::Created,
        is_descending: false,
        offset: 0,
        limit: 10,
    };

    for (order, names) in [
        (NamespaceOrder::Created, "one none two three"),
        (NamespaceOrder::Name, "none one three two"),
        (NamespaceOrder::Bytes, "none two three one"),
        (NamespaceOrder::Entries, "none two one three"),
        (NamespaceOrder::LastUsed, "none two three one"),
    ] {
        let ascending = NamespaceRanking {
            order,
            ..all.clone()
        };
        let descending = NamespaceRanking {
            is_descending: true,
            ..ascending.clone()
        };
        let mut backwards: Vec<_> = names.split(' ').collect();
        backwards.reverse();
        assert_eq!(ranked(&room, &ascending).await, (names.into(), 4));
        let found = ranked(&room, &descending).await;
        assert_eq!(found, (backwards.join(" "), 4), "{order:?}");
    }
    for (part, offset, limit, expected) in [
        ("", 1, 2, ("none two", 4)),
        ("", 4, 2, ("", 4)),
        ("", 0, 0, ("", 4)),
        ("one", 0, 10, ("one none", 2)),
        ("one", 1, 1, ("none", 2)),
        ("One", 0, 10, ("", 0)),
    ] {
        let ranking = NamespaceRanking {
            name_part: part.into(),
            offset,
            limit,
            ..all.clone()
        };
        let (names, total) = expected;
        assert_eq!(ranked(&room, &ranking).await, (names.into(), total));
    }
}

async fn a_body_at_the_limit_is_stored_and_one_byte_more_is_refused(room: Room) {
    let space = room.space("n");
    let service = service(&room, EntryPolicy::DEFAULT);
    let limit = EntryPolicy::DEFAULT.max_bytes as usize;
    let put = async |bytes: usize| {
        let draft = EntryDraft::new(ContentType::unknown(), vec![b'x'; bytes]);
        service
            .put(&space.namespace, &key("k"), draft, EntryTerms::default())
            .await
    };

    let refused = put(limit + 1).await.unwrap_err();
    assert!(matches!(
        refused,
        ServiceError::EntryTooLarge {
            limit_bytes: 1_048_576,
            attempted_bytes: 1_048_577,
        }
    ));
    let names = [space.namespace.clone()];
    assert!(service.describe(&names).await.unwrap().is_empty());
    put(limit).await.unwrap();
    put(limit + 1).await.unwrap_err();

    assert_eq!(space.counts().await, (1, limit as u64));
    assert_eq!(space.get("k").await.unwrap().body.len(), limit);
}

async fn each_service_has_its_own_default_lifetime(room: Room) {
    let space = room.space("n");
    let week = Lifetime::from_seconds(7 * 86_400);
    let forever = service(&room, EntryPolicy::DEFAULT);
    let for_a_week = forever.under(EntryPolicy {
        lifetime: week,
        ..*forever.policy()
    });
    let lives = async |service: &NamespaceService| {
        let draft = EntryDraft::new(ContentType::unknown(), "x");
        let put = service
            .put(&space.namespace, &key("k"), draft, EntryTerms::default())
            .await;
        put.unwrap();
        space.get("k").await.unwrap().head.lifetime
    };

    assert_eq!(lives(&forever).await, Lifetime::Forever);
    assert_eq!(lives(&for_a_week).await, week);
    let change = NamespaceChange {
        default_lifetime: Some(seconds(90)),
        idle_ttl: None,
    };
    let set = forever.set_namespace(&space.namespace, change, None);
    assert_eq!(set.await.unwrap().answer.usage.entries, 1);
    assert_eq!(Some(lives(&for_a_week).await), seconds(90));
}

super::over_every_store! {
    a_keyword_is_found_anywhere_in_a_key,
    a_search_spans_several_pages_and_misses_nothing,
    namespaces_can_be_sorted_in_any_order,
    a_body_at_the_limit_is_stored_and_one_byte_more_is_refused,
    each_service_has_its_own_default_lifetime,
}
