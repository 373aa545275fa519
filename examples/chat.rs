//! A chat that remembers, in memory or at `REDIS_URL`: `cargo run --example chat`, then again and
//! again `curl -b jar -c jar -H 'content-type: text/plain' -d hello http://127.0.0.1:3000/chat`.

use std::{env, error::Error, num::NonZeroU64, sync::Arc, time::Duration};

use actix_web::{App, HttpServer, post, web::Json};
use serde_json::{Value, json};
use threadkeep::actix::{Thread, Threads};
use threadkeep::domain::{KeyRing, Policy, SigningKey};
use threadkeep::identity::{CookieSettings, Identity};
use threadkeep::store::{Clock, MemoryStore, RedisSettings, RedisStore, Store};
use threadkeep::{http::ApiError, service::ThreadService};

#[post("/chat")]
async fn chat(thread: Thread, text: String) -> Result<Json<Vec<Value>>, ApiError> {
    const WINDOW: NonZeroU64 = NonZeroU64::new(50).expect("50 is not zero");
    let (state, echo) = (thread.state(), format!("You said: {text}"));
    for (role, content) in [("user", text), ("assistant", echo)] {
        let message = json!({"role": role, "content": content});
        state.push_window("messages", message, WINDOW)?;
    }
    Ok(Json(state.get("messages").await?.unwrap_or_default()))
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store: Arc<dyn Store> = match env::var("REDIS_URL") {
        Ok(url) => Arc::new(RedisStore::connect(RedisSettings::new(url), Clock::system()).await?),
        Err(_) => Arc::new(MemoryStore::new(Clock::system())),
    };
    let service = ThreadService::new(store, Policy::THREAD, Duration::from_secs(2));
    let key = SigningKey::new("main", b"a secret that only this app knows");
    let identity = Identity::new(KeyRing::new(vec![key])?, CookieSettings::default());
    let threads = Threads::new(service, identity);
    let shared = threads.clone();
    let server = HttpServer::new(move || App::new().wrap(shared.clone()).service(chat));
    server.bind("127.0.0.1:3000")?.run().await?;
    threads.shutdown(Duration::from_secs(10)).await;
    Ok(())
}
