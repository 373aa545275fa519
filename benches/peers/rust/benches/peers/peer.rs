use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::api::Api;
use super::connection::Connection;
use super::operation::{Cache, Operation};
use super::process::{Process, free_address};
use super::product::{Product, READ_CACHE};
use super::redis_server::Redis;
use super::webdis::Scripts;

pub(super) struct Peer {
    pub(super) name: &'static str,
    pub(super) api: Api,
    pub(super) process: Process,
    /// The product with its cache turned off, for cold reads.
    uncached: Option<Process>,
    rows: Rows,
}

/// The rows in which a peer is measured.
#[derive(Debug, Clone, Copy)]
enum Rows {
    All,
    /// Only the rows for reads, because another peer in the table handles writes in the same way.
    Reads,
}

impl Peer {
    pub(super) fn server(&self, operation: Operation) -> &Process {
        match (operation, &self.uncached) {
            (Operation::Read(_, Cache::Cold), Some(uncached)) => uncached,
            _ => &self.process,
        }
    }

    pub(super) fn has_row(&self, operation: Operation) -> bool {
        match self.rows {
            Rows::All => true,
            Rows::Reads => operation.is_read(),
        }
    }
}

pub(super) struct Programs<'a> {
    pub(super) product: &'a str,
    /// The directory in which `run.sh` has installed the other peers.
    pub(super) installed: &'a Path,
}

/// Starts all peers with the same Redis. The product comes first.
pub(super) async fn start_all(programs: &Programs<'_>, redis: &Redis) -> io::Result<Vec<Peer>> {
    let document = Command::new(env!("CARGO_BIN_EXE_peer-document"));
    let sliding = actix_session("sliding");
    let not_sliding = Peer {
        rows: Rows::Reads,
        ..start_actix("actix-session, not sliding", actix_session("fixed"), redis)?
    };
    Ok(vec![
        start_product(programs, redis)?,
        start_actix("actix + deadpool-redis", document, redis)?,
        start_actix("actix-session", sliding, redis)?,
        not_sliding,
        start_webdis(programs.installed, redis).await?,
        start_express(programs.installed, redis)?,
        start_fastapi(programs.installed, redis)?,
    ])
}

fn start_product(programs: &Programs<'_>, redis: &Redis) -> io::Result<Peer> {
    let product = |prefix| Product {
        program: programs.product,
        prefix,
        redis: Some(redis),
        workers: 1,
    };
    let uncached = product("cold").start_with("cold", &[(READ_CACHE, "0")])?;
    Ok(Peer {
        name: "threadkeep",
        api: Api::Threadkeep,
        process: product("tk").start()?,
        uncached: Some(uncached),
        rows: Rows::All,
    })
}

/// Sessions end one day after the last request if `expiry` is `sliding`, and one day after the last write otherwise.
fn actix_session(expiry: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_peer-actix-session"));
    command.arg(expiry);
    command
}

fn start_actix(name: &'static str, mut command: Command, redis: &Redis) -> io::Result<Peer> {
    let address = free_address()?;
    command.args([address.to_string(), url(redis)]);
    start(name, command, address, Api::Documents)
}

fn start_express(installed: &Path, redis: &Redis) -> io::Result<Peer> {
    let (directory, address) = (installed.join("express"), free_address()?);
    let mut command = Command::new(directory.join("node_modules/.bin/node"));
    command
        .env("NODE_ENV", "production")
        .arg(directory.join("server.js"))
        .args([address.port().to_string(), url(redis)]);
    start("express-session", command, address, Api::Documents)
}

fn start_fastapi(installed: &Path, redis: &Redis) -> io::Result<Peer> {
    let (directory, address) = (installed.join("fastapi"), free_address()?);
    let mut command = Command::new(directory.join("bin/uvicorn"));
    command
        .env("REDIS_URL", url(redis))
        .args(["server:app", "--no-access-log", "--app-dir"])
        .arg(directory)
        .args(["--port", &address.port().to_string()]);
    start("FastAPI", command, address, Api::Documents)
}

/// Starts Webdis with Debian's settings, except that it runs a single thread and writes its log to `installed`.
async fn start_webdis(installed: &Path, redis: &Redis) -> io::Result<Peer> {
    let (directory, address) = (installed.join("webdis"), free_address()?);
    let settings = json!({
        "redis_host": "127.0.0.1",
        "redis_port": redis.address().port(),
        "redis_auth": null,
        "http_host": "127.0.0.1",
        "http_port": address.port(),
        "threads": 1,
        "daemonize": false,
        "database": 0,
        "acl": [
            {"disabled": ["DEBUG"]},
            {"http_basic_auth": "user:password", "enabled": ["DEBUG"]},
        ],
        "verbosity": 3,
        "logfile": directory.join("webdis.log"),
    });
    let file = directory.join("webdis.json");
    fs::write(&file, settings.to_string())?;
    let mut command = Command::new(directory.join("webdis"));
    command.arg(file);
    let process = Process::start(command, address, "Webdis")?;
    let mut connection = Connection::open(process.address()).await?;
    let api = Api::Webdis(Scripts::load(&mut connection).await?);
    Ok(peer("Webdis", process, api))
}

fn start(name: &'static str, command: Command, address: SocketAddr, api: Api) -> io::Result<Peer> {
    let process = Process::start(command, address, name)?;
    Ok(peer(name, process, api))
}

fn peer(name: &'static str, process: Process, api: Api) -> Peer {
    Peer {
        name,
        api,
        process,
        uncached: None,
        rows: Rows::All,
    }
}

fn url(redis: &Redis) -> String {
    format!("redis://{}", redis.address())
}
