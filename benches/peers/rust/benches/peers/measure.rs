use std::error::Error;
use std::io;
use std::time::Duration;

use super::check;
use super::conditional::repeated;
use super::connection::Connection;
use super::floor;
use super::load::Load;
use super::meter::Meter;
use super::operation::{Cache, Operation, Size};
use super::peer::{Peer, Programs, start_all};
use super::plain_get::PlainGet;
use super::process::Process;
use super::redis_server::Redis;
use super::report::Row;
use super::results::{Cell, Section};

const WARM_UP: Duration = Duration::from_secs(1);

pub(super) struct Work {
    pub(super) states: Vec<String>,
    pub(super) requests: Vec<Vec<u8>>,
}

/// Measures all peers, and checks each one before and after its measurement. Within a round, the peers take turns at
/// each operation, so that other load on the machine affects all of them equally.
pub(super) async fn all(
    programs: &Programs<'_>,
    time: Duration,
    rounds: usize,
) -> Result<Vec<Section>, Box<dyn Error>> {
    let redis = Redis::start()?;
    let floor = floor::start(1)?;
    let peers = start_all(programs, &redis).await?;
    let mut work = Vec::new();
    for peer in &peers {
        eprintln!("preparing {}", peer.name);
        work.push(prepare_all(peer).await?);
    }

    let mut sections: Vec<_> = (0..Operation::ALL.len())
        .map(|index| {
            let peers = peers.iter().zip(&work);
            let cells =
                peers.map(|(peer, work)| (peer.name, work[index].as_ref().map(|_| Cell::new())));
            section(Operation::ALL[index], cells.collect())
        })
        .collect();
    for round in 1..=rounds {
        for (index, section) in sections.iter_mut().enumerate() {
            let operation = section.operation;
            eprintln!("round {round} of {rounds}: {}", operation.name());
            let request = [operation.floor().request()];
            section
                .floor
                .add(row(&request, &floor, &redis, time).await?);
            if let Some(cell) = &mut section.plain_get {
                cell.add(plain_get(&redis, time).await?);
            }
            for ((peer, work), (_, cell)) in peers.iter().zip(&work).zip(&mut section.peers) {
                if let (Some(work), Some(cell)) = (&work[index], cell) {
                    let server = peer.server(operation);
                    cell.add(row(&work.requests, server, &redis, time).await?);
                }
            }
        }
    }

    for (peer, work) in peers.iter().zip(&work) {
        for (operation, work) in Operation::ALL.into_iter().zip(work) {
            if let Some(work) = work {
                check::all(peer, operation, work).await?;
            }
        }
    }
    Ok(sections)
}

fn section(operation: Operation, peers: Vec<(&'static str, Option<Cell>)>) -> Section {
    let reads_all = operation == Operation::Read(Size::Large, Cache::Cold);
    Section {
        operation,
        floor: Cell::new(),
        plain_get: reads_all.then(Cell::new),
        peers,
    }
}

async fn prepare_all(peer: &Peer) -> io::Result<Vec<Option<Work>>> {
    let mut prepared: Vec<Option<Work>> = Vec::new();
    for operation in Operation::ALL {
        let work = match operation {
            Operation::ReadUnchanged => {
                let mut read = Operation::ALL.iter().zip(&prepared);
                let read = read.find(|(read, _)| **read == operation.read());
                match read.and_then(|(_, work)| work.as_ref()) {
                    Some(work) => prepare_unchanged(peer, work).await?,
                    None => None,
                }
            }
            _ => prepare(peer, operation).await?,
        };
        prepared.push(work);
    }
    Ok(prepared)
}

async fn prepare(peer: &Peer, operation: Operation) -> io::Result<Option<Work>> {
    if !peer.has_row(operation) {
        return Ok(None);
    }
    check::one(peer, operation).await?;
    let mut connection = Connection::open(peer.server(operation).address()).await?;
    let (mut states, mut requests) = (Vec::new(), Vec::new());
    for n in 0..operation.states() {
        let (name, content) = (format!("{}-{n}", operation.word()), operation.start(n));
        let state = peer.api.create(&mut connection, &name, &content).await?;
        requests.push(peer.api.request(operation, &state, n));
        states.push(state);
    }
    Ok(Some(Work { states, requests }))
}

/// Builds conditional requests for states that the client has read. Returns `None` if the peer does
/// not answer such a request with 304.
async fn prepare_unchanged(peer: &Peer, read: &Work) -> io::Result<Option<Work>> {
    let operation = Operation::ReadUnchanged;
    let mut connection = Connection::open(peer.server(operation).address()).await?;
    let mut requests = Vec::new();
    for request in &read.requests {
        match repeated(&mut connection, request).await? {
            Some(request) => requests.push(request),
            None => return Ok(None),
        }
    }
    let states = read.states.clone();
    Ok(Some(Work { states, requests }))
}

async fn row(
    requests: &[Vec<u8>],
    server: &Process,
    redis: &Redis,
    time: Duration,
) -> io::Result<(Row, f64)> {
    let mut load = Load::open(server.address(), requests).await?;
    load.run(WARM_UP).await?;
    let meter = Meter::start(Some(server), redis)?;
    let outcome = load.run(time).await?;
    meter.stop(outcome)
}

async fn plain_get(redis: &Redis, time: Duration) -> io::Result<(Row, f64)> {
    let mut load = PlainGet::open(redis.address()).await?;
    load.run(WARM_UP).await?;
    let meter = Meter::start(None, redis)?;
    let outcome = load.run(time).await?;
    meter.stop(outcome)
}
