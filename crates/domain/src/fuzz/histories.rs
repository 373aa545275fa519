use crate::Json;
use crate::scope::{History, HistoryItem, HistoryLimit, ItemId, Removal};
use threadkeep_fuzzing::{Bound, fuzz};

/// The fixed cost of an item in bytes, in addition to its id and value.
const ITEM_BYTES: usize = 64;
/// Bounds per input byte. They are high, because each item has a fixed cost and is stored with a copy of its id.
const APPEND: Bound = Bound {
    held: 16,
    allocated: 32,
    nanos: 3_000,
};

/// The first line of the input is the limit. The other lines are requests, separated by `---`. Each line of a request
/// appends an item, given as an id and a value. The first line of a request may remove items first: `-` and an id
/// removes one item, `^` and a number removes that many of the newest items, and `!` removes all items.
#[test]
fn a_history_drops_its_oldest_items_and_stays_within_its_limit() {
    fuzz("histories", |input| {
        let Some(text) = input.text() else { return };
        let (limit, requests) = text.split_once('\n').unwrap_or(("", text));
        let max_bytes = limit.parse().unwrap_or(1_000);
        for drops_oldest in [true, false] {
            let limit = HistoryLimit {
                max_bytes,
                drops_oldest,
            };
            let mut history = History::default();
            let mut model = Vec::new();
            for request in requests.split("\n---\n").take(20) {
                remove(
                    &mut history,
                    &mut model,
                    request.lines().next().unwrap_or(""),
                );
                let items: Vec<_> = request.lines().filter_map(item).collect();
                append(&mut history, &mut model, &items, &limit);
            }
        }
    });
}

fn item(line: &str) -> Option<HistoryItem> {
    let (id, value) = line.split_once(' ')?;
    Some(HistoryItem {
        id: id.parse().ok()?,
        value: Json::parse(value).ok()?,
    })
}

fn remove(history: &mut History, model: &mut Vec<(u64, HistoryItem)>, line: &str) {
    let id: Option<ItemId> = line.strip_prefix('-').and_then(|id| id.parse().ok());
    let newest = line.strip_prefix('^').and_then(|count| count.parse().ok());
    let removal = match (&id, newest) {
        (Some(id), _) => Removal::Item(id),
        (None, Some(count)) => Removal::Newest(count),
        (None, None) if line == "!" => Removal::All,
        (None, None) => return,
    };
    let before = history.summary();
    let planned = history.find(Some(removal));
    let removed = history.remove(planned);
    match removal {
        Removal::All => model.clear(),
        Removal::Item(id) => model.retain(|(_, item)| item.id != *id),
        Removal::Newest(count) => {
            assert!(
                removed.len() <= count && removed.is_empty() == (count == 0 || model.is_empty())
            );
            model.truncate(model.len() - removed.len());
        }
    }
    let summary = history.summary();
    let oldest = model.first().map_or(summary.next_seq, |(seq, _)| *seq);
    assert_eq!(summary.next_seq, before.next_seq);
    assert_eq!(
        (summary.first_seq, summary.len()),
        (oldest, model.len() as u64)
    );
    let bytes: u64 = model.iter().map(|(_, item)| item.cost_bytes()).sum();
    assert_eq!(summary.bytes, bytes);
}

fn append(
    history: &mut History,
    model: &mut Vec<(u64, HistoryItem)>,
    items: &[HistoryItem],
    limit: &HistoryLimit,
) {
    let bytes: usize = items.iter().map(|item| item.cost_bytes() as usize).sum();
    let before = history.summary();
    let input_bytes = bytes + before.bytes as usize;
    let after = APPEND.hold(input_bytes + ITEM_BYTES, || {
        let planned = history.plan(&history.find(None), items, limit)?;
        let mut after = history.clone();
        after.append(items, &planned, limit, 7);
        Ok::<_, crate::Refusal>((after, planned))
    });
    let Ok((after, planned)) = after else { return };

    *history = after;
    let mut next_seq = before.next_seq;
    for (item, planned) in items.iter().zip(planned) {
        if planned.repeated {
            continue;
        }
        assert_eq!(planned.seq, next_seq);
        model.push((next_seq, item.clone()));
        next_seq += 1;
    }
    let cost = |model: &[(u64, HistoryItem)]| -> u64 {
        model.iter().map(|(_, item)| item.cost_bytes()).sum()
    };
    let mut remaining = cost(model);
    let mut dropped = 0;
    while remaining > limit.max_bytes && dropped < model.len() {
        remaining -= model[dropped].1.cost_bytes();
        dropped += 1;
    }
    model.drain(..dropped);
    let summary = history.summary();
    assert_eq!(summary.bytes, remaining);
    assert!(summary.bytes <= limit.max_bytes);
    assert_eq!(
        (summary.next_seq, summary.len()),
        (next_seq, model.len() as u64)
    );
    let stored = history.read(0, false, usize::MAX);
    let stored: Vec<_> = stored
        .iter()
        .map(|item| (item.seq, item.id.as_str()))
        .collect();
    let expected: Vec<_> = model
        .iter()
        .map(|(seq, item)| (*seq, item.id.as_str()))
        .collect();
    assert_eq!(stored, expected);
    let newest = history.read(summary.next_seq, true, 3);
    let newest: Vec<_> = newest
        .iter()
        .map(|item| (item.seq, item.id.as_str()))
        .collect();
    assert_eq!(
        newest,
        expected.iter().rev().take(3).copied().collect::<Vec<_>>()
    );
}
