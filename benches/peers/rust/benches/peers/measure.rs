//! Measures every operation on every peer, in rounds.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::check;
use super::connection::Connection;
use super::floor;
use super::load::Load;
use super::machine;
use super::operation::Operation;
use super::peer::{Peer, Programs, start_all};
use super::process::Process;
use super::redis_server::Redis;
use super::report::Row;
use super::request::request;
use super::results::{Cell, Section};

const WARM_UP: Duration = Duration::from_secs(1);

/// The requests to one peer for one operation.
struct Work {
    states: Vec<String>,
    requests: Vec<Vec<u8>>,
}

/// Checks every peer, measures, and checks again. In a round, the peers take turns with each operation: other load on
/// the machine changes little between two of them.
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
        work.push(prepare(peer).await?);
    }

    let mut sections: Vec<_> = Operation::ALL
        .map(|operation| Section {
            operation,
            floor: Cell::new(),
            peers: peers.iter().map(|peer| (peer.name, Cell::new())).collect(),
        })
        .into();
    let empty = [request("GET /", None, "")];
    for round in 1..=rounds {
        for (place, section) in sections.iter_mut().enumerate() {
            eprintln!("round {round} of {rounds}: {}", section.operation.name());
            section.floor.add(row(&empty, &floor, &redis, time).await?);
            for ((peer, work), (_, cell)) in peers.iter().zip(&work).zip(&mut section.peers) {
                cell.add(row(&work[place].requests, &peer.process, &redis, time).await?);
            }
        }
    }

    for (peer, work) in peers.iter().zip(&work) {
        for (operation, work) in Operation::ALL.into_iter().zip(work) {
            check::all(peer, operation, &work.states).await?;
        }
    }
    Ok(sections)
}

async fn prepare(peer: &Peer) -> io::Result<Vec<Work>> {
    let mut connection = Connection::open(peer.process.address()).await?;
    let mut all = Vec::new();
    for operation in Operation::ALL {
        check::one(peer, operation).await?;
        let mut states = Vec::new();
        for n in 0..operation.states() {
            let (name, content) = (format!("{operation:?}-{n}"), operation.start(n));
            states.push(peer.api.create(&mut connection, &name, &content).await?);
        }
        let numbered = states.iter().enumerate();
        let requests = numbered.map(|(n, state)| peer.api.request(operation, state, n));
        all.push(Work {
            requests: requests.collect(),
            states,
        });
    }
    Ok(all)
}

async fn row(
    requests: &[Vec<u8>],
    server: &Process,
    redis: &Redis,
    time: Duration,
) -> io::Result<(Row, f64)> {
    let mut load = Load::open(server.address(), requests).await?;
    load.run(WARM_UP).await?;
    let (server_before, redis_before) = (server.cpu()?, redis.cpu()?);
    let (machine_before, load_before) = (machine::times()?, machine::own_cpu()?);
    let outcome = load.run(time).await?;
    let server_cpu = server.cpu()? - server_before;
    let redis_cpu = redis.cpu()? - redis_before;
    let ours = server_cpu + redis_cpu + machine::own_cpu()?.saturating_sub(load_before);
    let others = machine::times()?.others(&machine_before, ours);
    Ok((Row::new("", outcome, server_cpu, redis_cpu), others))
}
