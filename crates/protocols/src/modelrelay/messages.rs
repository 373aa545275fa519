use actix_web::HttpResponse;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::RelayError;
use super::bodies::read_id;
use super::error::wrong_body;
use super::request::RelayRequest;
use super::session_objects::message_object;
use threadkeep_domain::{Json, elements};
use threadkeep_http::json_text;

const ROLES: [&str; 3] = ["user", "assistant", "tool"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    role: String,
    content: Box<RawValue>,
    run_id: Option<String>,
}

/// `POST /sessions/{id}/messages`
pub(super) async fn add_message(request: RelayRequest) -> Result<HttpResponse, RelayError> {
    let id = request.id()?;
    let value = request.json::<NewMessage>()?.value()?;
    let making = request.making(&format!("message of {id}"), None)?;
    let sessions = &request.protocol.sessions;
    let message = sessions.add_message(id, &making, value).await?;
    Ok(json_text(HttpResponse::Created(), message_object(&message)))
}

impl NewMessage {
    /// Returns the message in its stored form.
    fn value(&self) -> Result<Json, RelayError> {
        let role = self.role.as_str();
        if !ROLES.contains(&role) {
            return Err(wrong_body("role must be user, assistant or tool"));
        }
        let content = self.content.get();
        if !content.starts_with('[') || content == "[]" {
            return Err(wrong_body("content must be a list of one part or more"));
        }
        if !elements(content).all(|part| part.starts_with('{')) {
            return Err(wrong_body("the parts of content must be objects"));
        }
        let run_id = read_id("run_id", self.run_id.as_deref())?;
        let run_id = run_id.map_or_else(String::new, |id| format!(r#","run_id":"{id}""#));
        let json = format!(r#"{{"role":"{role}","content":{content}{run_id}}}"#);
        Ok(Json::from_compact(json))
    }
}
