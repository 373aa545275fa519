use super::catalog::Catalog;
use super::dice::Dice;
use super::mutations::{credentials, framing, head, json, path, query};
use super::order;
use super::request::Request;
use super::socket::Dialogue;
use super::world::{BLOCK, Objects, World};

#[derive(Debug, Clone)]
pub(super) enum Case {
    /// HTTP requests, each sent after the answer to the previous request. Each request must be answered.
    Sequential(Vec<Request>),
    /// HTTP requests, all sent at once on one connection. The server must answer each of them until an answer closes
    /// the connection.
    Pipelined(Vec<Request>),
    /// Concurrent requests on several connections. Each connection sends its requests one at a time.
    Concurrent(Vec<Vec<Request>>),
    Bytes {
        bytes: Vec<u8>,
        /// True if the client closes its side of the connection after sending `bytes`, which may be incomplete.
        is_end: bool,
    },
    Socket(Dialogue),
}

impl Case {
    pub(super) fn new(seed: u64, index: u64, catalog: &Catalog, objects: &Objects) -> Self {
        let block = index / BLOCK;
        let (world, dice) = (World { objects, block }, &mut Dice::new(seed, index));
        if index.is_multiple_of(BLOCK) {
            return Self::Sequential(world.begin());
        }
        let request = catalog.any(world, dice);
        match dice.below(100) {
            0..4 => Self::Sequential(vec![request]),
            4..42 => Self::Sequential(vec![json::mutate(
                with_body(request, catalog, world, dice),
                world,
                dice,
            )]),
            42..54 => Self::complete(query::mutate(request, dice).bytes()),
            54..64 => Self::complete(path::mutate(request, dice).bytes()),
            64..77 => Self::complete(head::bytes(&request, dice)),
            77..86 => {
                let bytes = framing::bytes(&request, dice);
                Self::Bytes {
                    bytes,
                    is_end: true,
                }
            }
            86..91 => Self::complete(credentials::mutate(request, world, dice).bytes()),
            91..97 => order::case(catalog, world, dice),
            _ => Self::Socket(Dialogue::new(world, dice)),
        }
    }

    pub(super) fn valid(seed: u64, index: u64, catalog: &Catalog, objects: &Objects) -> Self {
        let block = index / BLOCK;
        let (world, dice) = (World { objects, block }, &mut Dice::new(seed, index));
        match index.is_multiple_of(BLOCK) {
            true => Self::Sequential(world.begin()),
            false => Self::Sequential(vec![catalog.any(world, dice)]),
        }
    }

    fn complete(bytes: Vec<u8>) -> Self {
        let is_end = false;
        Self::Bytes { bytes, is_end }
    }

    pub(super) fn count(&self) -> u64 {
        let count = match self {
            Self::Sequential(requests) | Self::Pipelined(requests) => requests.len(),
            Self::Concurrent(connections) => connections.iter().map(Vec::len).sum(),
            Self::Bytes { .. } => 1,
            Self::Socket(dialogue) => dialogue.count(),
        };
        count as u64
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Sequential(requests) | Self::Pipelined(requests) => {
                requests.iter().flat_map(Request::bytes).collect()
            }
            Self::Concurrent(connections) => connections
                .iter()
                .flatten()
                .flat_map(Request::bytes)
                .collect(),
            Self::Bytes { bytes, .. } => bytes.clone(),
            Self::Socket(dialogue) => dialogue.bytes(),
        }
    }
}

fn with_body(request: Request, catalog: &Catalog, world: World<'_>, dice: &mut Dice) -> Request {
    let more = (0..8).map(|_| catalog.any(world, dice));
    let mut candidates = std::iter::once(request.clone()).chain(more);
    candidates
        .find(|request| request.body.is_some())
        .unwrap_or(request)
}
