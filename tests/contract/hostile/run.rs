use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::runtime;
use tokio::task::spawn_blocking;

use super::case::Case;
use super::catalog::Catalog;
use super::request::Request;
use super::verdict::{fault, shortened};
use super::wire::{Answer, Fault, Link, Sent};
use super::world::{BLOCK, Objects};
use crate::support::client::Client;

const THREADS: usize = 2;
const LANES: usize = 4;
const PROGRESS_REQUESTS: u64 = 50_000;
/// Number of cases after which the objects on the server are created again, because requests may have deleted some of
/// the earlier objects.
const CASES_PER_WORLD: u64 = 8 * BLOCK;
const FAULTS_MAX: usize = 5;

#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) first: u64,
    pub(super) requests: u64,
    pub(super) make: fn(u64, u64, &Catalog, &Objects) -> Case,
}

#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) requests: u64,
    pub(super) statuses: BTreeMap<u16, u64>,
    pub(super) longest: Duration,
    pub(super) faults: Vec<String>,
}

struct Shared<'a> {
    plan: Plan,
    address: SocketAddr,
    catalog: &'a Catalog,
    objects: RwLock<Objects>,
    next: AtomicU64,
    requests: AtomicU64,
    is_over: AtomicBool,
    outcome: Mutex<Outcome>,
}

pub(super) async fn run(plan: Plan, address: SocketAddr, catalog: &Arc<Catalog>) -> Outcome {
    let objects = Objects::create(&Client::new(address)).await.unwrap();
    let catalog = Arc::clone(catalog);
    let running = spawn_blocking(move || run_with(plan, address, &catalog, objects));
    running.await.unwrap()
}

fn run_with(plan: Plan, address: SocketAddr, catalog: &Catalog, objects: Objects) -> Outcome {
    let shared = Shared {
        plan,
        address,
        catalog,
        objects: RwLock::new(objects),
        next: AtomicU64::new(plan.first),
        requests: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        outcome: Mutex::default(),
    };
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| runtime().block_on(join_all((0..LANES).map(|_| lane(&shared)))));
        }
    });
    let mut outcome = shared.outcome.into_inner().unwrap();
    outcome.requests = shared.requests.into_inner();
    outcome
}

fn runtime() -> runtime::Runtime {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

async fn lane(shared: &Shared<'_>) {
    let Plan {
        seed,
        first,
        requests,
        make,
    } = shared.plan;
    let mut link = None;
    while !shared.is_over.load(Ordering::Relaxed) {
        let index = shared.next.fetch_add(1, Ordering::Relaxed);
        if index > first && index.is_multiple_of(CASES_PER_WORLD) {
            // use a new client, because the connections of a client belong to one runtime
            if let Some(objects) = Objects::create(&Client::new(shared.address)).await {
                *shared.objects.write().unwrap() = objects;
            }
        }
        let objects = shared
            .objects
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let case = make(seed, index, shared.catalog, &objects);
        let before = shared.requests.fetch_add(case.count(), Ordering::Relaxed);
        if before >= requests {
            shared.requests.fetch_sub(case.count(), Ordering::Relaxed);
            break;
        }
        let after = before + case.count();
        if before / PROGRESS_REQUESTS < after / PROGRESS_REQUESTS {
            println!("{}: {after} requests, case {index}", shared.address);
        }
        let start = Instant::now();
        let answers = send(&case, shared.address, &mut link).await;
        shared.record(index, &case, start.elapsed(), answers);
    }
}

impl Shared<'_> {
    fn record(&self, index: u64, case: &Case, took: Duration, answers: Result<Vec<Answer>, Fault>) {
        let mut outcome = self.outcome.lock().unwrap();
        outcome.longest = outcome.longest.max(took);
        let fault = match &answers {
            Err(fault) => Some(fault.to_string()),
            Ok(answers) => {
                for answer in answers {
                    *outcome.statuses.entry(answer.status).or_default() += 1;
                }
                answers.iter().find_map(fault)
            }
        };
        if let Some(fault) = fault {
            let sent = shortened(&case.bytes());
            let kind = format!("{case:?}");
            let kind = kind.split(['(', ' ']).next().unwrap_or_default();
            let fault = format!("case {index} ({kind}), after {took:?}: {fault}\nsent: {sent}");
            outcome.faults.push(fault);
            if outcome.faults.len() >= FAULTS_MAX {
                self.is_over.store(true, Ordering::Relaxed);
            }
        }
    }
}

async fn send(
    case: &Case,
    address: SocketAddr,
    link: &mut Option<Link>,
) -> Result<Vec<Answer>, Fault> {
    match case {
        Case::Sequential(requests) => in_turn(requests, address, link).await,
        Case::Pipelined(requests) => {
            let bytes: Vec<_> = requests.iter().flat_map(Request::bytes).collect();
            let are_heads: Vec<_> = requests
                .iter()
                .map(|request| request.method == "HEAD")
                .collect();
            let mut link = Link::open(address).await?;
            link.answers(
                Sent {
                    bytes: &bytes,
                    is_end: false,
                },
                &are_heads,
            )
            .await
        }
        Case::Concurrent(connections) => {
            let sending = connections
                .iter()
                .map(async |requests| in_turn(requests, address, &mut None).await);
            let mut answers = Vec::new();
            for answered in join_all(sending).await {
                answers.extend(answered?);
            }
            Ok(answers)
        }
        Case::Bytes { bytes, is_end } => {
            let mut link = Link::open(address).await?;
            let is_head = bytes.trim_ascii_start().starts_with(b"HEAD ");
            let answers = link
                .answers(
                    Sent {
                        bytes,
                        is_end: *is_end,
                    },
                    &[is_head],
                )
                .await?;
            if *is_end && !answers.iter().any(Answer::is_stream) {
                link.rest().await?;
            }
            Ok(answers)
        }
        Case::Socket(dialogue) => dialogue.speak(address).await,
    }
}

async fn in_turn(
    requests: &[Request],
    address: SocketAddr,
    link: &mut Option<Link>,
) -> Result<Vec<Answer>, Fault> {
    let mut answers = Vec::new();
    for request in requests {
        let mut open = match link.take().filter(Link::is_fresh) {
            Some(open) => open,
            None => Link::open(address).await?,
        };
        let bytes = request.bytes();
        let is_head = request.method == "HEAD";
        let answer = open
            .answers(
                Sent {
                    bytes: &bytes,
                    is_end: false,
                },
                &[is_head],
            )
            .await?
            .remove(0);
        if !answer.is_last {
            *link = Some(open);
        }
        answers.push(answer);
    }
    Ok(answers)
}
