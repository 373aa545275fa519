//! A thread with a single writer, so that the load test can predict each answer byte for byte.

mod ending;

use std::sync::OnceLock;

use reqwest::Method;

use crate::account::{Pushes, Tally};
use crate::answer::{Answer, OperationResult, Receipt, Wrong, same};
use crate::ask::Ask;
use crate::http::{Failure, Http};
use crate::made::{Made, make_thread};
use crate::push_id::{PushId, Text};
use crate::run::Run;
use crate::state::{Op, State};
use crate::thread_ref::{SignedId, ThreadRef};

pub(crate) const LIST: &str = "messages";

/// Error for a story (a thread with one writer) that cannot continue, because its content is unknown or wrong.
#[derive(Debug)]
pub(crate) struct Ended;

#[derive(Debug)]
pub(crate) struct Story {
    thread_ref: ThreadRef,
    writer: u32,
    pushed: u32,
    version: u64,
    life: Option<String>,
    state: State,
    pushes: Pushes,
    /// The operations of the last write, if its outcome is unknown.
    open: Option<Vec<Op>>,
    is_written: bool,
    is_broken: bool,
}

impl Story {
    /// Begins with a thread that the first write creates.
    pub(crate) fn unwritten(run: &Run, thread_ref: ThreadRef, pushes: Pushes) -> Self {
        Self {
            thread_ref,
            writer: run.next_writer(),
            pushed: 0,
            version: 0,
            life: None,
            state: State::default(),
            pushes,
            open: None,
            is_written: false,
            is_broken: false,
        }
    }

    /// Creates a thread. If `by_id` is true and there is an API key, later requests use its id without a signature.
    pub(crate) async fn create(
        http: &mut Http<'_>,
        first: &[Op],
        by_id: bool,
    ) -> Result<Self, Failure> {
        let mut state = State::default();
        for op in first {
            state.apply(op);
        }
        let Made { id, life } = make_thread(http, "make a thread", &state).await?;
        let thread_ref = if by_id && http.run.api_key.is_some() {
            ThreadRef::ById(id.id)
        } else {
            ThreadRef::Signed(id)
        };
        Ok(Self {
            version: 1,
            life: Some(life),
            state,
            is_written: true,
            ..Self::unwritten(http.run, thread_ref, Pushes::default())
        })
    }

    pub(crate) fn next_push(&mut self, run: &Run, max_records: Option<usize>) -> (PushId, Op) {
        let push_id = PushId {
            writer: self.writer,
            number: self.pushed,
        };
        self.pushed += 1;
        let push = Op::Push {
            key: LIST.to_owned(),
            value: push_id.text(&run.id),
            max_records,
        };
        (push_id, push)
    }

    pub(crate) fn tag(&self) -> String {
        let life = self.life.as_deref().unwrap_or_default();
        format!("\"{}-{life}\"", self.version)
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn ask(&self, method: Method, name: &'static str, path: &str) -> Ask {
        Ask::of(method, name, &self.thread_ref, path)
    }

    /// Sends a write, and checks that the answer matches the result of applying `ops` to the expected state.
    pub(crate) async fn write(
        &mut self,
        http: &mut Http<'_>,
        ask: &Ask,
        ops: Vec<Op>,
        push_id: Option<PushId>,
    ) -> Result<(), Ended> {
        let mut after = self.state.clone();
        let results: Vec<_> = ops.iter().map(|op| after.apply(op)).collect();
        let size = after.size();
        let this = &*self;
        // keep the id even if a later check fails, because findings must name the thread
        let received = OnceLock::new();
        let check = |answer: &Answer| {
            answer.expect(200)?;
            if let Some(id) = id_from_answer(&this.thread_ref, answer)? {
                received.get_or_init(|| id);
            }
            let receipt = answer.receipt()?;
            this.check_thread(answer)?;
            same("version of a write", receipt.version, this.version + 1)?;
            same("size of the state", receipt.size_bytes, size)?;
            check_results(&receipt, &results)?;
            let life = answer.tag()?.life;
            if let Some(known) = &this.life {
                same("life of a write", &life, known)?;
            }
            Ok((receipt.version, life))
        };
        let written = http.ask(ask, check).await;
        if let (ThreadRef::Cookie { received: id, .. }, Some(new)) =
            (&mut self.thread_ref, received.into_inner())
        {
            *id = Some(new);
        }
        match written {
            Ok((version, life)) => {
                self.acknowledge(http, push_id, Some(version));
                self.version = version;
                self.life = Some(life);
                self.state = after;
                Ok(())
            }
            Err(Failure::Wrong { is_acknowledged }) => {
                self.is_broken = true;
                if is_acknowledged {
                    self.acknowledge(http, push_id, None);
                    self.state = after;
                } else {
                    self.leave_open(http, push_id, ops);
                }
                Err(Ended)
            }
            Err(Failure::Unanswered { may_be_done: true }) => {
                self.leave_open(http, push_id, ops);
                Err(Ended)
            }
            // the numbers of a writer's pushes may have gaps
            Err(Failure::Unanswered { may_be_done: false }) => Err(Ended),
        }
    }

    /// Sends an acknowledged write again, and checks that the service does not execute the write twice.
    pub(crate) async fn repeat(&mut self, http: &mut Http<'_>, ask: &Ask) -> Result<(), Ended> {
        http.run.account.count(|tally| tally.repeats += 1);
        let this = &*self;
        let check = |answer: &Answer| {
            answer.expect(200)?;
            same("whether it is a replay", answer.is_replayed(), true)?;
            let version = answer.receipt()?.version;
            same("version of a replay", version, this.version)
        };
        let outcome = http.ask(ask, check).await;
        self.end_if_wrong(outcome)
    }

    /// Sends a read, and checks that the answer contains the version after the last write.
    pub(crate) async fn read(
        &mut self,
        http: &mut Http<'_>,
        ask: &Ask,
        check: impl Fn(&Self, &Answer) -> Result<(), Wrong> + Send + Sync,
    ) -> Result<(), Ended> {
        let this = &*self;
        let check = |answer: &Answer| {
            // check the content first, so that a finding shows it
            check(this, answer)?;
            this.check_thread(answer)?;
            let tag = answer.tag()?;
            same("version of a read", tag.version, this.version)?;
            same("life of a read", Some(&tag.life), this.life.as_ref())
        };
        let outcome = http.ask(ask, check).await;
        self.end_if_wrong(outcome)
    }

    pub(crate) async fn expect_rejection(
        &mut self,
        http: &mut Http<'_>,
        ask: &Ask,
        check: impl Fn(&Answer) -> Result<(), Wrong> + Send + Sync,
    ) -> Result<(), Ended> {
        let outcome = http.ask(ask, check).await;
        self.end_if_wrong(outcome)
    }

    pub(crate) fn mark_newest_read(&mut self, count: usize) {
        self.pushes.mark_newest_read(count);
    }

    /// Checks that an answer does not name a different thread.
    fn check_thread(&self, answer: &Answer) -> Result<(), Wrong> {
        match self.thread_ref.about() {
            Some(id) if self.thread_ref.is_named_in_answers() => {
                same("the thread", answer.thread()?, &id)
            }
            _ => Ok(()),
        }
    }

    fn acknowledge(&mut self, http: &Http<'_>, push_id: Option<PushId>, version: Option<u64>) {
        if !self.is_written {
            self.is_written = true;
            http.run.account.count(|tally| tally.threads += 1);
        }
        if let Some(push_id) = push_id {
            self.pushes.acknowledge(push_id, version);
            let count = |tally: &mut Tally| tally.pushes.acknowledged += 1;
            http.run.account.count(count);
        }
    }

    fn leave_open(&mut self, http: &Http<'_>, push_id: Option<PushId>, ops: Vec<Op>) {
        self.open = Some(ops);
        if let Some(push_id) = push_id {
            self.pushes.leave_open(push_id);
            let count = |tally: &mut Tally| tally.pushes.unacknowledged += 1;
            http.run.account.count(count);
        }
    }

    fn end_if_wrong(&mut self, outcome: Result<(), Failure>) -> Result<(), Ended> {
        outcome.map_err(|failure| {
            self.is_broken |= matches!(failure, Failure::Wrong { .. });
            Ended
        })
    }
}

fn id_from_answer(thread_ref: &ThreadRef, answer: &Answer) -> Result<Option<SignedId>, Wrong> {
    match thread_ref {
        ThreadRef::Cookie { received: None, .. } => Ok(Some(SignedId {
            id: answer.thread()?.into(),
            signed: answer.header("x-thread-id")?.into(),
        })),
        _ => Ok(None),
    }
}

/// Checks the results of a write: a list for a merge, no results for a merge patch, and one result for other writes.
fn check_results(receipt: &Receipt, expected: &[OperationResult]) -> Result<(), Wrong> {
    match (&receipt.results, expected) {
        (Some(results), expected) => same("results of a merge", &results[..], expected),
        (None, [one]) => {
            same("length", receipt.length, one.length)?;
            same("value", receipt.value, one.value)?;
            same("deleted", receipt.deleted, one.deleted)
        }
        // a merge patch returns no results
        (None, _) => Ok(()),
    }
}

/// Returns `text` as a JSON string. `text` must not contain characters that need escapes.
pub(crate) fn quoted(text: &str) -> Text {
    format!("\"{text}\"").into()
}
