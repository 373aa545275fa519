//! Stores one state per session, with actix-session and its Redis store. Each key of the state becomes a session key.
//!
//! ```text
//! peer-actix-session sliding|fixed ADDRESS REDIS_URL
//! ```
//!
//! With `sliding`, each request extends the session. With `fixed`, only writes extend the session.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;

use actix_session::config::{BrowserSession, TtlExtensionPolicy};
use actix_session::storage::RedisSessionStore;
use actix_session::{Session, SessionMiddleware};
use actix_web::cookie::Key;
use actix_web::web::{self, Json, JsonConfig, Query};
use actix_web::{App, HttpResponse, HttpServer, Result};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[derive(Serialize, Deserialize)]
struct Message {
    role: String,
    content: String,
}

#[derive(Deserialize)]
struct Push {
    window: usize,
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let usage = "usage: peer-actix-session sliding|fixed ADDRESS REDIS_URL";
    let [expiry, address, redis_url] = &args[..] else {
        return Err(usage.into());
    };
    let is_sliding = match expiry.as_str() {
        "sliding" => true,
        "fixed" => false,
        _ => return Err(usage.into()),
    };
    let secret_key = Key::generate();
    let store = RedisSessionStore::new(redis_url).await?;
    let server = HttpServer::new(move || {
        let sessions = SessionMiddleware::builder(store.clone(), secret_key.clone())
            .session_lifecycle(
                BrowserSession::default().state_ttl_extension_policy(policy(is_sliding)),
            );
        App::new()
            .wrap(sessions.build())
            .app_data(JsonConfig::default().limit(2 << 20))
            .service(web::resource("/state").get(read).put(replace).patch(merge))
            .route("/state/messages", web::post().to(push))
    });
    server.workers(1).bind(address)?.run().await?;
    Ok(())
}

fn policy(is_sliding: bool) -> TtlExtensionPolicy {
    if is_sliding {
        TtlExtensionPolicy::OnEveryRequest
    } else {
        TtlExtensionPolicy::OnStateChanges
    }
}

async fn read(session: Session) -> Result<HttpResponse> {
    let entries = session.entries();
    let state: serde_json::Result<BTreeMap<&str, &RawValue>> = entries
        .iter()
        .map(|(key, text)| Ok((key.as_str(), serde_json::from_str(text)?)))
        .collect();
    Ok(HttpResponse::Ok().json(state?))
}

async fn replace(session: Session, Json(state): Json<Map<String, Value>>) -> Result<HttpResponse> {
    session.clear();
    for (key, value) in &state {
        session.insert(key, value)?;
    }
    Ok(HttpResponse::Ok().json(json!({"keys": state.len()})))
}

async fn merge(session: Session, Json(changes): Json<Map<String, Value>>) -> Result<HttpResponse> {
    for (key, value) in changes {
        session.insert(key, value)?;
    }
    Ok(HttpResponse::Ok().json(json!({"keys": session.entries().len()})))
}

async fn push(
    session: Session,
    Query(push): Query<Push>,
    Json(message): Json<Message>,
) -> Result<HttpResponse> {
    let mut messages: Vec<Message> = session.get("messages")?.unwrap_or_default();
    messages.push(message);
    messages.drain(..messages.len().saturating_sub(push.window));
    session.insert("messages", &messages)?;
    Ok(HttpResponse::Ok().json(json!({"length": messages.len()})))
}
