use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::timeout;

use super::client::Request;

const WAIT_LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Listening {
    response: Response,
    text: String,
    pub cursor: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub event: String,
    pub data: Value,
    pub text: String,
}

impl Request {
    pub async fn listen(self) -> Listening {
        let response = self.header("accept", "text/event-stream").begin().await;
        assert_eq!(response.status().as_u16(), 200);
        let content_type = response.headers()["content-type"].to_str().unwrap();
        assert_eq!(content_type, "text/event-stream");
        let mut listening = Listening {
            response,
            text: String::new(),
            cursor: String::new(),
        };
        let first = listening.block().await.unwrap();
        assert!(first.starts_with("retry: 2000\nid: "), "{first}");
        listening.update_cursor(&first);
        listening
    }
}

impl Listening {
    pub fn header(&self, name: &str) -> Option<&str> {
        Some(self.response.headers().get(name)?.to_str().unwrap())
    }

    pub async fn next(&mut self) -> Sent {
        self.try_next().await.expect("another event should arrive")
    }

    pub async fn try_next(&mut self) -> Option<Sent> {
        loop {
            let block = self.block().await?;
            self.update_cursor(&block);
            let field = |name: &str| {
                let mut lines = block.lines();
                let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                value.map(str::to_owned)
            };
            if let (Some(event), Some(text)) = (field("event"), field("data")) {
                // ignore errors, because an event of another test may contain numbers that do not fit into a double
                let data = serde_json::from_str(&text).unwrap_or_default();
                return Some(Sent { event, data, text });
            }
        }
    }

    pub async fn next_all(&mut self, count: usize) -> Vec<String> {
        let mut events = Vec::new();
        for _ in 0..count {
            events.push(self.next().await.words());
        }
        events
    }

    fn update_cursor(&mut self, block: &str) {
        let id = block.lines().find_map(|line| line.strip_prefix("id: "));
        if let Some(id) = id {
            self.cursor = id.to_owned();
        }
    }

    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let chunk = timeout(WAIT_LIMIT, self.response.chunk()).await;
            let chunk = chunk.expect("data should arrive").unwrap()?;
            self.text.push_str(str::from_utf8(&chunk).unwrap());
        }
    }
}

impl Sent {
    pub fn about(&self) -> &Value {
        &self.data["data"]
    }

    pub fn words(&self) -> String {
        let version = match self.event.as_str() {
            "reset" => &self.data["version"],
            _ => &self.data["data"]["version"],
        };
        format!("{} {version}", self.event)
    }
}
