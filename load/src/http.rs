//! Sends a simulated user's requests, counts and times the requests, and checks the answers.

use std::time::{Duration, Instant};

use goose::goose::GooseUser;
use reqwest::{ClientBuilder, Method};

use crate::account::{Finding, Kind};
use crate::answer::{Answer, Wrong};
use crate::ask::Ask;
use crate::no_answer::NoAnswer;
use crate::run::Run;

/// Time limit for retrying a write. Less than a minute, because the service then forgets the idempotency key.
const WRITE_RETRY_MAX: Duration = Duration::from_secs(50);

/// Pause before the first retry. Each further pause is twice as long as the previous one, up to `LAST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

pub(crate) struct Http<'a> {
    user: &'a mut GooseUser,
    pub(crate) run: &'a Run,
    scenario: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The service did not answer, or reported that it is unavailable.
    Unanswered {
        /// True if the service may have executed the request.
        may_be_done: bool,
    },
    /// The answer was wrong. The finding is already noted.
    Wrong {
        /// Whether the status reports success.
        is_acknowledged: bool,
    },
}

impl<'a> Http<'a> {
    pub(crate) fn new(user: &'a mut GooseUser, run: &'a Run, scenario: &'static str) -> Self {
        Self {
            user,
            run,
            scenario,
        }
    }

    /// Sends `ask`. If `ask` is repeatable, retries it within the run's retry time.
    pub(crate) async fn ask<T>(
        &mut self,
        ask: &Ask,
        check: impl Fn(&Answer) -> Result<T, Wrong> + Send + Sync,
    ) -> Result<T, Failure> {
        let mut retry_time = self.run.retry_time;
        if ask.method != Method::GET {
            retry_time = retry_time.min(WRITE_RETRY_MAX);
        }
        let deadline = Instant::now() + retry_time;
        let mut pause = FIRST_PAUSE;
        let mut may_be_done = false;
        loop {
            match self.ask_once(ask, &check).await {
                Err(Failure::Unanswered { may_be_done: may }) => {
                    may_be_done |= may;
                    // gives an unavailable service time before the next attempt
                    tokio::time::sleep(pause).await;
                    if !ask.is_repeatable || Instant::now() >= deadline {
                        return Err(Failure::Unanswered { may_be_done });
                    }
                    self.run.account.count(|tally| tally.retries += 1);
                    pause = (pause * 2).min(LAST_PAUSE);
                }
                other => return other,
            }
        }
    }

    pub(crate) async fn ask_once<T>(
        &mut self,
        ask: &Ask,
        check: impl Fn(&Answer) -> Result<T, Wrong> + Send + Sync,
    ) -> Result<T, Failure> {
        let started = Instant::now();
        let answered = self.send(ask).await;
        let took = started.elapsed();
        self.run.account.count(|tally| tally.requests += 1);
        let (outcome, status, fault) = match answered {
            Err(no_answer) => {
                let (reason, may_be_done) = (no_answer.reason(), no_answer.may_be_done());
                self.run.account.count(|tally| {
                    *tally.unanswered.entry(reason).or_default() += 1;
                });
                let status = match no_answer {
                    NoAnswer::Status(status) => Some(status),
                    _ => None,
                };
                (
                    Err(Failure::Unanswered { may_be_done }),
                    status,
                    Some(reason),
                )
            }
            Ok(answer) => match check(&answer) {
                Ok(content) => (Ok(content), Some(answer.status), None),
                Err(wrong) => {
                    self.note_wrong(ask, &wrong);
                    let is_acknowledged = (200..300).contains(&answer.status);
                    (
                        Err(Failure::Wrong { is_acknowledged }),
                        Some(answer.status),
                        Some(wrong.what),
                    )
                }
            },
        };
        let recorded = self
            .user
            .record_custom_request_duration(
                ask.method.as_str(),
                ask.name,
                took,
                fault.is_none(),
                status,
                fault,
            )
            .await;
        if let Err(error) = recorded {
            eprintln!("threadkeep-load: a request is not in the report: {error}");
        }
        outcome
    }

    pub(crate) fn note_wrong(&self, ask: &Ask, wrong: &Wrong) {
        self.run.account.note(Finding {
            kind: Kind::WrongAnswer,
            scenario: self.scenario,
            request: Some(ask.name),
            thread: ask.about.as_deref().map(str::to_owned),
            detail: wrong.to_string(),
        });
    }

    pub(crate) fn note_unverified(&self, thread: &str) {
        self.run.account.note(Finding {
            kind: Kind::Unverified,
            scenario: self.scenario,
            request: None,
            thread: Some(thread.to_owned()),
            detail: "its content could not be read".to_owned(),
        });
    }

    pub(crate) fn scenario(&self) -> &'static str {
        self.scenario
    }

    /// Continues as a new user, without cookies and over new connections.
    pub(crate) async fn renew(&mut self, client: ClientBuilder) {
        if let Err(error) = self.user.set_client_builder(client).await {
            eprintln!("threadkeep-load: a user keeps its cookies: {error}");
        }
    }

    async fn send(&self, ask: &Ask) -> Result<Answer, NoAnswer> {
        let host = match &ask.host {
            Some(host) => host,
            None => self.run.hosts.next(),
        };
        let url = format!("{host}{}", ask.path);
        let mut request = self.user.client.request(ask.method.clone(), url);
        // requests with an API key are exempt from the rate limits
        if let Some(api_key) = &self.run.api_key {
            request = request.bearer_auth(api_key);
        }
        for (name, value) in &ask.headers {
            request = request.header(*name, value);
        }
        if let Some(body) = &ask.body {
            request = request.body(body.clone());
        }
        let response = request.send().await?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.bytes().await?.to_vec();
        match status {
            429 | 502 | 503 | 504 => Err(NoAnswer::Status(status)),
            _ => Ok(Answer {
                status,
                headers,
                body,
            }),
        }
    }
}
