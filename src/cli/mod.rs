mod args;
mod demo;
mod error;
mod keygen;
mod remote;
mod remote_command;
mod serve;
mod settings_list;
mod signing;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use crate::config::{ClientSettings, PREFIX, Settings};
use crate::telemetry::Chain;
use args::{Command, Invocation};
use error::CliError;
use threadkeep_http::openapi_json;

/// Runs the command given in `args`, and prints errors to stderr.
///
/// The exit code is 0 for success, 1 for a failure, and 2 for invalid arguments or settings.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> ExitCode {
    match try_run(args, environment) {
        Ok(()) => ExitCode::SUCCESS,
        Err(CliError::Usage(error)) => {
            // ignore errors, because a closed pipe means that the reader does not need more output
            drop(error.print());
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
        Err(error) => {
            drop(writeln!(io::stderr(), "threadkeep: {}", Chain(&error)));
            error.exit_code()
        }
    }
}

fn try_run(
    args: impl IntoIterator<Item = OsString>,
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(), CliError> {
    let Invocation { command, layers } = Invocation::parse(args, read(environment)?)?;
    match &command {
        Command::Keygen { name } => return print(&keygen::generate(name.as_deref())?),
        Command::Openapi => return print(openapi_json().trim_end()),
        Command::Settings { is_markdown: true } => {
            return print(settings_list::markdown().trim_end());
        }
        Command::Settings { is_markdown: false } => return print(settings_list::text().trim_end()),
        Command::Demo { opens_browser } => return demo::run(layers.flags, *opens_browser),
        Command::Remote(command) => return remote::run(ClientSettings::parse(&layers)?, command),
        Command::Serve | Command::Sign { .. } | Command::Verify { .. } | Command::Config => {}
    }
    let values = layers.merge()?;
    if let Command::Config = command {
        print(values.provenance().to_string().trim_end())?;
    }
    let settings = Settings::parse(values)?;
    match command {
        Command::Serve => serve::serve(settings),
        Command::Sign { id } => print(&signing::sign(settings, &id)?),
        Command::Verify { signed } => print(&signing::verify(settings, &signed)?),
        Command::Config
        | Command::Keygen { .. }
        | Command::Demo { .. }
        | Command::Openapi
        | Command::Settings { .. }
        | Command::Remote(_) => Ok(()),
    }
}

fn read(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<BTreeMap<String, String>, CliError> {
    let names = environment
        .into_iter()
        .filter_map(|(name, text)| Some((name.into_string().ok()?, text)));
    names
        .filter(|(name, _)| name.starts_with(PREFIX))
        .map(|(name, text)| match text.into_string() {
            Ok(text) => Ok((name, text)),
            Err(_) => Err(CliError::Environment(name)),
        })
        .collect()
}

fn print(text: &str) -> Result<(), CliError> {
    writeln!(io::stdout(), "{text}").map_err(CliError::Output)
}
