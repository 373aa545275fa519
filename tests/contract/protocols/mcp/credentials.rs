use serde_json::json;

use super::{Mcp, bearer, unique};
use crate::http::over_both_stores;
use crate::support::client::new_id;
use crate::support::server::Server;

const STATE: &str = "6c8b7f2e-3f4a-4a65-9c1e-0f9f3c7c2d11";

async fn requests_without_credentials_are_rejected(server: &Server) {
    let client = server.client();
    let anonymous = || Mcp::anonymous(&client);
    let wrong = ("authorization", "Bearer wrong".to_owned());

    for mcp in [
        anonymous(),
        anonymous().with(("x-session-id", "s".into())),
        anonymous().with(("x-state-id", STATE.into())),
        anonymous().with(("x-state-id", "no uuid".into())),
        anonymous().at("/mcp?scope=request"),
        anonymous().at("/mcp?scope=session:s"),
        anonymous().at("/mcp?unknown"),
        anonymous()
            .with(("x-session-id", "s".into()))
            .with(("x-state-id", STATE.into())),
    ] {
        mcp.assert_rejected("api_key_required").await;
    }
    for mcp in [
        anonymous().with(wrong.clone()),
        anonymous().with(wrong).with(("x-session-id", "s".into())),
    ] {
        mcp.assert_rejected("invalid_api_key").await;
    }
}

async fn only_a_wrong_key_gets_invalid_token(server: &Server) {
    let client = server.client();
    let challenge = async |mcp: Mcp| {
        let answer = mcp.ping().await;
        assert_eq!(answer.status, 401);
        answer.header("www-authenticate").unwrap().to_owned()
    };
    let anonymous = || Mcp::anonymous(&client);

    let wrong = anonymous().with(("authorization", "Bearer wrong".into()));
    assert_eq!(challenge(wrong).await, r#"Bearer error="invalid_token""#);
    for mcp in [
        anonymous(),
        anonymous().at("/mcp?scope=session:s&sig=forged"),
        anonymous().with(("x-thread-id", new_id())),
        anonymous().with(("authorization", "Basic d3Jvbmc6".into())),
    ] {
        assert_eq!(challenge(mcp).await, "Bearer");
    }
}

async fn a_cookie_is_not_a_credential(server: &Server) {
    let client = server.client();
    let answer = client.get("/v1/threads/current").ok().await;
    let cookie = answer.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();

    let mcp = Mcp::anonymous(&client).with(("cookie", cookie));

    mcp.assert_rejected("api_key_required").await;
}

async fn a_signed_id_grants_access_to_its_own_thread(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let mcp = Mcp::thread(&client, &thread);

    mcp.call("kv_write", json!({"key": "k", "value": "v"}))
        .await;

    let by_key = Mcp::back_end(&client).at(format!("/mcp?scope=thread:{}", thread.id));
    assert_eq!(by_key.keys().await, json!(["k"]));
    let other = Mcp::thread(&client, &client.thread());
    assert_eq!(other.keys().await, json!([]));
    assert_eq!(thread.object().await["exists"], true);
}

async fn an_id_with_a_wrong_signature_is_rejected(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let (id, signature) = thread.signed.split_once(';').unwrap();

    for header in [
        String::new(),
        id.to_owned(),
        format!("{id};"),
        format!("{};{signature}", new_id()),
        format!("{id};{}", signature.to_lowercase()),
    ] {
        let header = ("x-thread-id", header);
        let mcp = Mcp::anonymous(&client).with(header.clone());
        mcp.assert_rejected("invalid_thread_signature").await;
        // a wrong signature is rejected even if another credential is valid
        let mcp = mcp.with(bearer());
        mcp.assert_rejected("invalid_thread_signature").await;
    }
}

async fn more_than_one_scope_is_rejected(server: &Server) {
    let client = server.client();
    let thread = client.thread();
    let signed = ("x-thread-id", thread.signed.clone());
    let session = ("x-session-id", unique());
    let state = ("x-state-id", STATE.to_owned());
    let back_end = || Mcp::back_end(&client);

    for mcp in [
        back_end().with(session.clone()).with(state.clone()),
        back_end().with(session.clone()).with(session.clone()),
        back_end().with(session.clone()).with(signed.clone()),
        back_end().with(session.clone()).at("/mcp?scope=request"),
        Mcp::thread(&client, &thread).with(session.clone()),
        Mcp::thread(&client, &thread).with(state.clone()),
        Mcp::thread(&client, &thread).at("/mcp?scope=session:s"),
    ] {
        let request = mcp.message("ping", &json!({}));
        request.refused(400, "invalid_parameter").await;
    }
}

async fn malformed_scopes_are_reported_to_authorized_callers(server: &Server) {
    let client = server.client();
    let back_end = || Mcp::back_end(&client);

    for (mcp, code) in [
        (
            back_end().with(("x-state-id", "abc".into())),
            "invalid_scope",
        ),
        (
            back_end().with(("x-state-id", String::new())),
            "invalid_scope",
        ),
        (
            back_end().with(("x-session-id", String::new())),
            "invalid_scope",
        ),
        (
            back_end().with(("x-session-id", "a b".into())),
            "invalid_scope",
        ),
        (
            back_end().with(("x-session-id", "x".repeat(129))),
            "invalid_scope",
        ),
        (back_end().at("/mcp?scope=threads:x"), "invalid_scope"),
        (back_end().at("/mcp?scope=thread:current"), "invalid_scope"),
        (back_end().at("/mcp?scope="), "invalid_scope"),
        (back_end().at("/mcp?unknown=1"), "invalid_parameter"),
        (
            back_end().at("/mcp?scope=request&scope=request"),
            "invalid_parameter",
        ),
        (back_end().at("/mcp?expires=1"), "invalid_parameter"),
    ] {
        let request = mcp.message("ping", &json!({}));
        request.refused(400, code).await;
    }
}

over_both_stores!(
    requests_without_credentials_are_rejected,
    only_a_wrong_key_gets_invalid_token,
    a_cookie_is_not_a_credential,
    a_signed_id_grants_access_to_its_own_thread,
    an_id_with_a_wrong_signature_is_rejected,
    more_than_one_scope_is_rejected,
    malformed_scopes_are_reported_to_authorized_callers,
);
