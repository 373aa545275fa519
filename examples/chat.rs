//! A chat that remembers, in memory or at `REDIS_URL`: `cargo run --example chat`, then again and
//! again `curl -b jar -c jar -H 'content-type: text/plain' -d hello http://127.0.0.1:3000/chat`.

use std::{convert::Infallible, env, error::Error, num::NonZeroU64, sync::Arc, time::Duration};

use actix_web::{App, HttpServer, post, web::Json};
use serde_json::{Value, json};
use threadkeep::actix::{Thread, Threads};
use threadkeep::domain::{EventType, KeyRing, Policy, SigningKey};
use threadkeep::events::{EventSettings, Events, Notice};
use threadkeep::identity::{CookieSettings, Identity};
use threadkeep::store::{Backend, Clock, MemoryStore, RedisSettings, RedisStore};
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

/// Called for each chat that has ended, an hour after its last message, on one of the replicas.
async fn say_goodbye(notice: Notice) -> Result<(), Infallible> {
    let bytes = notice.left.map_or(0, |left| left.state.len());
    println!("a chat of {bytes} bytes is over");
    Ok(())
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let backend: Arc<dyn Backend> = match env::var("REDIS_URL") {
        Ok(url) => Arc::new(RedisStore::connect(RedisSettings::new(url), Clock::system()).await?),
        Err(_) => Arc::new(MemoryStore::new(Clock::system())),
    };
    let events = Events::start(Arc::clone(&backend), EventSettings::default());
    let ends = [EventType::ThreadDestroyed].into_iter().collect();
    events.subscribe("goodbyes", ends, say_goodbye).await?;
    let service = ThreadService::new(
        Arc::clone(&backend) as _,
        Policy::THREAD,
        Duration::from_secs(2),
    );
    let key = SigningKey::new("main", b"a secret that only this app knows");
    let identity = Identity::new(KeyRing::new(vec![key])?, CookieSettings::default());
    let threads = Threads::new(service, identity)
        .with_backend(backend)
        .with_events(events.clone());
    let shared = threads.clone();
    let server = HttpServer::new(move || App::new().wrap(shared.clone()).service(chat));
    server.bind("127.0.0.1:3000")?.run().await?;
    events.shutdown().await;
    threads.shutdown(Duration::from_secs(10)).await;
    Ok(())
}
