use reqwest::Method;

use super::ask;
use crate::http::over_both_stores;
use crate::support::redis::RedisServer;
use crate::support::server::Server;

async fn session_reports_are_acknowledged(server: &Server) {
    let client = server.client();
    let large = format!("{{\"userData\":\"{}\"}}", "x".repeat(5_000_000));
    for method in [Method::POST, Method::PUT] {
        for body in ["{\"id\":\"sess_1\"}", "", "nonsense", &large] {
            let request = ask(&client, method.clone(), "/session").json(body);
            let answer = request.ok().await;
            assert_eq!(answer.text(), r#"{"success":true}"#);
            assert_eq!(answer.header("content-type"), Some("application/json"));
            assert_eq!(answer.header("set-cookie"), None);
        }
    }
}

#[tokio::test]
async fn session_reports_need_no_store() {
    let redis = RedisServer::start();
    let server = Server::builder(crate::support::server::Backend::Memory)
        .redis(&redis.url())
        .start();
    redis.kill();

    for method in [Method::POST, Method::PUT] {
        let request = ask(&server.client(), method, "/session").json("{}");
        assert_eq!(request.ok().await.text(), r#"{"success":true}"#);
    }
}

over_both_stores!(session_reports_are_acknowledged);
