use threadkeep::Thread;
use threadkeep_domain::Conditions;
use threadkeep_store::Reader;
use threadkeep_web::ApiError;

use super::{Bench, id_of};
use crate::conformance::over_every_store;
use crate::conformance::room::Room;

impl Bench {
    fn with_forks(room: Room) -> Self {
        let images = room.images();
        let bench = Self::with_scopes(room);
        Self {
            threads: bench.threads.clone().with_forks(images),
            ..bench
        }
    }
}

async fn a_fork_has_the_writes_of_its_request(room: Room) {
    let bench = Bench::with_forks(room);
    let handler = async |thread: Thread| {
        thread.state().push("list", 1)?;
        thread.history().append("1", "a").await?;
        let copy = thread
            .fork()
            .metadata(serde_json::json!({"branch": 2}))
            .await?;
        thread.state().push("list", 2)?;
        assert!(thread.fork().metadata(7).await.is_err());
        Ok::<_, ApiError>(copy.signed_id)
    };

    let response = bench.call(handler).await;

    assert_eq!(response.status(), 200);
    let id = id_of(&response).unwrap();
    let signed = actix_web::test::read_body(response).await;
    let copy = std::str::from_utf8(&signed)
        .unwrap()
        .split_once(';')
        .unwrap()
        .0;
    let copy = copy.parse().unwrap();
    assert_eq!(bench.state(&id).await, r#"{"list":[1,2]}"#);
    assert_eq!(bench.state(&copy).await, r#"{"list":[1]}"#);
    let thread = bench.room.backend.get_thread(&copy, Reader::ALL).await;
    let metadata = thread.unwrap().unwrap().metadata;
    assert!(
        metadata
            .as_str()
            .starts_with(r#"{"branch":2,"forked_from":"#)
    );
    let read = async |thread: Thread| {
        let page = thread
            .history()
            .read(threadkeep_store::HistoryFrom::After(0), 10)
            .await?;
        Ok::<_, ApiError>(page.items.len().to_string())
    };
    let items = actix_web::test::read_body(bench.call_as(&copy, read).await).await;
    assert_eq!(items, "1");
}

async fn a_fork_begins_at_a_checkpoint(room: Room) {
    let bench = Bench::with_forks(room);
    let write = async |thread: Thread| {
        thread.state().set("k", 1)?;
        Ok::<_, ApiError>(String::new())
    };
    let id = id_of(&bench.call(write).await).unwrap();
    let backend = &bench.room.backend;
    let conditions = Conditions::default();
    let saved = backend.save_checkpoint(&id, None, &conditions).await;
    assert_eq!(saved.unwrap().head.number, 1);
    let fork = async |thread: Thread| {
        thread.state().set("k", 2)?;
        assert!(thread.fork().at_checkpoint(2).await.is_err());
        let copy = thread.fork().at_checkpoint(1).await?;
        Ok::<_, ApiError>(copy.id.to_string())
    };

    let response = bench.call_as(&id, fork).await;

    let copy = actix_web::test::read_body(response).await;
    let copy = std::str::from_utf8(&copy).unwrap().parse().unwrap();
    assert_eq!(bench.state(&copy).await, r#"{"k":1}"#);
    assert_eq!(bench.state(&id).await, r#"{"k":2}"#);
}

over_every_store! { a_fork_has_the_writes_of_its_request, a_fork_begins_at_a_checkpoint }
