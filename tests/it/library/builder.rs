use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::COOKIE;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, web};
use threadkeep::settings::MemorySettings;
use threadkeep::{ApiError, BuildError, Thread, Threads, ThreadsBuilder};
use threadkeep_identity::{CookieSettings, SameSite};

use super::{Response, header};

const KEYS: &str = "new:a secret of the tests that is long,old:another one of them that is long";

async fn visit(threads: &Threads, cookie: Option<&str>) -> Response {
    let count = async |thread: Thread| {
        thread.state().increment("visits", 1)?;
        let visits: Option<i64> = thread.state().get("visits").await?;
        Ok::<_, ApiError>(visits.unwrap_or_default().to_string())
    };
    let app = App::new()
        .wrap(threads.clone())
        .default_service(web::to(count));
    // a browser sends back only the name and value of a cookie
    let pair = cookie.map(|text| text.split(';').next().unwrap_or_default());
    let request = pair.into_iter().fold(TestRequest::get(), |request, pair| {
        request.insert_header((COOKIE, pair))
    });
    call_service(&init_service(app).await, request.to_request()).await
}

async fn assert_remembers(first: &Threads, then: &Threads) {
    let made = visit(first, None).await;
    let cookie = header(&made, "set-cookie").unwrap().to_owned();
    assert_eq!(read_body(made).await, "1");

    let seen = visit(then, Some(&cookie)).await;

    assert_eq!(read_body(seen).await, "2");
}

async fn refusal(builder: ThreadsBuilder) -> BuildError {
    builder.build().await.unwrap_err()
}

#[actix_web::test]
async fn threads_in_memory_need_no_settings() {
    let threads = Threads::in_memory();
    assert_remembers(&threads, &threads).await;

    let built = Threads::builder().build().await.unwrap();
    assert_remembers(&built, &built).await;
    assert!(built.events().is_some());
    let quiet = Threads::builder().without_events().build().await.unwrap();
    assert!(quiet.events().is_none());
}

#[actix_web::test]
async fn threads_in_memory_respect_the_memory_limit() {
    let settings = MemorySettings {
        max_bytes: 1,
        ..MemorySettings::default()
    };
    let threads = Threads::builder().memory_with(settings).build().await;
    let threads = threads.unwrap();
    visit(&threads, None).await;

    let answer = visit(&threads, None).await;

    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let body = read_body(answer).await;
    assert!(
        String::from_utf8_lossy(&body).contains("store_full"),
        "{body:?}"
    );
}

#[actix_web::test]
async fn apps_with_the_same_redis_and_keys_share_threads() {
    use threadkeep::settings::RedisSettings;

    use crate::support::redis::{self, unique_prefix};

    let redis = redis::shared();
    let settings = RedisSettings {
        key_prefix: unique_prefix(),
        timeout: Duration::from_secs(30),
        ..RedisSettings::new(redis.url())
    };
    let app = |keys: &str| {
        let builder = Threads::builder().redis_with(settings.clone());
        builder.signing_keys(keys).build()
    };
    let [one, other] = [app(KEYS).await.unwrap(), app(KEYS).await.unwrap()];
    let before = app(KEYS.split_once(',').unwrap().1).await.unwrap();

    assert_remembers(&one, &other).await;
    assert_remembers(&before, &one).await;
}

#[actix_web::test]
async fn invalid_settings_are_reported_without_secrets() {
    let keys = |list: &str| Threads::builder().signing_keys(list);
    for list in ["", "main:short", "main", "a b:c", &format!("{KEYS},{KEYS}")] {
        let error = refusal(keys(list)).await;
        assert!(matches!(error, BuildError::SigningKeys(_)), "{error:?}");
        let text = format!("{error:?} {error}");
        assert!(!text.contains("short") || !text.contains("main:"), "{text}");
        assert!(!text.contains("a secret"), "{text}");
    }
    for seconds in [0, 59, 946_080_001] {
        let builder = Threads::builder().ttl(Duration::from_secs(seconds));
        assert!(matches!(refusal(builder).await, BuildError::Ttl));
    }
    let cookie = CookieSettings {
        name: "__Host-thread".into(),
        same_site: SameSite::None,
        domain: Some("example.com".into()),
        ..CookieSettings::default()
    };
    let error = refusal(Threads::builder().cookie(cookie)).await;
    assert!(matches!(error, BuildError::Cookie(_)), "{error:?}");
}

#[actix_web::test]
async fn an_unreachable_redis_fails_the_build() {
    let url = format!("redis://127.0.0.1:{}", crate::support::redis::free_port());
    let error = refusal(Threads::builder().redis(url)).await;
    assert!(matches!(error, BuildError::Store(_)), "{error:?}");
}

#[actix_web::test]
async fn an_empty_window_is_refused() {
    let push = async |thread: Thread| {
        thread.state().push_window("list", 1, 0)?;
        Ok::<_, ApiError>("pushed")
    };
    let app = App::new()
        .wrap(Threads::in_memory())
        .default_service(web::to(push));

    let response = call_service(&init_service(app).await, TestRequest::get().to_request()).await;

    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let problem = read_body(response).await;
    let problem: serde_json::Value = serde_json::from_slice(&problem).unwrap();
    assert_eq!(problem["code"], "invalid_operation");
}
