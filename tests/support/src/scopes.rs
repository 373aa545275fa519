use serde_json::{Value, json};

use super::client::{Answer, Client, Request};
use super::server::API_SECRET;

pub fn new_session() -> String {
    format!("session:{:032x}", rand::random::<u128>())
}

impl Client {
    pub fn back_end(&self, path: &str, body: &Value) -> Request {
        self.post(path).bearer(API_SECRET).json(&body.to_string())
    }

    pub async fn tool(&self, scope: &str, name: &str, arguments: Value) -> Value {
        let body = json!({"scope": scope, "arguments": arguments});
        let answer = self.back_end(&format!("/v1/tools/{name}"), &body);
        answer.ok().await.json()
    }

    pub async fn scope(&self, path: &str, body: Value) -> Answer {
        self.back_end(&format!("/v1/scopes/{path}"), &body)
            .ok()
            .await
    }
}
