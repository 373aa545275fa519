use serde_json::json;

use super::{Mcp, bearer};
use crate::http::with_own_servers;
use crate::support::server::{Backend, Server};

fn server(backend: Backend) -> Server {
    Server::builder(backend)
        .set("THREADKEEP_IDENTITY", "header")
        .set("THREADKEEP_IDENTITY_HEADER", "x-user")
        .set(
            "THREADKEEP_IDENTITY_SECRET",
            "what ids are derived with, 32 bytes and more",
        )
        .set("THREADKEEP_TRUSTED_PROXIES", "127.0.0.1")
        .start()
}

async fn each_user_has_the_scope_of_their_own_thread(backend: Backend) {
    let server = server(backend);
    let client = server.client();
    let user = |name: &str| Mcp::anonymous(&client).with(("x-user", name.into()));

    user("ada")
        .call("kv_write", json!({"key": "k", "value": "v"}))
        .await;

    assert_eq!(user("ada").keys().await, json!(["k"]));
    assert_eq!(user("bob").keys().await, json!([]));
    let unidentified = Mcp::anonymous(&client);
    unidentified.assert_rejected("api_key_required").await;
    let elsewhere = user("ada").at("/mcp?scope=session:s");
    elsewhere.assert_rejected("api_key_required").await;
    let session = user("ada").with(("x-session-id", "s".into()));
    session.assert_rejected("api_key_required").await;
}

async fn a_signed_id_is_rejected_where_callers_log_in(backend: Backend) {
    let server = server(backend);
    let client = server.client();
    let thread = client.thread();
    let mcp = Mcp::thread(&client, &thread);

    mcp.assert_rejected("invalid_thread_signature").await;
    let other = mcp.clone().with(("x-user", "ada".into()));
    other.assert_rejected("invalid_thread_signature").await;

    assert_eq!(mcp.with(bearer()).keys().await, json!([]));
}

async fn a_browser_login_is_ignored_for_foreign_origins(backend: Backend) {
    let server = server(backend);
    let client = server.client();
    let mcp = Mcp::anonymous(&client)
        .with(("x-user", "ada".into()))
        .with(("origin", "https://evil.example".into()));

    for method in ["initialize", "tools/list", "tools/call"] {
        let request = mcp.message(method, &json!({}));
        request.refused(401, "api_key_required").await;
    }
}

with_own_servers!(
    each_user_has_the_scope_of_their_own_thread,
    a_signed_id_is_rejected_where_callers_log_in,
    a_browser_login_is_ignored_for_foreign_origins,
);
