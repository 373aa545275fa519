//! Stores the state of each session as one JSON string in Redis, with actix-web and deadpool-redis.
//!
//! ```text
//! peer-document ADDRESS REDIS_URL
//! ```

use std::env;
use std::error::Error;

use actix_web::cookie::Cookie;
use actix_web::error::ErrorInternalServerError;
use actix_web::web::{self, Data, Json, JsonConfig, Query};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, Result};
use deadpool_redis::redis::{Cmd, FromRedisValue, cmd};
use deadpool_redis::{Config, Pool, Runtime};
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const COOKIE: &str = "session";
const TTL_SECONDS: u64 = 3_600;

type State = Map<String, Value>;

#[derive(Deserialize)]
struct Push {
    window: usize,
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, redis_url] = &args[..] else {
        return Err("usage: peer-document ADDRESS REDIS_URL".into());
    };
    let pool = Config::from_url(redis_url).create_pool(Some(Runtime::Tokio1))?;
    let pool = Data::new(pool);
    let server = HttpServer::new(move || {
        App::new()
            .app_data(pool.clone())
            .app_data(JsonConfig::default().limit(2 << 20))
            .service(web::resource("/state").get(read).put(replace).patch(merge))
            .route("/state/messages", web::post().to(push))
    });
    server.workers(1).bind(address)?.run().await?;
    Ok(())
}

async fn read(request: HttpRequest, pool: Data<Pool>) -> Result<HttpResponse> {
    let mut command = cmd("GETEX");
    command.arg(key(&request)).arg("EX").arg(TTL_SECONDS);
    let text: Option<String> = ask(&pool, &command).await?;
    let text = text.unwrap_or_else(|| "{}".into());
    Ok(HttpResponse::Ok()
        .content_type("application/json")
        .body(text))
}

/// Replaces the state. Creates a session if the request does not name one.
async fn replace(
    request: HttpRequest,
    pool: Data<Pool>,
    Json(state): Json<State>,
) -> Result<HttpResponse> {
    let session = match request.cookie(COOKIE) {
        Some(cookie) => cookie.value().to_owned(),
        None => format!("{:032x}", rand::random::<u128>()),
    };
    save(&pool, &key_of(&session), &state).await?;
    let cookie = Cookie::build(COOKIE, session).http_only(true).finish();
    Ok(HttpResponse::Ok()
        .cookie(cookie)
        .json(json!({"keys": state.len()})))
}

async fn merge(
    request: HttpRequest,
    pool: Data<Pool>,
    Json(changes): Json<State>,
) -> Result<HttpResponse> {
    let key = key(&request);
    let mut state = load(&pool, &key).await?;
    state.extend(changes);
    save(&pool, &key, &state).await?;
    Ok(HttpResponse::Ok().json(json!({"keys": state.len()})))
}

async fn push(
    request: HttpRequest,
    pool: Data<Pool>,
    Query(push): Query<Push>,
    Json(message): Json<Value>,
) -> Result<HttpResponse> {
    let key = key(&request);
    let mut state = load(&pool, &key).await?;
    let messages = state.entry("messages").or_insert_with(|| json!([]));
    let Some(messages) = messages.as_array_mut() else {
        return Ok(HttpResponse::Conflict().finish());
    };
    messages.push(message);
    messages.drain(..messages.len().saturating_sub(push.window));
    let length = messages.len();
    save(&pool, &key, &state).await?;
    Ok(HttpResponse::Ok().json(json!({"length": length})))
}

fn key(request: &HttpRequest) -> String {
    let cookie = request.cookie(COOKIE);
    key_of(cookie.as_ref().map_or("", Cookie::value))
}

fn key_of(session: &str) -> String {
    format!("document:{session}")
}

async fn load(pool: &Pool, key: &str) -> Result<State> {
    let text: Option<String> = ask(pool, cmd("GET").arg(key)).await?;
    let state = text.map_or_else(|| Ok(State::new()), |text| serde_json::from_str(&text));
    state.map_err(ErrorInternalServerError)
}

async fn save(pool: &Pool, key: &str, state: &State) -> Result<()> {
    let text = serde_json::to_string(state)?;
    ask(
        pool,
        cmd("SET").arg(key).arg(text).arg("EX").arg(TTL_SECONDS),
    )
    .await
}

async fn ask<T: FromRedisValue>(pool: &Pool, command: &Cmd) -> Result<T> {
    let mut connection = pool.get().await.map_err(ErrorInternalServerError)?;
    let answer = command.query_async(&mut connection).await;
    answer.map_err(ErrorInternalServerError)
}
