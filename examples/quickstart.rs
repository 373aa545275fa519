//! The app from the front page. Run `cargo run --example quickstart`, then repeatedly `curl -b jar -c jar -d hello
//! http://127.0.0.1:3000/chat`.

use actix_web::{App, HttpServer, get, post, web::Json};
use serde_json::{Value, json};
use threadkeep::{ApiError, Thread, Threads};

#[post("/chat")]
async fn chat(thread: Thread, text: String) -> Result<Json<Vec<Value>>, ApiError> {
    let state = thread.state();
    state.push_window("messages", json!({"role": "user", "content": text}), 50)?;
    Ok(Json(state.get("messages").await?.unwrap_or_default()))
}

#[get("/visits")]
async fn visits(thread: Thread) -> Result<String, ApiError> {
    thread.state().increment("visits", 1)?;
    let visits: Option<i64> = thread.state().get("visits").await?;
    Ok(visits.unwrap_or_default().to_string())
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // or Threads::builder().redis(url).signing_keys("main:<at least 32 bytes>").build().await?
    let threads = Threads::in_memory();
    let app = move || {
        App::new()
            .wrap(threads.clone())
            .service(chat)
            .service(visits)
    };
    HttpServer::new(app).bind("127.0.0.1:3000")?.run().await?;
    Ok(())
}
