use threadkeep_domain::{Answer, Slice};

use super::room::{Room, Subject, delete, json, pop, push, push_window, set, text};

#[derive(Debug, Clone, Default)]
struct Model(Vec<String>);

impl Model {
    fn json(&self) -> String {
        format!("[{}]", self.0.join(","))
    }

    /// Builds an array that takes `total` bytes as JSON. Each element except the last takes `element` bytes.
    fn of_bytes(total: usize, element: usize) -> Self {
        let mut model = Self::default();
        let mut remaining = total - 2;
        while remaining > 2 * element + 2 {
            model.0.push(digits(element, model.0.len()));
            remaining -= element + 1;
        }
        model.0.push(digits(remaining, 7));
        model
    }

    fn push(&mut self, element: String, window: usize) {
        self.0.push(element);
        let surplus = self.0.len().saturating_sub(window);
        self.0.drain(..surplus);
    }
}

/// Returns a number with `count` digits. The digits differ between adjacent values of `index`.
fn digits(count: usize, index: usize) -> String {
    let mut text = format!("{}", 1 + index % 9).repeat(count);
    text.truncate(count);
    text
}

async fn check(thread: &Subject, model: &Model) {
    let json = model.json();
    assert_eq!(thread.value("k").await.unwrap(), json);
    assert_eq!(thread.state().await.unwrap(), format!("{{\"k\":{json}}}"));
    let len = model.0.len() as u64;
    for slice in [
        Slice::Tail(1),
        Slice::Tail(len / 2),
        Slice::Range {
            offset: len / 3,
            limit: Some(len / 2),
        },
        Slice::Range {
            offset: 1,
            limit: None,
        },
    ] {
        check_part(thread, model, slice).await;
    }
}

async fn check_part(thread: &Subject, model: &Model, slice: Slice) {
    let part = thread.part("k", Some(slice)).await.unwrap();

    let (from, count) = match slice {
        Slice::Tail(count) => (model.0.len().saturating_sub(count as usize), usize::MAX),
        Slice::Range { offset, limit } => (
            usize::try_from(offset).unwrap(),
            limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap()),
        ),
    };
    let expected: Vec<_> = model.0.iter().skip(from).take(count).cloned().collect();
    assert_eq!(text(&part), Model(expected).json(), "{slice:?}");
    assert_eq!(part.total, Some(model.0.len() as u64), "{slice:?}");
}

async fn arrays_of_sizes_around_storage_boundaries_read_back(room: Room) {
    let thread = room.subject();
    for bytes in (2_008..2_040).chain(4_024..4_072) {
        for element in [1, 90, 1_000, 1_006, 1_007, 1_008] {
            let model = Model::of_bytes(bytes, element);
            assert_eq!(model.json().len(), bytes);

            let written = thread.merge(&[set("k", &model.json())]).await;

            assert_eq!(written.size_bytes as usize, bytes + 6);
            check(&thread, &model).await;
        }
    }
}

async fn a_push_across_a_storage_boundary_keeps_every_element(room: Room) {
    for bytes in (1_990..2_040).chain(4_040..4_056) {
        let thread = room.subject();
        let mut model = Model::of_bytes(bytes, 100);
        thread.merge(&[set("k", &model.json())]).await;

        for element in ["1", "23"] {
            model.push(element.into(), usize::MAX);
            let pushed = thread.merge(&[push("k", element)]).await;

            assert_eq!(pushed.answers, [Answer::Length(model.0.len() as u64)]);
            assert_eq!(pushed.size_bytes as usize, model.json().len() + 6);
        }
        check(&thread, &model).await;
    }
}

async fn pushes_grow_an_array_through_every_storage_form(room: Room) {
    let thread = room.subject();
    let mut model = Model::default();
    for index in 0..120 {
        let element = digits(1 + (index * 37) % 150, index);
        model.push(element.clone(), usize::MAX);
        let pushed = thread.merge(&[push("k", &element)]).await;

        assert_eq!(pushed.size_bytes as usize, model.json().len() + 6);
        assert_eq!(thread.value("k").await.unwrap(), model.json());
    }
    check(&thread, &model).await;
}

async fn elements_larger_than_a_chunk_work_at_any_index(room: Room) {
    let large = digits(5_000, 3);
    for at in [0, 1, 30, 59, 60] {
        let thread = room.subject();
        let mut model = Model((0..60).map(|index| digits(90, index)).collect());
        model.0.insert(at, large.clone());
        thread.merge(&[set("k", &model.json())]).await;
        check(&thread, &model).await;

        for (element, window) in [("1", 61), (&*large, 60), ("2", 32), (&*large, 2), ("3", 1)] {
            model.push(element.into(), window);
            thread
                .merge(&[push_window("k", element, window as u64)])
                .await;
            check(&thread, &model).await;
        }
    }
}

async fn elements_of_about_one_chunk_read_back(room: Room) {
    for element in 2_012..2_020 {
        let thread = room.subject();
        let mut model = Model::default();
        for index in 0..5 {
            let element = digits(element, index);
            model.push(element.clone(), 4);
            thread.merge(&[push_window("k", &element, 4)]).await;
            check(&thread, &model).await;
            model.push("0".into(), 4);
            thread.merge(&[push_window("k", "0", 4)]).await;
            check(&thread, &model).await;
        }
    }
}

async fn a_window_keeps_the_newest_elements_and_returns_their_count(room: Room) {
    let thread = room.subject();
    let mut model = Model::default();
    for index in 0..200 {
        let element = digits(60 + index % 50, index);
        model.push(element.clone(), 50);
        let pushed = thread.merge(&[push_window("k", &element, 50)]).await;

        assert_eq!(pushed.answers, [Answer::Length(model.0.len() as u64)]);
        assert_eq!(pushed.size_bytes as usize, model.json().len() + 6);
        assert_eq!(thread.value("k").await.unwrap(), model.json());
    }
    check(&thread, &model).await;
}

async fn a_smaller_window_drops_several_chunks(room: Room) {
    let elements: Vec<_> = (0..300).map(|index| digits(99, index)).collect();
    for window in [1, 2, 19, 20, 21, 40, 41, 123, 280, 299, 300, 301, 9_999] {
        let thread = room.subject();
        let mut model = Model(elements.clone());
        thread.merge(&[set("k", &model.json())]).await;

        for window in [window, window, 2, 1] {
            model.push("5".into(), window);
            let pushed = thread.merge(&[push_window("k", "5", window as u64)]).await;

            assert_eq!(pushed.answers, [Answer::Length(model.0.len() as u64)]);
            assert_eq!(pushed.size_bytes as usize, model.json().len() + 6);
            check(&thread, &model).await;
        }
        model.push("6".into(), usize::MAX);
        thread.merge(&[push("k", "6")]).await;
        check(&thread, &model).await;
    }
}

async fn the_largest_window_keeps_every_element(room: Room) {
    let thread = room.subject();
    thread.merge(&[push_window("k", "1", u64::MAX)]).await;
    thread.merge(&[push_window("k", "2", u64::MAX)]).await;

    assert_eq!(thread.value("k").await.unwrap(), "[1,2]");
}

async fn every_part_of_a_long_array_can_be_read(room: Room) {
    let thread = room.subject();
    let model = Model((0..100).map(|index| digits(70, index)).collect());
    thread.merge(&[set("k", &model.json())]).await;

    for offset in [0, 1, 26, 27, 28, 29, 55, 56, 57, 99, 100, 101] {
        for limit in [Some(0), Some(1), Some(2), Some(28), Some(100), None] {
            check_part(&thread, &model, Slice::Range { offset, limit }).await;
        }
        check_part(&thread, &model, Slice::Tail(offset)).await;
    }
}

async fn parts_past_the_end_are_empty_for_any_offset_and_limit(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "[1,2,3]")]).await;
    let part = async |slice| text(&thread.part("k", Some(slice)).await.unwrap());

    let from = |offset, limit| Slice::Range { offset, limit };
    assert_eq!(part(from(3, None)).await, "[]");
    assert_eq!(part(from(u64::MAX, Some(u64::MAX))).await, "[]");
    assert_eq!(part(from(1, Some(u64::MAX))).await, "[2,3]");
    assert_eq!(part(from(0, Some(0))).await, "[]");
    assert_eq!(part(Slice::Tail(0)).await, "[]");
    assert_eq!(part(Slice::Tail(u64::MAX)).await, "[1,2,3]");
}

async fn an_empty_array_has_empty_parts(room: Room) {
    let thread = room.subject();
    thread.merge(&[set("k", "[]")]).await;

    for slice in [
        Slice::Tail(5),
        Slice::Range {
            offset: 0,
            limit: Some(1),
        },
    ] {
        let part = thread.part("k", Some(slice)).await.unwrap();
        assert_eq!((text(&part).as_str(), part.total), ("[]", Some(0)));
    }
}

async fn a_replaced_or_deleted_long_array_leaves_nothing(room: Room) {
    let thread = room.subject();
    let long = Model::of_bytes(30_000, 100);
    let short = Model::of_bytes(5_000, 100);
    thread.merge(&[set("k", &long.json())]).await;

    thread.merge(&[set("k", &short.json())]).await;
    check(&thread, &short).await;
    thread.merge(&[set("k", &long.json())]).await;
    check(&thread, &long).await;
    thread.merge(&[delete("k")]).await;
    assert_eq!(thread.state().await.unwrap(), "{}");
    thread.merge(&[push("k", "1")]).await;
    check(&thread, &Model(vec!["1".into()])).await;
}

async fn long_arrays_of_one_thread_are_independent(room: Room) {
    let thread = room.subject();
    let arrays = [1, 2, 3].map(|n| Model::of_bytes(10_000 + n, 100 + n).json());
    for (key, array) in ["a", "b", "c"].iter().zip(&arrays) {
        thread.merge(&[set(key, array)]).await;
    }

    thread
        .merge(&[delete("b"), push_window("c", "1", 2), push("a", "2")])
        .await;
    let b = &arrays[1];
    thread.merge(&[set("b", b)]).await;

    assert!(thread.value("a").await.unwrap().ends_with(",2]"));
    assert_eq!(thread.value("b").await.unwrap(), *b);
    assert!(thread.value("c").await.unwrap().ends_with(",1]"));
    assert_eq!(thread.thread().await.unwrap().keys, 3);
}

async fn commas_and_brackets_inside_elements_split_nothing(room: Room) {
    let thread = room.subject();
    let elements = [
        r#""a\nb""#,
        r#""[1,2],\"x\"""#,
        "[1,[2,3],[]]",
        r#"{"a":[1,2],"b":"]"}"#,
        r#""\\""#,
        "[]",
    ];
    let mut model = Model::default();
    for round in 0..60 {
        let element = elements[round % elements.len()];
        model.push(element.into(), 40);
        thread.merge(&[push_window("k", element, 40)]).await;
    }

    check(&thread, &model).await;
    thread.merge(&[set("k", &model.json())]).await;
    check(&thread, &model).await;
}

async fn many_pushes_in_one_batch_cross_storage_boundaries(room: Room) {
    for window in [3, 25, 500] {
        let thread = room.subject();
        let mut model = Model::default();
        for round in 0..4 {
            let batch: Vec<_> = (0..70)
                .map(|index| {
                    let element = digits(80 + round, index);
                    model.push(element.clone(), window);
                    push_window("k", &element, window as u64)
                })
                .collect();
            let written = thread.merge(&batch).await;

            assert_eq!(written.size_bytes as usize, model.json().len() + 6);
            check(&thread, &model).await;
        }
    }
}

async fn popped(thread: &Subject, operations: &[threadkeep_domain::Operation]) -> String {
    let written = thread.merge(operations).await;
    match written.answers.last() {
        Some(Answer::Popped(elements)) => elements.as_str().to_owned(),
        other => panic!("{other:?}"),
    }
}

async fn the_newest_elements_are_popped_from_arrays_of_every_size(room: Room) {
    for (total, element) in [
        (20, 1),
        (2_000, 7),
        (2_033, 7),
        (9_000, 30),
        (60_000, 11),
        (90_000, 5_000),
    ] {
        for portion in [1, 3, 40, 1_000] {
            let thread = room.subject();
            let mut model = Model::of_bytes(total, element);
            thread.merge(&[set("k", &model.json())]).await;
            for _ in 0..12 {
                let kept = model.0.len().saturating_sub(portion);
                let expected = Model(model.0.split_off(kept));

                let elements = popped(&thread, &[pop("k", portion as u64)]).await;

                assert_eq!(elements, expected.json(), "{total} {element} {portion}");
                check(&thread, &model).await;
            }
            let element = digits(40, 1);
            model.push(element.clone(), usize::MAX);
            let written = thread.merge(&[push("k", &element)]).await;
            assert_eq!(written.answers, [Answer::Length(model.0.len() as u64)]);
            assert_eq!(written.size_bytes as usize, model.json().len() + 6);
            check(&thread, &model).await;
        }
    }
}

async fn pops_and_pushes_of_one_batch_see_each_other(room: Room) {
    for count in [3, 100, 5_000] {
        let thread = room.subject();
        let mut model = Model((0..count).map(|index| digits(20, index)).collect());
        thread.merge(&[set("k", &model.json())]).await;

        let operations = [
            push("k", "1"),
            push("k", "2"),
            pop("k", 1),
            push_window("k", "3", count as u64),
            pop("k", 3),
            push("k", "4"),
            pop("k", 2),
        ];
        let written = thread.merge(&operations).await;

        model.0.extend(["1", "3"].map(str::to_owned));
        model.0.drain(..2);
        let three = Model(model.0.split_off(count - 3));
        model.0.push("4".into());
        let two = Model(model.0.split_off(model.0.len().saturating_sub(2)));
        let popped: Vec<_> = written
            .answers
            .iter()
            .filter_map(|answer| match answer {
                Answer::Popped(elements) => Some(elements.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(popped, ["[2]", &three.json(), &two.json()]);
        check(&thread, &model).await;
    }
}

async fn repeated_pops_and_pushes_keep_an_array_correct(room: Room) {
    let thread = room.subject();
    let mut model = Model::default();
    thread.merge(&[set("k", "[]")]).await;
    for round in 0..60 {
        let pushes: Vec<_> = (0..20)
            .map(|index| {
                let element = digits(50 + 7 * round, index);
                model.0.push(element.clone());
                push("k", &element)
            })
            .collect();
        thread.merge(&pushes).await;
        let many = [1, 7, 19, 25][round % 4].min(model.0.len());
        let expected = Model(model.0.split_off(model.0.len() - many));
        assert_eq!(
            popped(&thread, &[pop("k", many as u64)]).await,
            expected.json()
        );
        check(&thread, &model).await;
    }
}

async fn popping_nothing_returns_an_empty_array(room: Room) {
    let thread = room.subject();

    assert_eq!(popped(&thread, &[pop("k", 1)]).await, "[]");
    assert_eq!(thread.value("k").await, None);
    assert_eq!(popped(&thread, &[set("k", "[]"), pop("k", 5)]).await, "[]");
    assert_eq!(thread.value("k").await.unwrap(), "[]");
    thread.merge(&[set("k", "\"[1]\"")]).await;
    let refused = thread.try_merge(&[set("l", "1"), pop("k", 1)]).await;
    assert_eq!(
        refused,
        Err(threadkeep_domain::Refusal::NotAnArray { operation: 1 })
    );
}

async fn a_repeated_pop_returns_the_same_elements(room: Room) {
    let thread = room.subject();
    let elements: Vec<_> = (0..2_000).map(|index| format!("\"{index};\"")).collect();
    thread
        .merge(&[set("k", &format!("[{}]", elements.join(",")))])
        .await;
    let operations = [delete("l"), pop("k", 2), pop("k", 1)];
    let once = super::room::numbered_key(1);
    let first = thread.merge_once(once, &operations).await.unwrap();

    let again = thread.merge_once(once, &operations).await.unwrap();

    assert_eq!(first.answers, again.answers);
    assert_eq!(
        again.answers,
        [
            Answer::Deleted(false),
            Answer::Popped(json(r#"["1998;","1999;"]"#)),
            Answer::Popped(json(r#"["1997;"]"#)),
        ]
    );
    assert!(again.replayed);
    assert_eq!(thread.thread().await.unwrap().stamp.version, 2);
}

over_every_store! {
    the_newest_elements_are_popped_from_arrays_of_every_size,
    pops_and_pushes_of_one_batch_see_each_other,
    repeated_pops_and_pushes_keep_an_array_correct,
    popping_nothing_returns_an_empty_array,
    a_repeated_pop_returns_the_same_elements,
    arrays_of_sizes_around_storage_boundaries_read_back,
    a_push_across_a_storage_boundary_keeps_every_element,
    pushes_grow_an_array_through_every_storage_form,
    elements_larger_than_a_chunk_work_at_any_index,
    elements_of_about_one_chunk_read_back,
    a_window_keeps_the_newest_elements_and_returns_their_count,
    a_smaller_window_drops_several_chunks,
    the_largest_window_keeps_every_element,
    every_part_of_a_long_array_can_be_read,
    parts_past_the_end_are_empty_for_any_offset_and_limit,
    an_empty_array_has_empty_parts,
    a_replaced_or_deleted_long_array_leaves_nothing,
    long_arrays_of_one_thread_are_independent,
    commas_and_brackets_inside_elements_split_nothing,
    many_pushes_in_one_batch_cross_storage_boundaries,
}
