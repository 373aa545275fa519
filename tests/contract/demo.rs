use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::{paths, until};

const PATIENCE: Duration = Duration::from_secs(120);

struct Demo {
    child: Child,
    client: Client,
    key: String,
    stderr_lines: Receiver<String>,
}

impl Demo {
    /// Starts a demo. Its environment contains server settings, which the demo must ignore.
    fn start() -> Self {
        let mut child = Command::new(paths::program())
            .args(["demo", "--listen", "127.0.0.1:0"])
            .env_clear()
            .env("THREADKEEP_REDIS_URL", "redis://127.0.0.1:1")
            .current_dir(paths::scratch())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let export = stdout
            .lines()
            .map(Result::unwrap)
            .find(|line| line.contains("export THREADKEEP_URL="))
            .unwrap();
        let value = |name: &str| {
            let (_, rest) = export.split_once(name).unwrap();
            rest.split(' ').next().unwrap().to_owned()
        };
        let url = value("THREADKEEP_URL=");
        let (sender, stderr_lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        thread::spawn(move || {
            let mut lines = stderr.lines().map_while(Result::ok);
            lines.try_for_each(|line| sender.send(line)).ok();
        });
        Self {
            child,
            client: Client::new(url.strip_prefix("http://").unwrap().parse().unwrap()),
            key: value("THREADKEEP_API_KEY="),
            stderr_lines,
        }
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.client.get(path).bearer(&self.key).send().await;
        answer.json()
    }

    async fn until(&self, path: &str, condition: impl Fn(&Value) -> bool) -> Value {
        until(|| async { condition(&self.get(path).await) }).await;
        self.get(path).await
    }

    async fn thread(&self, title: &str) -> String {
        let titled = |page: &Value| {
            let threads = page["threads"].as_array()?.clone();
            threads.into_iter().find(|thread| {
                let found = thread["metadata"]["title"].as_str();
                found.is_some_and(|found| found.starts_with(title))
            })
        };
        let page = self
            .until("/v1/threads?limit=100", |page| titled(page).is_some())
            .await;
        format!(
            "/v1/threads/{}",
            titled(&page).unwrap()["id"].as_str().unwrap()
        )
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[tokio::test]
async fn a_demo_has_threads_of_two_owners_and_an_ended_one() {
    let demo = Demo::start();
    let live = demo.thread("Live").await;
    let page = demo.get("/v1/threads?limit=100").await;
    let mut owners: Vec<&str> = page["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|thread| thread["owner"].as_str().unwrap())
        .collect();
    owners.sort_unstable();
    assert_eq!(owners, ["ada", "ada", "ben", "ben"]);
    let archives = demo.get("/v1/archives").await;
    assert_eq!(archives["archives"].as_array().unwrap().len(), 1);
    let long = demo.thread("Support").await;
    let newest = demo
        .get(&format!("{long}/history?order=desc&limit=1"))
        .await;
    assert_eq!(newest["items"][0]["seq"], 400);
    let agent = demo.thread("Agent").await;
    let scope = json!({"scope": format!("thread:{}", agent.trim_start_matches("/v1/threads/"))});
    let tasks = demo.client.post("/v1/scopes/tasks/get").bearer(&demo.key);
    let tasks = tasks.json(&scope.to_string()).ok().await.json();
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 4);
    assert_ne!(live, long);
}

#[tokio::test]
async fn writers_and_the_model_of_a_demo_share_one_thread() {
    let demo = Demo::start();
    let live = demo.thread("Live").await;

    // wait until both the page and the agent have written
    demo.until(&format!("{live}/state"), |state| {
        let has = |text: &str| {
            let messages = state["messages"].as_array().unwrap();
            messages.iter().any(|message| message["content"] == text)
        };
        has("Is the staging server up?")
            && has("It is up, and all probes pass.")
            && state["tokens"] != 0
    })
    .await;
    // wait until the model has answered and stored a fact with a tool
    let history = demo
        .until(&format!("{live}/history?limit=100"), |page| {
            let items = page["items"].as_array().unwrap();
            items.iter().any(|item| item["value"]["type"] == "mcp_call")
        })
        .await;
    let call = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["value"]["type"] == "mcp_call");
    assert!(call.unwrap()["value"]["error"].is_null(), "{call:?}");
    let scope = json!({"scope": format!("thread:{}", live.trim_start_matches("/v1/threads/"))});
    let keys = demo.client.post("/v1/scopes/keys/list").bearer(&demo.key);
    let keys = keys.json(&scope.to_string()).ok().await.json();
    assert_eq!(keys["keys"], json!(["notes/ben-owns-the"]));
}

#[tokio::test]
async fn a_client_can_call_the_demos_model() {
    let demo = Demo::start();
    demo.thread("Live").await;
    let ask = json!({"model": "demo", "input": "Hello."}).to_string();

    let answer = demo.client.post("/v1/responses").bearer(&demo.key);
    let answer = answer.json(&ask).ok().await.json();

    let text = answer["output"][0]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("You said: Hello."), "{text}");
}

#[tokio::test]
async fn a_link_opens_the_demos_console_and_a_signal_stops_the_demo() {
    let mut demo = Demo::start();
    demo.thread("Live").await;
    let link = demo.stderr_lines.recv_timeout(PATIENCE).unwrap();
    let (_, token) = link.split_once("/console/#once=").unwrap();

    let opened = demo.client.post("/console/session").bearer(token);
    assert_eq!(opened.ok().await.json()["api_key"], demo.key.as_str());

    let interrupt = format!("kill -INT {}", demo.child.id());
    let sent = Command::new("sh").args(["-c", &interrupt]).status();
    assert!(sent.unwrap().success());
    assert!(demo.child.wait().unwrap().success());
    let next = demo.stderr_lines.recv_timeout(PATIENCE).unwrap();
    assert!(next.contains("/console/#once="), "{next}");
    let rest: Vec<String> = demo.stderr_lines.iter().collect();
    assert_eq!(rest, [""; 0], "a demo logs nothing");
}
