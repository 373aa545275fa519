//! Agents that share one thread across all replicas. They push, increment, and write conditionally.

mod book;
mod group;
mod thread;
mod verify;

use reqwest::Method;

use crate::agent::Agent;
use crate::answer::{Answer, Receipt, Wrong, same};
use crate::ask::Ask;
use crate::http::{Failure, Http};
use crate::push_id::PushId;
use crate::run::Run;

pub(crate) use group::Group;
use thread::{HotThread, LIST, ROUND, TOTAL};

/// Only every n-th push has an idempotency key, because a thread remembers at most 65,536 keys, for a minute each.
const KEYED: u32 = 16;
/// Every n-th push with a key is sent again once it has been answered.
const REPEATED: u32 = 4;

#[derive(Debug)]
pub(crate) struct Hot {
    writer: u32,
    pushes: u32,
    /// The sequence number of the thread that this agent used last, and the newest version of that thread it has seen.
    seen: (u32, u64),
}

impl Agent for Hot {
    const NAME: &'static str = "hot";

    fn new(run: &Run) -> Self {
        run.group.join();
        Self {
            writer: run.next_writer(),
            pushes: 0,
            seen: (u32::MAX, 0),
        }
    }

    async fn step(&mut self, http: &mut Http<'_>) {
        let group = &http.run.group;
        let Some(thread) = group.enter(http).await else {
            return;
        };
        if self.seen.0 != thread.number {
            self.seen = (thread.number, 0);
        }
        // sends all three requests even if one fails, because each is useful on its own
        self.push(&thread, http).await;
        self.increment(&thread, http).await;
        self.advance(&thread, http).await;
        group.leave(thread, http).await;
    }

    async fn finish(&mut self, http: &mut Http<'_>) {
        http.run.group.retire(http).await;
    }
}

impl Hot {
    async fn push(&mut self, thread: &HotThread, http: &mut Http<'_>) {
        let push_id = PushId {
            writer: self.writer,
            number: self.pushes,
        };
        self.pushes += 1;
        let path = format!("/state/{LIST}/push");
        let ask = thread.ask(Method::POST, "push to the hot thread", &path);
        let mut ask = ask.body(&*push_id.text(&http.run.id));
        let is_keyed = push_id.number.is_multiple_of(KEYED);
        if is_keyed {
            ask = ask.once(http.run);
        }
        let pushed = self.write(&ask, http, |receipt| receipt.length.is_some());
        let pushed = pushed.await;
        thread.note_push(http, &ask, push_id, &pushed);
        let Ok(written) = pushed else { return };
        thread.note_size(written.size);
        if is_keyed && (push_id.number / KEYED).is_multiple_of(REPEATED) {
            http.run.account.count(|tally| tally.repeats += 1);
            let again = Ask {
                name: "push again",
                ..ask
            };
            let check = |answer: &Answer| {
                answer.expect(200)?;
                same("whether it is a replay", answer.is_replayed(), true)?;
                let version = answer.receipt()?.version;
                same("version of a replay", version, written.version)
            };
            // a wrong answer is already noted
            let _ = http.ask(&again, check).await;
        }
    }

    async fn increment(&mut self, thread: &HotThread, http: &mut Http<'_>) {
        let path = format!("/state/{TOTAL}/increment");
        let ask = thread
            .ask(Method::POST, "increment", &path)
            .body(r#"{"by":1}"#);
        let added = self.write(&ask, http, |receipt| receipt.value.is_some());
        let added = added.await;
        thread.note_increment(http, &ask, &added);
    }

    /// Reads the key [`ROUND`], and increments its value unless another agent has written in the meantime.
    async fn advance(&mut self, thread: &HotThread, http: &mut Http<'_>) {
        let path = format!("/state/{ROUND}");
        let seen = self.seen.1;
        let check = |answer: &Answer| {
            answer.expect(200)?;
            let tag = answer.tag()?;
            not_before(tag.version, seen)?;
            Ok((answer.json::<u64>()?, tag))
        };
        let ask = thread.ask(Method::GET, "read the round", &path);
        let (round, tag) = match http.ask(&ask, check).await {
            Ok(read) => read,
            Err(failure) => return thread.note_read(failure),
        };
        self.seen.1 = tag.version;
        let ask = thread.ask(Method::PUT, "write if nothing changed", &path);
        let ask = ask
            .body((round + 1).to_string())
            .header("if-match", tag.text);
        let before = tag.version;
        let check = |answer: &Answer| {
            if answer.status == 412 {
                let problem = answer.problem(412, "version_mismatch")?;
                let current = problem.current_version.unwrap_or_default();
                not_before(current, before + 1)?;
                return Ok(None);
            }
            answer.expect(200)?;
            let receipt = answer.receipt()?;
            // because of the condition, no agent wrote in between
            same(
                "version of a conditional write",
                receipt.version,
                before + 1,
            )?;
            Ok(Some(receipt.version))
        };
        let written = http.ask(&ask, check).await;
        if let Ok(Some(version)) = written {
            self.seen.1 = version;
        }
        thread.note_round(http, &ask, round + 1, &written);
    }

    async fn write(
        &mut self,
        ask: &Ask,
        http: &mut Http<'_>,
        is_whole: fn(&Receipt) -> bool,
    ) -> Result<Written, Failure> {
        let seen = self.seen.1;
        let check = |answer: &Answer| {
            answer.expect(200)?;
            let receipt = answer.receipt()?;
            // a replayed answer may contain an older version than the last read
            if !answer.is_replayed() {
                not_before(receipt.version, seen + 1)?;
            }
            same("whether the receipt is whole", is_whole(&receipt), true)?;
            Ok(Written {
                version: receipt.version,
                size: receipt.size_bytes,
                value: receipt.value,
            })
        };
        let written = http.ask(ask, check).await;
        if let Ok(written) = &written {
            self.seen.1 = self.seen.1.max(written.version);
        }
        written
    }
}

#[derive(Debug, Clone, Copy)]
struct Written {
    version: u64,
    size: u64,
    value: Option<i64>,
}

/// Checks that versions increase, even across replicas.
fn not_before(version: u64, min: u64) -> Result<(), Wrong> {
    if version >= min {
        return Ok(());
    }
    let detail = format!("{version} after {min}");
    Err(Wrong::new("a version went back", detail))
}
