//! The demo's writers: a web page, an agent that takes turns, and a client that asks the model. All three write to the
//! same thread until the demo ends.

use std::time::Duration;

use futures_util::future::join3;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::model::{NAME, SCRIPT};
use crate::cli::error::CliError;
use crate::cli::remote::{Remote, answer, json_request};

const MESSAGES_MAX: u32 = 20;
/// Number of questions to the model before the history is cleared, to limit the memory use of a long demo.
const EXCHANGES_MAX: usize = 24;

const PAGE_INTERVAL: Duration = Duration::from_millis(2_300);
const AGENT_PAUSE: Duration = Duration::from_millis(1_700);
/// How long the agent holds its turn.
const AGENT_WORK: Duration = Duration::from_millis(900);
const MODEL_PAUSE: Duration = Duration::from_secs(4);
/// Delay before a retry. For example, a request to the model fails while the agent holds the turn.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

const QUESTIONS: [&str; 4] = [
    "Is the staging server up?",
    "How many tests fail?",
    "Which change was merged last?",
    "When does the next build start?",
];
const ANSWERS: [&str; 4] = [
    "It is up, and all probes pass.",
    "None of 2,904.",
    "The one that makes the first build faster.",
    "In five minutes.",
];

/// Writes to the thread `id` until the future is dropped.
pub(super) async fn run(remote: &Remote, id: &str) {
    let writers = Writers { remote, id };
    join3(
        forever(PAGE_INTERVAL, async |round| writers.ask(round).await),
        forever(AGENT_PAUSE, async |round| writers.answer(round).await),
        forever(MODEL_PAUSE, async |round| writers.converse(round).await),
    )
    .await;
}

async fn forever(pause: Duration, work: impl AsyncFn(usize) -> Result<(), CliError>) {
    for round in 0.. {
        sleep(pause).await;
        while let Err(error) = work(round).await {
            tracing::debug!(%error, "demo writer failed");
            sleep(RETRY_PAUSE).await;
        }
    }
}

struct Writers<'a> {
    remote: &'a Remote,
    id: &'a str,
}

impl Writers<'_> {
    /// Pushes a message, as a web page would. Pushing does not require a turn.
    async fn ask(&self, round: usize) -> Result<(), CliError> {
        let text = QUESTIONS[round % QUESTIONS.len()];
        let message = json!({"role": "user", "content": text});
        let path = ["threads", self.id, "state", "messages", "push"];
        let window = MESSAGES_MAX.to_string();
        let query = [("max_records", window.as_str())];
        answer(json_request(
            self.remote,
            Method::POST,
            &path,
            &query,
            &message,
        ))
        .await?;
        Ok(())
    }

    /// Takes the turn, waits as if working, writes the answer and its token count in one merge, and releases the turn.
    async fn answer(&self, round: usize) -> Result<(), CliError> {
        let path = ["threads", self.id, "turn"];
        let turn = json_request(
            self.remote,
            Method::POST,
            &path,
            &[],
            &json!({"wait_seconds": 20}),
        );
        let turn = answer(turn).await?;
        let token = turn["token"].as_str().unwrap_or_default();
        sleep(AGENT_WORK).await;
        let text = ANSWERS[round % ANSWERS.len()];
        let operations = json!({"operations": [
            {"op": "push", "key": "messages", "value": {"role": "assistant", "content": text}, "max_records": MESSAGES_MAX},
            {"op": "increment", "key": "tokens", "by": text.len()},
        ]});
        let state = ["threads", self.id, "state"];
        let written = json_request(self.remote, Method::PATCH, &state, &[], &operations);
        answer(written.header("x-turn-token", token)).await?;
        let released = self.remote.request(Method::DELETE, &path, &[]);
        answer(released.header("x-turn-token", token)).await?;
        Ok(())
    }

    /// Sends a question to the model, using the thread's history as the conversation.
    async fn converse(&self, round: usize) -> Result<(), CliError> {
        if round > 0 && round.is_multiple_of(EXCHANGES_MAX) {
            let history = ["threads", self.id, "history"];
            answer(self.remote.request(Method::DELETE, &history, &[])).await?;
        }
        let (question, _) = SCRIPT[round % SCRIPT.len()];
        let memory = json!({
            "type": "mcp", "server_label": "memory", "server_url": "threadkeep:memory", "require_approval": "never",
        });
        let body =
            json!({"model": NAME, "conversation": self.id, "input": question, "tools": [memory]});
        let response: Value = answer(json_request(
            self.remote,
            Method::POST,
            &["responses"],
            &[],
            &body,
        ))
        .await?;
        tracing::debug!(status = %response["status"], "the model answered");
        Ok(())
    }
}
