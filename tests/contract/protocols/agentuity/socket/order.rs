use std::collections::BTreeSet;

use crate::http::over_both_stores;
use crate::support::agentuity_socket::{Socket, about, push};
use crate::support::client::new_id;
use crate::support::server::Server;

async fn requests_for_a_thread_are_executed_in_order(server: &Server) {
    let mut socket = Socket::open(server).await;
    let threads = [new_id(), new_id(), new_id()];
    let numbers: Vec<_> = (0..200).collect();

    for number in &numbers {
        for thread in &threads {
            let id = format!("{thread} {number}");
            socket.request(&id, "merge", &push(thread, *number)).await;
        }
    }
    for thread in &threads {
        socket.request(thread, "restore", &about(thread, &[])).await;
    }

    let mut answered = BTreeSet::new();
    for _ in 0..(numbers.len() + 1) * threads.len() {
        let answer = socket.answer().await;
        assert_eq!(answer["success"], true, "{answer}");
        let id = answer["id"].as_str().unwrap().to_owned();
        if threads.contains(&id) {
            let list = serde_json::to_string(&numbers).unwrap();
            assert_eq!(answer["data"], format!(r#"{{"state":{{"list":{list}}}}}"#));
        }
        assert!(answered.insert(id), "{answer}");
    }
}

over_both_stores!(requests_for_a_thread_are_executed_in_order);
