//! Creates the initial threads of the demo.

use reqwest::Method;
use serde_json::{Value, json};

use crate::cli::error::CliError;
use crate::cli::remote::{Remote, answer, json_request};

/// Lifetime of the threads, longer than any demo runs.
const TTL_SECONDS: u32 = 30 * 24 * 60 * 60;
const LONG_HISTORY_ITEMS: usize = 400;

/// Creates example threads for two owners, and returns the id of the thread that the writers update.
pub(super) async fn create(remote: &Remote) -> Result<String, CliError> {
    let threads = Threads { remote };
    threads.chat().await?;
    threads.agent().await?;
    threads.long().await?;
    threads.ended().await?;
    // the console shows a thread with messages as a chat
    let greeting = [
        json!({"role": "user", "content": "Good morning. Shall we start?"}),
        json!({"role": "assistant", "content": "I am ready."}),
    ];
    threads
        .create(
            "ada",
            "Live: two writers and a model",
            &json!({"messages": greeting, "tokens": 0}),
        )
        .await
}

struct Threads<'a> {
    remote: &'a Remote,
}

impl Threads<'_> {
    /// Creates a thread for a chat on a web page, with the messages in the thread's state.
    async fn chat(&self) -> Result<(), CliError> {
        let messages = [
            ("user", "Three days in Lisbon: what would you do?"),
            (
                "assistant",
                "Alfama on foot, Belém by tram, and a day in Sintra.",
            ),
            ("user", "We travel with a child of six."),
            (
                "assistant",
                "Then swap Sintra for the aquarium and a boat on the Tejo.",
            ),
            ("user", "Perfect. Please make a plan for each day."),
            (
                "assistant",
                "Friday: Alfama. Saturday: aquarium and boat. Sunday: Belém, and pastries.",
            ),
        ]
        .map(|(role, content)| json!({"role": role, "content": content}));
        let state = json!({"messages": messages, "language": "en", "tokens": 1_204});
        self.create("ada", "Three days in Lisbon", &state).await?;
        Ok(())
    }

    /// Creates a thread for an agent, with notes, tasks, and a history that contains tool calls.
    async fn agent(&self) -> Result<(), CliError> {
        let id = self
            .create(
                "ben",
                "Agent: compare heat pumps",
                &json!({"step": 3, "budget_eur": 14_000}),
            )
            .await?;
        let scope = format!("thread:{id}");
        let notes = [
            ("house/area", "142 m2, built in 1978"),
            ("house/heating", "gas, 21,000 kWh a year"),
            ("offers/best", "air to water, 11 kW, 12,900 EUR"),
        ]
        .map(|(key, value)| json!({"key": key, "value": value}));
        self.post(
            &["scopes", "keys", "set"],
            &json!({"scope": scope, "entries": notes}),
        )
        .await?;
        let tasks = [
            ("Ask for the size of the house", "completed"),
            ("Collect three offers", "completed"),
            ("Compare the costs of ten years", "in_progress"),
            ("Write a recommendation", "pending"),
        ]
        .map(|(content, status)| json!({"content": content, "status": status}));
        self.post(
            &["scopes", "tasks", "set"],
            &json!({"scope": scope, "tasks": tasks}),
        )
        .await?;
        let values = [
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which heat pump pays off for my house?"}]}),
            json!({"type": "function_call", "call_id": "call_1", "name": "search_offers", "arguments": "{\"kw\":11}"}),
            json!({"type": "function_call_output", "call_id": "call_1", "output": "[{\"price_eur\":12900,\"cop\":4.1},{\"price_eur\":15200,\"cop\":4.6}]"}),
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Two offers fit. I compare their costs over ten years.", "annotations": []}]}),
        ];
        self.append(&id, values).await
    }

    /// Creates a thread whose history has many messages.
    async fn long(&self) -> Result<(), CliError> {
        let id = self
            .create("ben", "Support: a long history", &json!({"ticket": 4_711}))
            .await?;
        let values = (0..LONG_HISTORY_ITEMS).map(|index| {
            let (role, kind, text) = match index % 2 {
                0 => (
                    "user",
                    "input_text",
                    format!(
                        "Question {}: the export stops at {} %.",
                        index / 2 + 1,
                        index % 100
                    ),
                ),
                _ => (
                    "assistant",
                    "output_text",
                    format!(
                        "Answer {}: please send the last line of the log.",
                        index / 2 + 1
                    ),
                ),
            };
            json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
        });
        self.append(&id, values).await
    }

    /// Creates and ends a thread, so that the archives contain it.
    async fn ended(&self) -> Result<(), CliError> {
        let messages = [
            json!({"role": "user", "content": "Cancel my order, please."}),
            json!({"role": "assistant", "content": "Done. The refund takes three days."}),
        ];
        let id = self
            .create("ada", "A cancelled order", &json!({"messages": messages}))
            .await?;
        answer(self.remote.request(Method::DELETE, &["threads", &id], &[])).await?;
        Ok(())
    }

    async fn create(&self, owner: &str, title: &str, state: &Value) -> Result<String, CliError> {
        let body = json!({"owner": owner, "metadata": {"title": title}, "state": state, "ttl_seconds": TTL_SECONDS});
        let made = self.post(&["threads"], &body).await?;
        Ok(made["id"].as_str().unwrap_or_default().to_owned())
    }

    async fn append(
        &self,
        id: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<(), CliError> {
        let items: Vec<Value> = values
            .into_iter()
            .enumerate()
            .map(|(index, value)| json!({"id": format!("item-{}", index + 1), "value": value}))
            .collect();
        self.post(&["threads", id, "history"], &json!({"items": items}))
            .await?;
        Ok(())
    }

    async fn post(&self, path: &[&str], body: &Value) -> Result<Value, CliError> {
        answer(json_request(self.remote, Method::POST, path, &[], body)).await
    }
}
