use std::io;
use std::process::ExitCode;

use crate::app::AppError;
use crate::config::SettingsError;
use crate::telemetry::LogError;
use threadkeep_domain::ThreadIdError;

#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Usage(#[from] clap::Error),
    #[error("the value of {0} is not UTF-8")]
    Environment(String),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("no signing key is set: set signing_keys or signing_keys_file")]
    NoSigningKey,
    #[error("invalid thread id: use `thrd_` with 27 to 59 letters and digits")]
    ThreadId(#[from] ThreadIdError),
    #[error("invalid key name: use 1 to 64 characters from A-Z, a-z, 0-9, `.`, `_` and `-`")]
    KeyName,
    #[error("the signature is wrong")]
    NotVerified,
    #[error(transparent)]
    Log(#[from] LogError),
    #[error(transparent)]
    App(#[from] AppError),
    #[error(
        "the demo requires the embedded store and a loopback address, and sets its own API key"
    )]
    NoDemo,
    #[error("no API key is set: set api_keys or api_keys_file")]
    NoApiKey,
    #[error("invalid server URL: use a URL such as http://127.0.0.1:8080")]
    ServerUrl,
    #[error("cannot reach the server")]
    Unreachable(#[source] reqwest::Error),
    #[error("the server answered {status} {code}: {detail}")]
    Refused {
        status: u16,
        code: String,
        detail: String,
    },
    #[error("cannot parse the response: the server may run a different version")]
    Answer(#[source] serde_json::Error),
    #[error("an erasure cannot be undone: pass --yes to confirm it")]
    NotConfirmed,
    #[error("the metadata is not valid JSON")]
    Metadata(#[source] serde_json::Error),
    #[error("cannot write the output")]
    Output(#[source] io::Error),
    #[error("cannot read the input")]
    Input(#[source] io::Error),
    #[error("cannot read or write the export file")]
    File(#[source] io::Error),
    #[error(
        "this is not an export: each line must be a document, and the last line {{\"complete\":true}}"
    )]
    NotAnExport,
    #[error("the server ended the response early")]
    CutOff,
    #[error(
        "{0} threads are not in the export: the server could not read them (see the lines with `error`)"
    )]
    Unexported(u64),
    #[error("line {number} was not imported")]
    InLine {
        number: u64,
        #[source]
        source: Box<Self>,
    },
}

impl CliError {
    /// Returns whether a retry may succeed.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::CutOff => true,
            Self::Refused { status, .. } => matches!(status, 429 | 503),
            _ => false,
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        match self {
            Self::NotVerified
            | Self::Log(_)
            | Self::App(_)
            | Self::Unreachable(_)
            | Self::Refused { .. }
            | Self::Answer(_)
            | Self::Output(_)
            | Self::Input(_)
            | Self::File(_)
            | Self::NotAnExport
            | Self::CutOff
            | Self::Unexported(_)
            | Self::InLine { .. } => ExitCode::from(1),
            Self::Usage(_)
            | Self::Environment(_)
            | Self::Settings(_)
            | Self::NoSigningKey
            | Self::ThreadId(_)
            | Self::NoDemo
            | Self::NoApiKey
            | Self::NotConfirmed
            | Self::ServerUrl
            | Self::Metadata(_)
            | Self::KeyName => ExitCode::from(2),
        }
    }
}
