use super::Server;
use crate::support::redis::RedisServer;
use crate::support::server::Backend;

#[tokio::test]
async fn every_request_succeeds_after_a_flush_of_the_scripts() {
    let redis = RedisServer::start();
    let server = Server::builder(Backend::Memory).redis(&redis.url()).start();
    let thread = server.client().thread();
    let mut connection = redis.connection();
    let mut flush = || {
        redis::cmd("SCRIPT")
            .arg("FLUSH")
            .exec(&mut connection)
            .unwrap();
    };

    for round in 1..=5 {
        for request in [
            thread.put("state/k", "1"),
            thread.post("state/list/push", "2"),
            thread.post("state/n/increment", "{}"),
            thread.merge(r#"[{"op":"set","key":"a","value":1},{"op":"delete","key":"a"}]"#),
            thread.get("state"),
            thread.get("state/list?tail=1"),
            thread.get("state?key=k"),
            thread.get("keys"),
            thread.get(""),
        ] {
            flush();
            request.ok().await;
        }
        let object = thread.object().await;
        assert_eq!(object["version"], 4 * round);
    }

    assert_eq!(thread.state().await, r#"{"k":1,"list":[2,2,2,2,2],"n":5}"#);
    flush();
    thread.delete("").ok().await;
    assert_eq!(thread.state().await, "{}");
}
