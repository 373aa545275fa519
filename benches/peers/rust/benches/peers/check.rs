use std::io;

use serde_json::Value;

use super::connection::Connection;
use super::measure::Work;
use super::operation::Operation;
use super::peer::Peer;
use super::request::message;

pub(super) async fn one(peer: &Peer, operation: Operation) -> io::Result<()> {
    let mut connection = Connection::open(peer.server(operation).address()).await?;
    let (mut content, n) = (operation.start(0), 7_777);
    let name = format!("check-{}", operation.word());
    let state = peer.api.create(&mut connection, &name, &content).await?;
    let request = peer.api.request(operation, &state, n);
    connection.exchange(&request).await?;
    operation.apply(&mut content, n);

    let answer = connection
        .exchange(&peer.api.read(operation, &state))
        .await?;
    let (found, expected) = (peer.api.state(answer)?, content.json());
    if found == serde_json::from_str::<Value>(&expected)? {
        return Ok(());
    }
    Err(wrong(peer, operation, &found))
}

/// Checks after the measurement that every tenth state has its initial content with all changes that the measured
/// requests made, and that conditional reads return 304, as they did before the measurement.
pub(super) async fn all(peer: &Peer, operation: Operation, work: &Work) -> io::Result<()> {
    let mut connection = Connection::open(peer.server(operation).address()).await?;
    for (n, state) in work.states.iter().enumerate().step_by(10) {
        if operation == Operation::ReadUnchanged {
            connection.exchange(&work.requests[n]).await?;
            if !connection.is_not_modified() {
                return Err(wrong(peer, operation, &Value::Null));
            }
        }
        let answer = connection
            .exchange(&peer.api.read(operation, state))
            .await?;
        let found = peer.api.state(answer)?;
        let mut content = operation.start(n);
        for _ in 0..times(operation, &found, n)? {
            operation.apply(&mut content, n);
        }
        if found != serde_json::from_str::<Value>(&content.json())? {
            return Err(wrong(peer, operation, &found));
        }
    }
    Ok(())
}

fn times(operation: Operation, found: &Value, n: usize) -> io::Result<usize> {
    let Operation::Push(_) = operation else {
        return Ok(1);
    };
    let pushed: Value = serde_json::from_str(&message(n))?;
    let messages = found["messages"].as_array().into_iter().flatten();
    Ok(messages
        .rev()
        .take_while(|&found| *found == pushed)
        .count()
        .max(1))
}

fn wrong(peer: &Peer, operation: Operation, found: &Value) -> io::Error {
    let found: String = found.to_string().chars().take(2_000).collect();
    io::Error::other(format!("{}: {operation:?}: there is {found}", peer.name))
}
