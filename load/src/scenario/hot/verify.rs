//! Compares the content of the hot thread with the answers that all agents received.

use std::ops::RangeInclusive;

use reqwest::Method;

use super::book::Book;
use super::thread::{HotThread, LIST, ROUND, TOTAL};
use crate::answer::{Answer, Wrong, same};
use crate::ask::Ask;
use crate::http::{Failure, Http};
use crate::push_id::{PushId, PushValueError};

const PAGE: usize = 1_000;

/// Compares the content with the writes, and destroys the thread. The agents must have stopped using the thread.
pub(super) async fn close(thread: HotThread, http: &mut Http<'_>) {
    let id = thread.thread_ref.about();
    let id = id.as_deref().unwrap_or_default().to_owned();
    let list = list(&thread, http).await;
    let sum = integer(&thread, http, TOTAL).await;
    let round = integer(&thread, http, ROUND).await;
    let destroy = thread.ask(Method::DELETE, "destroy a thread", "");
    let read = thread.ask(Method::GET, "verify the hot thread", "");
    let book = thread.book.into_inner();
    let book = book.unwrap_or_else(std::sync::PoisonError::into_inner);
    match (list, sum, round) {
        (Ok(list), Ok(sum), Ok(round)) => {
            let comparison = book.pushes.compare(&list);
            http.run.account.settle(http.scenario(), &id, &comparison);
            for wrong in contradictions(&book, sum, round) {
                http.note_wrong(&read, &wrong);
            }
            http.run.account.count(|tally| tally.threads_verified += 1);
        }
        _ => {
            let comparison = book.pushes.compare_by_reads(false);
            http.run.account.settle(http.scenario(), &id, &comparison);
            http.note_unverified(&id);
        }
    }
    // if this fails, the thread expires
    let _ = http.ask_once(&destroy, |answer| answer.expect(204)).await;
}

struct Integer {
    value: u64,
    version: u64,
}

fn contradictions(book: &Book, sum: Integer, round: Integer) -> Vec<Wrong> {
    // version 1 was the creation of the thread
    let versions = round.version.saturating_sub(1);
    [
        within("the sum of the increments", sum.value, book.sums.bounds()),
        within("the last round", round.value, book.rounds.bounds()),
        within(
            "the count of the versions",
            versions,
            book.versions.bounds(),
        ),
    ]
    .into_iter()
    .filter_map(Result::err)
    // after a wrong answer, the exact number of writes is unknown
    .filter(|_| !book.is_broken)
    .collect()
}

fn within(what: &'static str, found: u64, bounds: RangeInclusive<u64>) -> Result<(), Wrong> {
    if bounds.contains(&found) {
        return Ok(());
    }
    let (min, max) = (bounds.start(), bounds.end());
    let detail = format!("{found}, where {min} to {max} were acknowledged");
    Err(Wrong::new(what, detail))
}

async fn list(
    thread: &HotThread,
    http: &mut Http<'_>,
) -> Result<Vec<Result<PushId, PushValueError>>, Failure> {
    let mut found = Vec::new();
    loop {
        let offset = found.len();
        let path = format!("/state/{LIST}?offset={offset}&limit={PAGE}");
        let ask = thread.ask(Method::GET, "verify pushes", &path);
        let run = &http.run.id;
        let check = |answer: &Answer| {
            if is_missing(answer)? {
                return Ok(Vec::new());
            }
            answer.expect(200)?;
            let elements = answer.elements()?;
            let total = answer.number("x-total-count")?;
            let expected = (total as usize).saturating_sub(offset).min(PAGE);
            same("elements of a page", elements.len(), expected)?;
            let push_ids = elements.into_iter().map(|value| PushId::of(run, value));
            Ok(push_ids.collect::<Vec<_>>())
        };
        let page = http.ask(&ask, check).await?;
        let is_last = page.len() < PAGE;
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

async fn integer(thread: &HotThread, http: &mut Http<'_>, key: &str) -> Result<Integer, Failure> {
    let ask: Ask = thread.ask(Method::GET, "verify a counter", &format!("/state/{key}"));
    let check = |answer: &Answer| {
        if is_missing(answer)? {
            let (value, version) = (0, 0);
            return Ok(Integer { value, version });
        }
        answer.expect(200)?;
        Ok(Integer {
            value: answer.json()?,
            version: answer.tag()?.version,
        })
    };
    http.ask(&ask, check).await
}

/// Returns whether the thread or the key is missing. If so, the caller treats the list or counter as empty.
fn is_missing(answer: &Answer) -> Result<bool, Wrong> {
    if answer.status != 404 {
        return Ok(false);
    }
    answer.problem(404, "key_not_found")?;
    Ok(true)
}
