//! Parses a body that contains one message or a batch of messages. Revision 2025-03-26 allows batches.

use super::fault::{BATCH_MAX, MessageFault, VALUES_MAX};
use super::message::Message;
use super::revision::Revision;
use threadkeep_domain::{Json, elements, has_more_values};

pub(super) enum Messages {
    One(Message),
    /// Messages in order. Each message is answered separately, even if it is invalid.
    Batch(Vec<Result<Message, MessageFault>>),
}

impl Messages {
    pub(super) fn read(body: &[u8], revision: Revision<'_>) -> Result<Self, MessageFault> {
        let text = std::str::from_utf8(body).map_err(|_| MessageFault::NotJson)?;
        let json = Json::parse(text).map_err(|_| MessageFault::NotJson)?;
        let json = json.as_str();
        match json.starts_with('[') {
            false => Message::read(json).map(Self::One),
            true if !revision.takes_batches() => Err(MessageFault::Batch),
            true => read_batch(json).map(Self::Batch),
        }
    }
}

fn read_batch(json: &str) -> Result<Vec<Result<Message, MessageFault>>, MessageFault> {
    match elements(json).take(BATCH_MAX + 1).count() {
        0 => return Err(MessageFault::EmptyBatch),
        1..=BATCH_MAX => {}
        _ => return Err(MessageFault::LongBatch),
    }
    let messages: Vec<_> = elements(json).map(read_part).collect();
    let envelopes = messages.iter().flatten();
    let envelopes: Vec<_> = envelopes.map(|message| message.envelope.as_str()).collect();
    match has_more_values(&envelopes.join(","), VALUES_MAX) {
        true => Err(MessageFault::TooManyValues(None)),
        false => Ok(messages),
    }
}

fn read_part(json: &str) -> Result<Message, MessageFault> {
    let message = Message::read(json)?;
    match message.method().as_deref() {
        Some("initialize") => Err(MessageFault::Handshake(message.id())),
        _ => Ok(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Result<Message, MessageFault>>, MessageFault> {
        match Messages::read(text.as_bytes(), Revision::named("2025-03-26"))? {
            Messages::One(message) => Ok(vec![Ok(message)]),
            Messages::Batch(messages) => Ok(messages),
        }
    }

    fn batch(message: &str, count: usize) -> String {
        format!("[{}]", vec![message; count].join(","))
    }

    #[test]
    fn a_batch_has_1_to_32_messages() {
        let ping = r#"{"id":1,"method":"ping"}"#;

        assert_eq!(read(ping).ok().unwrap().len(), 1);
        assert_eq!(read(&batch(ping, 32)).ok().unwrap().len(), 32);
        let fault = read(&batch(ping, 33)).err();
        assert!(matches!(fault, Some(MessageFault::LongBatch)));
        let fault = read("[]").err();
        assert!(matches!(fault, Some(MessageFault::EmptyBatch)));
    }

    #[test]
    fn later_revisions_have_no_batches() {
        let fault = Messages::read(b"[{}]", Revision::named("2025-06-18")).err();

        assert!(matches!(fault, Some(MessageFault::Batch)));
    }

    #[test]
    fn values_are_counted_over_all_messages() {
        let message = |count: usize| format!(r#"{{"id":1,"params":[{}0]}}"#, "0,".repeat(count));

        assert!(read(&batch(&message(50), 32)).is_ok());
        let fault = read(&batch(&message(100), 32)).err();
        assert!(matches!(fault, Some(MessageFault::TooManyValues(None))));
    }

    #[test]
    fn each_invalid_message_of_a_batch_is_a_separate_fault() {
        let parts = read(r#"[7,{"id":1,"method":"ping"},{"id":2,"method":"initialize"}]"#);
        let parts = parts.ok().unwrap();

        assert!(matches!(parts[0], Err(MessageFault::NoMessage(None))));
        assert!(parts[1].is_ok());
        assert!(matches!(parts[2], Err(MessageFault::Handshake(Some(_)))));
    }
}
