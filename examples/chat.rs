//! A chat with memory, which is stored in this process or in Redis at `REDIS_URL`. Run `cargo run --example chat`, then
//! repeatedly `curl -b jar -c jar -d hello http://127.0.0.1:3000/chat`.

use std::{convert::Infallible, env, error::Error, time::Duration};

use actix_web::{App, HttpServer, post, web::Json};
use serde_json::{Value, json};
use threadkeep::{ApiError, EventType, Notice, Thread, Threads};

#[post("/chat")]
async fn chat(thread: Thread, text: String) -> Result<Json<Vec<Value>>, ApiError> {
    let (state, echo) = (thread.state(), format!("You said: {text}"));
    for (role, content) in [("user", text), ("assistant", echo)] {
        let message = json!({"role": role, "content": content});
        state.push_window("messages", message, 50)?;
    }
    Ok(Json(state.get("messages").await?.unwrap_or_default()))
}

/// Called on one replica when a chat ends, an hour after its last message.
async fn on_chat_end(notice: Notice) -> Result<(), Infallible> {
    let bytes = notice.archive.map_or(0, |archive| archive.state.len());
    println!("a chat of {bytes} bytes is over");
    Ok(())
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let keys = env::var("SIGNING_KEYS");
    let builder = Threads::builder().signing_keys(
        keys.as_deref()
            .unwrap_or("main:a secret that only this example knows"),
    );
    let threads = match env::var("REDIS_URL") {
        Ok(url) => builder.redis(url).build().await?,
        Err(_) => builder.build().await?,
    };
    let events = threads.events().expect("they are on by default").clone();
    let ends = [EventType::ThreadDestroyed].into_iter().collect();
    events.subscribe("goodbyes", ends, on_chat_end).await?;
    let shared = threads.clone();
    let server = HttpServer::new(move || App::new().wrap(shared.clone()).service(chat));
    server.bind("127.0.0.1:3000")?.run().await?;
    events.shutdown().await;
    threads.shutdown(Duration::from_secs(10)).await;
    Ok(())
}
