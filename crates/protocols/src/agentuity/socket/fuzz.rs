//! Fuzz targets for the bytes that a client sends on a socket.

use super::envelope::{read_envelope, write_envelope};
use super::frames::{Message, Reader};
use super::limits::START_BYTES;
use threadkeep_domain::Json;
use threadkeep_fuzzing::{Bound, fuzz, json};

const MAX_BYTES: u64 = 1_000;

/// Limits per byte of input. The reader holds a message and a copy of the bytes that arrived with the message. The cost
/// per byte is highest for the smallest message, which is a control frame of six bytes.
const FRAMES: Bound = Bound {
    held: 8,
    allocated: 400,
    nanos: 3_000,
};

#[test]
fn messages_do_not_depend_on_how_the_bytes_are_split() {
    fuzz("frames", |input| {
        let read = |chunk_bytes: usize| {
            FRAMES.hold(input.bytes().len(), || {
                let mut reader = Reader::new(MAX_BYTES);
                let mut lengths = Vec::new();
                for piece in input.bytes().chunks(chunk_bytes) {
                    reader.push(piece);
                    loop {
                        match reader.next() {
                            Ok(Some(message)) => lengths.push(bytes(&message)),
                            Ok(None) => break,
                            Err(_) => return (lengths, false),
                        }
                    }
                }
                (lengths, true)
            })
        };

        let unsplit = read(input.bytes().len().max(1));

        let bytes_max = START_BYTES.max(MAX_BYTES as usize);
        assert!(unsplit.0.iter().all(|bytes| *bytes <= bytes_max));
        assert_eq!(read(1_021), unsplit);
        if input.bytes().len() <= 4_096 {
            assert_eq!(read(1), unsplit);
        }
    });
}

fn bytes(message: &Message) -> usize {
    match message {
        Message::Text(bytes) | Message::Ping(bytes) | Message::Pong(bytes) => bytes.len(),
        Message::Refused { start, .. } => start.len(),
        Message::Close(_) => 0,
    }
}

/// The input is an envelope, followed by a state and metadata to wrap.
#[test]
fn an_envelope_preserves_its_state() {
    fuzz("envelopes", |input| {
        let Some([envelope, state, metadata]) = input.parts() else {
            return;
        };
        drop(Bound::LINEAR.hold(envelope.len(), || read_envelope(envelope, 100)));
        let objects = [state, metadata].map(|text| Json::parse_object(text, 1));
        let [Ok(state), Ok(metadata)] = objects else {
            return;
        };
        let input_bytes = state.as_str().len() + metadata.as_str().len();

        let written = Bound::LINEAR.hold(input_bytes, || {
            let mut out = String::new();
            write_envelope(state.as_str(), metadata.as_str(), &mut out);
            out
        });

        assert!(written.len() <= 2 * input_bytes + 32);
        let Ok(opened) = serde_json::from_str::<String>(&written) else {
            // the state contains a lone surrogate
            return;
        };
        if let (Some(opened), Some(state)) = (json(&opened), json(state.as_str())) {
            let read_back = opened.get("state").cloned();
            assert_eq!(read_back.unwrap_or_else(|| serde_json::json!({})), state);
        }
    });
}
