use std::time::Duration;

use serde::Deserialize;

use crate::reply::{Answer, Call, Failure, Kind, Reply};

/// Parses a script: a JSON list of replies. All members are optional. A reply with `status` is an error.
///
/// - Answer: `{"text", "reasoning", "refusal", "calls": [{"name", "arguments", "id"}], "calls_first", "phase", "source",
///   "finish", "failure", "usage": false}`. `failure` is `cut_off`, `ends_early`, `garbage`, `error` or `hang`.
/// - Error: `{"status", "message"}`.
/// - Both: `{"retry_after", "delay_ms", "piece_bytes", "piece_ms"}`.
pub fn read_script(text: &str) -> Result<Vec<Reply>, serde_json::Error> {
    let replies: Vec<FileReply> = serde_json::from_str(text)?;
    Ok(replies.into_iter().map(Into::into).collect())
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileReply {
    text: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    calls: Vec<FileCall>,
    calls_first: bool,
    phase: Option<String>,
    source: Option<String>,
    finish: Option<String>,
    failure: Option<FileFailure>,
    usage: Option<bool>,
    status: Option<u16>,
    message: Option<String>,
    retry_after: Option<u64>,
    delay_ms: u64,
    piece_bytes: Option<usize>,
    piece_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCall {
    name: String,
    arguments: String,
    id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FileFailure {
    CutOff,
    EndsEarly,
    Garbage,
    Error,
    Hang,
}

impl From<FileReply> for Reply {
    fn from(file: FileReply) -> Self {
        let mut reply = match file.status {
            Some(status) => Self::status(status),
            None => Self::empty(),
        };
        match &mut reply.kind {
            Kind::Answer(answer) => {
                *answer = Answer {
                    text: file.text,
                    reasoning: file.reasoning,
                    refusal: file.refusal,
                    calls: file.calls.into_iter().map(Into::into).collect(),
                    calls_first: file.calls_first,
                    phase: file.phase,
                    source: file.source,
                    finish: file.finish,
                    is_without_usage: file.usage == Some(false),
                    failure: file.failure.map(Into::into),
                }
            }
            _ => {
                if let Some(message) = &file.message {
                    reply = reply.message(message);
                }
            }
        }
        if let Some(seconds) = file.retry_after {
            reply = reply.retry_after(seconds);
        }
        if let Some(bytes) = file.piece_bytes {
            reply = reply.in_pieces(bytes, Duration::from_millis(file.piece_ms));
        }
        reply.delayed(Duration::from_millis(file.delay_ms))
    }
}

impl From<FileCall> for Call {
    fn from(file: FileCall) -> Self {
        let call = Self::new(file.name, file.arguments);
        match file.id {
            Some(id) => call.id(id),
            None => call,
        }
    }
}

impl From<FileFailure> for Failure {
    fn from(file: FileFailure) -> Self {
        match file {
            FileFailure::CutOff => Self::CutOff,
            FileFailure::EndsEarly => Self::EndsEarly,
            FileFailure::Garbage => Self::Garbage,
            FileFailure::Error => Self::Error,
            FileFailure::Hang => Self::Hang,
        }
    }
}
