//! A scope with one writer that predicts the result of each tool call.

use reqwest::Method;
use serde_json::{Value, json};

use super::memory::{Call, Memory};
use super::provider::{Expected, Provider, check};
use crate::answer::{Answer, Wrong, same};
use crate::ask::Ask;
use crate::http::{Failure, Http};
use crate::made::{Made, make_thread};
use crate::state::State;
use crate::story::Ended;
use crate::thread_ref::ThreadRef;

#[derive(Debug)]
pub(super) struct Notes {
    scope: String,
    /// The thread that the scope belongs to. `None` for a session.
    thread: Option<ThreadRef>,
    memory: Memory,
    /// Other states that the scope may be in, if it is unknown how many of the last calls were executed.
    open: Vec<Memory>,
    is_broken: bool,
}

impl Notes {
    /// Creates a scope. With an API key, the scope is a session. Otherwise, it belongs to a new thread.
    pub(super) async fn begin(http: &mut Http<'_>) -> Result<Self, Failure> {
        check_definitions(http).await?;
        let (scope, thread) = match http.run.api_key {
            Some(_) => {
                let number = http.run.next_writer();
                let scope = format!("session:{}-{number}", http.run.id);
                http.run.account.count(|tally| tally.threads += 1);
                (scope, None)
            }
            None => {
                let state = State::default();
                let Made { id, .. } = make_thread(http, "make a thread", &state).await?;
                ("thread:current".to_owned(), Some(ThreadRef::Signed(id)))
            }
        };
        Ok(Self {
            scope,
            thread,
            memory: Memory::default(),
            open: Vec::new(),
            is_broken: false,
        })
    }

    /// Sends all calls of one model message. The service executes them in order.
    pub(super) async fn call_all(
        &mut self,
        http: &mut Http<'_>,
        provider: Provider,
        calls: &[Call],
        repeats: bool,
    ) -> Result<(), Ended> {
        let mut after = vec![self.memory.clone()];
        let mut expected = Vec::with_capacity(calls.len());
        for call in calls {
            let mut memory = after.last().cloned().unwrap_or_default();
            expected.push(memory.call(call));
            after.push(memory);
        }
        let body = provider.body(&self.scope, calls);
        let ask = self.ask(Method::POST, "tool calls", "/v1/tool-calls");
        let ask = ask.body(body).once(http.run);
        let check = |answer: &Answer| {
            let results = provider.results(answer, calls.len())?;
            check_all(&results, &expected)
        };
        self.send_calls(http, &ask, after, check).await?;
        if repeats {
            // the results are not compared, because the service executes reads again, which then return newer values
            self.repeat(http, &ask, provider, calls.len()).await?;
        }
        Ok(())
    }

    pub(super) async fn call_one(&mut self, http: &mut Http<'_>, call: &Call) -> Result<(), Ended> {
        let before = self.memory.clone();
        let mut memory = before.clone();
        let expected = memory.call(call);
        let path = format!("/v1/tools/{}", call.tool());
        let body = json!({"scope": self.scope, "arguments": call.arguments()}).to_string();
        let ask = self.ask(Method::POST, "one tool", &path);
        let ask = ask.body(body).once(http.run);
        let check = |answer: &Answer| {
            answer.expect(200)?;
            let answer: Value = answer.json()?;
            let found = answer.get("result").unwrap_or(&answer);
            check(found, &expected)
        };
        self.send_calls(http, &ask, vec![before, memory], check)
            .await
    }

    /// Sends acknowledged calls again. The service must not execute them twice.
    async fn repeat(
        &mut self,
        http: &mut Http<'_>,
        ask: &Ask,
        provider: Provider,
        count: usize,
    ) -> Result<(), Ended> {
        http.run.account.count(|tally| tally.repeats += 1);
        let again = Ask {
            name: "tool calls again",
            ..ask.clone()
        };
        let check = |answer: &Answer| {
            provider.results(answer, count)?;
            same("whether it is a replay", answer.is_replayed(), true)
        };
        let outcome = http.ask(&again, check).await;
        outcome.map_err(|failure| {
            self.is_broken |= matches!(failure, Failure::Wrong { .. });
            Ended
        })
    }

    /// Sends a request that contains calls. `after[n]` is the expected content after the first `n` calls.
    async fn send_calls(
        &mut self,
        http: &mut Http<'_>,
        ask: &Ask,
        mut after: Vec<Memory>,
        check: impl Fn(&Answer) -> Result<(), Wrong> + Send + Sync,
    ) -> Result<(), Ended> {
        match http.ask(ask, check).await {
            Ok(()) => {
                self.memory = after.pop().unwrap_or_default();
                Ok(())
            }
            Err(Failure::Unanswered { may_be_done: false }) => Err(Ended),
            Err(failure) => {
                self.is_broken |= matches!(failure, Failure::Wrong { .. });
                self.open = after;
                Err(Ended)
            }
        }
    }

    /// Compares all content with the writes, then ends the scope or destroys its thread.
    pub(super) async fn close(self, http: &mut Http<'_>) {
        let about = match self.thread.as_ref().and_then(ThreadRef::about) {
            Some(id) => format!("thread:{id}"),
            None => self.scope.clone(),
        };
        if self.verify(http).await {
            http.run.account.count(|tally| tally.threads_verified += 1);
        } else {
            http.note_unverified(&about);
        }
        // if this fails, the scope expires
        let end = match &self.thread {
            Some(thread_ref) => Ask::of(Method::DELETE, "destroy a thread", thread_ref, ""),
            None => self
                .ask(Method::DELETE, "end a scope", "/v1/scopes")
                .body(json!({"scope": self.scope}).to_string()),
        };
        let status = if self.thread.is_some() { 204 } else { 200 };
        let _ = http.ask_once(&end, |answer| answer.expect(status)).await;
    }

    /// Compares the content with the writes. Returns false if the content could not be read.
    async fn verify(&self, http: &mut Http<'_>) -> bool {
        let possible = || std::iter::once(&self.memory).chain(&self.open);
        let mut keys: Vec<_> = possible().flat_map(Memory::keys).cloned().collect();
        keys.sort();
        keys.dedup();
        let mut calls = vec![Call::List, Call::ReadTasks];
        calls.extend(keys.into_iter().map(|key| Call::Read { key }));
        let body = Provider::OpenAi.body(&self.scope, &calls);
        let mut ask = self.ask(Method::POST, "verify a scope", "/v1/tool-calls");
        ask = ask.body(body);
        // all calls in this request are reads
        ask.is_repeatable = true;
        let check = |answer: &Answer| {
            let results = Provider::OpenAi.results(answer, calls.len())?;
            let outcomes = possible().map(|memory| {
                let mut memory = memory.clone();
                let expected: Vec<_> = calls.iter().map(|call| memory.call(call)).collect();
                check_all(&results, &expected)
            });
            let mut first = None;
            for outcome in outcomes {
                match outcome {
                    Ok(()) => return Ok(()),
                    Err(wrong) => _ = first.get_or_insert(wrong),
                }
            }
            first.map_or(Ok(()), Err)
        };
        // a wrong answer counts as a read, because it has already been noted as a finding
        !matches!(http.ask(&ask, check).await, Err(Failure::Unanswered { .. }))
    }

    fn ask(&self, method: Method, name: &'static str, path: &str) -> Ask {
        let mut ask = Ask::to(method, name, path);
        ask.headers
            .extend(self.thread.as_ref().and_then(ThreadRef::header));
        let thread = self.thread.as_ref().and_then(ThreadRef::about);
        ask.about = Some(thread.unwrap_or_else(|| self.scope.as_str().into()));
        ask
    }
}

fn check_all(results: &[Value], expected: &[Expected]) -> Result<(), Wrong> {
    results
        .iter()
        .zip(expected)
        .try_for_each(|(found, expected)| check(found, expected))
}

async fn check_definitions(http: &mut Http<'_>) -> Result<(), Failure> {
    let path = "/v1/tools?format=openai";
    let ask = Ask::to(Method::GET, "list the tools", path);
    let check = |answer: &Answer| {
        answer.expect(200)?;
        let answer: Value = answer.json()?;
        let tools = answer["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let mut names = tools.iter().map(|tool| &tool["function"]["name"]);
        same(
            "kv_write among the tools",
            names.any(|name| name == "kv_write"),
            true,
        )
    };
    http.ask(&ask, check).await
}
