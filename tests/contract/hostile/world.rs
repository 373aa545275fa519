//! Names that requests use, and objects that exist on the server.
//!
//! Names are derived from the index of the case. A block of 256 consecutive cases shares its names, so that these cases
//! affect each other's data. The next block uses new names, because a destroyed thread rejects all further requests.

use std::net::SocketAddr;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::dice::Dice;
use super::request::Request;
use super::schema::{LOOPBACK_URL, Schemas};
use crate::support::client::{Client, signature};
use crate::support::raw::{exchange, status};
use crate::support::server::{API_SECRET, RELAY_SECRET, SIGNING_SECRET};

pub(super) const BLOCK: u64 = 256;
const THREADS: usize = 6;
const OBJECTS_PER_KIND: usize = 3;
/// The id of the effect, the record of a tool call, in every thread with a turn.
const EFFECT: &str = "call-1";
const TIME: &str = "2026-01-02T03:04:05.678Z";
const KEYS: [&str; 8] = [
    "a",
    "b",
    "list",
    "counter",
    "o",
    "k é/%?",
    "..",
    "long-long-long-key",
];

#[derive(Debug, Clone, Default)]
pub(super) struct Objects {
    pub(super) webhooks: Vec<String>,
    pub(super) handles: Vec<String>,
    pub(super) sessions: Vec<String>,
    pub(super) runs: Vec<String>,
    pub(super) mcp_urls: Vec<String>,
    pub(super) turns: Vec<(String, String)>,
    /// The fences of the effects [`EFFECT`], in the order of `turns`.
    pub(super) fences: Vec<String>,
    pub(super) tools: Vec<(String, Value)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct World<'a> {
    pub(super) objects: &'a Objects,
    pub(super) block: u64,
}

/// Listed objects. Only the ids are parsed, because other members may contain numbers such as `1e400`, which a
/// [`Value`] cannot represent.
#[derive(Deserialize)]
struct Listed {
    #[serde(
        alias = "webhooks",
        alias = "namespaces",
        alias = "sessions",
        alias = "state_handles"
    )]
    all: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(alias = "namespace")]
    id: String,
}

impl Objects {
    /// Creates some objects of each kind with valid requests. Returns `None` if a request fails.
    pub(super) async fn create(client: &Client) -> Option<Self> {
        let mut objects = Self::default();
        for index in 0..OBJECTS_PER_KIND {
            let make = async |path: &str, body: Value, id: &str| {
                let request = client.post(path).bearer(API_SECRET);
                let answer = request.json(&body.to_string()).send().await.json();
                answer[id].as_str().map(str::to_owned)
            };
            let endpoint = json!({"url": LOOPBACK_URL, "events": ["thread.destroyed"]});
            let scope = json!({"scope": format!("session:by-url-{index}")});
            let ttl = json!({"ttl_seconds": 3_600});
            objects
                .webhooks
                .push(make("/v1/webhooks", endpoint, "id").await?);
            objects
                .handles
                .push(make("/api/v1/state-handles", ttl, "id").await?);
            objects
                .sessions
                .push(make("/api/v1/sessions", json!({}), "id").await?);
            objects
                .runs
                .push(make("/api/v1/runs", json!({}), "run_id").await?);
            let thread = make("/v1/threads", json!({}), "id").await?;
            let turn = format!("/v1/threads/{thread}/turn");
            let token = make(&turn, json!({"ttl_seconds": 600}), "token").await?;
            let begin = client.post(&format!("/v1/threads/{thread}/effects/{EFFECT}"));
            let begin = begin.bearer(API_SECRET).header("x-turn-token", &token);
            let effect = begin.json(r#"{"tool":"search"}"#).send().await.json();
            objects.fences.push(effect["fence"].as_str()?.to_owned());
            objects.turns.push((thread, token));
            let url = make("/v1/mcp-urls", scope, "url").await?;
            objects.mcp_urls.push(url[url.find("/mcp")?..].to_owned());
        }
        let tools = client.get("/v1/tools?format=mcp").ok().await.json();
        for tool in tools["tools"].as_array()? {
            let name = tool["name"].as_str()?.to_owned();
            objects.tools.push((name, tool["inputSchema"].clone()));
        }
        Some(objects)
    }

    /// Deletes all objects that do not expire, including those that other test cases created.
    pub(super) async fn delete_all(address: SocketAddr) {
        let client = Client::new(address);
        for list in [
            "/v1/webhooks",
            "/v1/kv",
            "/api/v1/sessions",
            "/api/v1/state-handles",
        ] {
            loop {
                let listed = client.get(list).bearer(API_SECRET).ok().await;
                let Listed { all } = serde_json::from_slice(&listed.body).unwrap();
                if all.is_empty() {
                    break;
                }
                for Entry { id } in all {
                    let id = percent(&id);
                    // build the request by hand, because the key of one object is `..`, which an HTTP client resolves
                    // as a path segment
                    let request = Request::new("DELETE", format!("{list}/{id}"))
                        .header("authorization", bearer())
                        .header("connection", "close");
                    let ended = status(&exchange(address, request.bytes()).await);
                    assert!(matches!(ended, 200..=299 | 404), "{list}/{id}: {ended}");
                }
            }
        }
    }
}

impl World<'_> {
    pub(super) fn thread(self, dice: &mut Dice) -> String {
        if dice.one_in(12) {
            return self.thread_with_turn(dice);
        }
        let index = dice.below(THREADS);
        format!("thrd_{:016x}{:016x}", self.block, index)
    }

    pub(super) fn thread_with_turn(self, dice: &mut Dice) -> String {
        dice.pick(&self.objects.turns).0.clone()
    }

    pub(super) fn effect(self, dice: &mut Dice) -> String {
        match dice.one_in(2) {
            true => EFFECT.into(),
            false => format!("call-{}-{}", self.block, dice.below(3)),
        }
    }

    pub(super) fn fence(self, dice: &mut Dice) -> String {
        dice.pick(&self.objects.fences).clone()
    }

    pub(super) fn token(self, thread: &str, dice: &mut Dice) -> String {
        let turns = &self.objects.turns;
        let own = turns.iter().find(|(id, _)| id == thread);
        own.unwrap_or_else(|| dice.pick(turns)).1.clone()
    }

    pub(super) fn namespace(self, dice: &mut Dice) -> String {
        format!("ns-{}-{}", self.block, dice.below(2))
    }

    pub(super) fn scope(self, dice: &mut Dice) -> String {
        match dice.below(8) {
            0 => format!("state:{}", dice.pick(&self.objects.handles)),
            1 => format!("run:{}", dice.pick(&self.objects.runs)),
            2 => format!("tool:t-{}", self.block),
            3 => format!("personality:p-{}", self.block),
            4 => "request".into(),
            5 => format!("thread:{}", self.thread(dice)),
            _ => format!("session:s-{}-{}", self.block, dice.below(3)),
        }
    }

    pub(super) fn key(self, dice: &mut Dice) -> String {
        dice.word(&KEYS).into()
    }

    pub(super) fn tool_call(self, dice: &mut Dice) -> (String, Value) {
        let (name, schema) = dice.pick(&self.objects.tools).clone();
        let arguments = Schemas::new(&Value::Null).value(&schema, "arguments", self, dice);
        (name, arguments)
    }

    /// Returns the requests that begin a block of cases. The requests create the threads of the block, one of them with
    /// an effect, delete one of these threads, and write some entries and tasks.
    pub(super) fn begin(self) -> Vec<Request> {
        let with_key = |method: &str, path: String| {
            Request::new(method, path).header("authorization", bearer())
        };
        let id = |index: usize| format!("thrd_{:016x}{index:016x}", self.block);
        let state = json!({"a": 1, "b": "text", "list": [1, 2, 3], "counter": 5,
            "o": {"p": {"q": [null, true]}}});
        let import = with_key("POST", "/v1/threads/import".into())
            .json(document_with_effect(&id(0), &state).to_string());
        let create = |index| {
            let thread = json!({"id": id(index), "state": state});
            with_key("POST", "/v1/threads".into()).json(thread.to_string())
        };
        let mut requests = vec![import];
        requests.extend((1..THREADS).map(create));
        let save = |index| with_key("POST", format!("/v1/threads/{}/checkpoints", id(index)));
        requests.extend((0..THREADS).map(save));
        let append = |index| {
            let items =
                ["i-1", "i-2", "i-3"].map(|id| json!({"id": id, "value": {"type": "x", "id": id}}));
            let path = format!("/v1/threads/{}/history", id(index));
            with_key("POST", path).json(json!({"items": items}).to_string())
        };
        requests.extend((0..THREADS).map(append));
        requests.push(with_key(
            "DELETE",
            format!("/v1/threads/{}", id(THREADS - 1)),
        ));
        for index in 0..2 {
            let entry = format!("/v1/kv/ns-{}-{index}/a", self.block);
            requests.push(with_key("PUT", entry).json("1"));
            let tasks = json!({"scope": format!("session:s-{}-{index}", self.block),
                "tasks": [{"content": "x", "status": "pending", "id": "1"}]});
            requests.push(with_key("POST", "/v1/scopes/tasks/set".into()).json(tasks.to_string()));
        }
        requests
    }
}

fn document_with_effect(id: &str, state: &Value) -> Value {
    json!({
        "format": 1,
        "thread": {"id": id, "version": 1, "created_at": TIME, "updated_at": TIME, "ttl_seconds": 3_600},
        "metadata": {},
        "state": state,
        "history": {"first_seq": 1, "next_seq": 1, "items": []},
        "turns": {"last": 1, "complete": 0},
        "effects": [imported_effect()],
    })
}

/// Returns an effect for an import.
pub(super) fn imported_effect() -> Value {
    json!({"id": EFFECT, "tool": "search", "hash": "0", "attempt": 1, "turn": 0, "begun_at": TIME,
        "idempotency_key": "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11"})
}

pub(super) fn signed(id: &str) -> String {
    format!("{id};{}", signature(SIGNING_SECRET, id))
}

pub(super) fn cookie(id: &str) -> String {
    format!("atid={id}.{}", percent(&signature(SIGNING_SECRET, id)))
}

pub(super) fn bearer() -> String {
    format!("Bearer {API_SECRET}")
}

pub(super) fn relay_key() -> &'static str {
    RELAY_SECRET
}

pub(super) fn percent(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
