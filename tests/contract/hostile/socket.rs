use std::net::SocketAddr;

use serde_json::{Value, json};

use super::dice::Dice;
use super::mutations::json::in_tree;
use super::request::Request;
use super::schema::any_value;
use super::wire::{Answer, Fault, Link, Sent};
use super::world::World;
use crate::support::server::API_SECRET;

/// First byte of an unfragmented text frame (RFC 6455, section 5.2).
const TEXT: u8 = 0x81;
const PING: u8 = 0x89;
const CLOSE: u8 = 0x88;

#[derive(Debug, Clone)]
pub(super) struct Dialogue {
    handshake: Request,
    frames: Vec<Vec<u8>>,
    /// The ids of the requests that must be answered. `None` if a frame could make the server close the connection.
    answered: Option<Vec<String>>,
}

impl Dialogue {
    pub(super) fn new(world: World<'_>, dice: &mut Dice) -> Self {
        let (mut frames, mut ids) = (Vec::new(), Vec::new());
        let mut is_clean = true;
        let key = match dice.one_in(6) {
            true => {
                is_clean = false;
                "unknown"
            }
            false => API_SECRET,
        };
        frames.push(frame(
            TEXT,
            json!({"authorization": key}).to_string().as_bytes(),
            dice,
        ));
        for number in 0..1 + dice.below(6) {
            let id = format!("{:016x}{number:016x}", dice.bits());
            let message = message(&id, world, dice);
            match dice.below(8) {
                0..4 => {
                    frames.push(frame(TEXT, message.to_string().as_bytes(), dice));
                    ids.push(id);
                }
                4..7 => {
                    let mutated = in_tree(message, world, dice);
                    is_clean &= str::from_utf8(&mutated).is_ok();
                    frames.push(frame(TEXT, &mutated, dice));
                }
                _ => {
                    is_clean = false;
                    frames.push(odd(message.to_string().as_bytes(), dice));
                }
            }
            if dice.one_in(5) {
                frames.push(frame(PING, b"there?", dice));
            }
        }
        let handshake = Request::new("GET", "/thread/ws")
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        let answered = is_clean.then_some(ids);
        Self {
            handshake,
            frames,
            answered,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.frames.len()
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        [self.handshake.bytes(), self.frames.concat()].concat()
    }

    pub(super) async fn speak(&self, address: SocketAddr) -> Result<Vec<Answer>, Fault> {
        let mut link = Link::open(address).await?;
        let handshake = self.handshake.bytes();
        let hello = Sent {
            bytes: &handshake,
            is_end: false,
        };
        let answers = link.answers(hello, &[false]).await?;
        let bytes = self.frames.concat();
        let is_end = self.answered.is_none();
        link.send(Sent {
            bytes: &bytes,
            is_end,
        })
        .await;
        let mut missing = self.answered.clone().unwrap_or_default();
        let mut read = Vec::new();
        while !missing.is_empty() {
            let bytes = link.bytes().await?;
            if bytes.is_empty() {
                return Err(Fault::Cut(read));
            }
            read.extend(bytes);
            missing.retain(|id| memchr::memmem::find(&read, id.as_bytes()).is_none());
        }
        if !is_end {
            // status 1000 (normal closure), masked with zeros
            let bye = [CLOSE, 0x82, 0, 0, 0, 0, 0x03, 0xe8];
            link.send(Sent {
                bytes: &bye,
                is_end: true,
            })
            .await;
        }
        link.rest().await?;
        Ok(answers)
    }
}

fn message(id: &str, world: World<'_>, dice: &mut Dice) -> Value {
    let thread = world.thread(dice);
    let action = dice.word(&["restore", "save", "merge", "delete"]);
    let mut data = json!({"thread_id": thread});
    match action {
        "save" => {
            let state = json!({"a": any_value(dice, 2), "list": [1, any_value(dice, 1)], "o": {"p": any_value(dice, 2)}});
            data["user_data"] = json!({"state": state}).to_string().into();
        }
        "merge" => {
            data["operations"] = json!([
                {"op": "set", "key": world.key(dice), "value": any_value(dice, 2)},
                {"op": "push", "key": "list", "value": any_value(dice, 1), "maxRecords": 4},
                {"op": "delete", "key": world.key(dice)},
            ]);
        }
        _ => {}
    }
    json!({"id": id, "action": action, "data": data})
}

fn odd(payload: &[u8], dice: &mut Dice) -> Vec<u8> {
    let opcode = dice.below(256) as u8;
    match dice.below(8) {
        0 => frame(opcode, payload, dice),
        // a frame without a mask
        1 => [&[TEXT, payload.len().min(125) as u8], payload].concat(),
        // a frame shorter than its announced length
        2 => [&[TEXT, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4], payload].concat(),
        3 => [[TEXT, 0xff].as_slice(), &[0xff; 8], &[0; 4], payload].concat(),
        4 => frame(PING, &[b'x'; 200], dice),
        5 => frame(
            CLOSE,
            [b"\x03".as_slice(), b"\x00\x00", b"\x03\xe8\xff"][dice.below(3)],
            dice,
        ),
        // a message begins before the previous, fragmented message has ended
        6 => [
            frame(0x01, payload, dice),
            frame(0x01, payload, dice),
            frame(0x80, b"", dice),
        ]
        .concat(),
        _ => frame(TEXT, &dice.seed(), dice),
    }
}

fn frame(first: u8, payload: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ ..126 => frame.push(0x80 | length as u8),
        length @ ..65_536 => {
            frame.push(0x80 | 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    let mask = &dice.seed()[..4];
    frame.extend(mask);
    let masked = payload.iter().zip(mask.iter().cycle());
    frame.extend(masked.map(|(byte, mask)| byte ^ mask));
    frame
}
