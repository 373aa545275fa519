//! Parses the command line. Each setting in the default settings file has a flag.

#![expect(
    clippy::doc_markdown,
    reason = "comments of commands and options are their help"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::remote_command::RemoteCommand;
use super::settings_list;
use crate::config::{Layers, Setting, flag_of};

#[derive(Debug, Parser)]
#[command(name = "threadkeep", version, about)]
struct Args {
    /// Read this settings file [default: THREADKEEP_CONFIG or ./threadkeep.toml]
    #[arg(long, value_name = "PATH", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the server (the default)
    Serve,
    /// Run a demo server with example threads, live writers and a scripted model
    Demo {
        /// Open the console in a browser
        #[arg(long = "open")]
        opens_browser: bool,
    },
    /// Sign a thread id, and print the value for the header x-thread-id
    Sign {
        /// Id to sign, such as thrd_6f1c...
        #[arg(value_name = "THREAD ID")]
        id: String,
    },
    /// Verify a signed id, and print the id and the name of the signing key
    Verify {
        /// Value of the header x-thread-id or of the cookie
        #[arg(value_name = "SIGNED ID")]
        signed: String,
    },
    /// Generate a random secret of 32 bytes, and print it
    Keygen {
        /// Print the secret as `NAME:secret`, for signing_keys or api_keys
        #[arg(long)]
        name: Option<String>,
    },
    /// Print the value and source of each setting, and validate all settings
    Config,
    /// List all settings with their flags and environment variables
    // generates the list only for `help settings`, because other commands do not need it
    #[command(defer(|settings| settings.override_help(settings_list::text())))]
    Settings {
        /// Print the list as Markdown
        #[arg(long = "markdown")]
        is_markdown: bool,
    },
    /// Print the OpenAPI document
    Openapi,
    #[command(flatten)]
    Remote(RemoteCommand),
}

/// A command, and the layers of its settings.
#[derive(Debug)]
pub(super) struct Invocation {
    pub(super) command: Command,
    pub(super) layers: Layers,
}

impl Invocation {
    pub(super) fn parse(
        args: impl IntoIterator<Item = OsString>,
        environment: BTreeMap<String, String>,
    ) -> Result<Self, clap::Error> {
        let settings = Setting::all();
        let matches = command(&settings).try_get_matches_from(args)?;
        let Args { config, command } = Args::from_arg_matches(&matches)?;
        let flags = settings.iter().flat_map(Setting::names).filter_map(|name| {
            let text = matches.get_one::<String>(name)?;
            Some((name.into(), text.clone()))
        });
        let layers = Layers {
            file: config,
            fallback_file: Some("threadkeep.toml".into()),
            environment,
            flags: flags.collect(),
        };
        Ok(Self {
            command: command.unwrap_or(Command::Serve),
            layers,
        })
    }
}

fn command(settings: &[Setting]) -> clap::Command {
    Args::command().args(settings.iter().flat_map(Setting::names).map(flag))
}

/// Returns the flag for a setting. The help for commands hides the flag, but [`settings_list`] lists it.
fn flag(name: &'static str) -> Arg {
    Arg::new(name)
        .long(flag_of(name))
        .value_name("VALUE")
        .global(true)
        .hide(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Invocation, clap::Error> {
        let args = ["threadkeep"].iter().chain(args).map(OsString::from);
        Invocation::parse(args, BTreeMap::new())
    }

    #[test]
    fn the_command_line_is_valid() {
        command(&Setting::all()).debug_assert();
    }

    #[test]
    fn flags_are_accepted_before_and_after_the_command() {
        for args in [
            ["config", "--max-keys", "7"],
            ["--max-keys", "7", "config"],
            ["serve", "--max-keys=7", "--config=a"],
        ] {
            assert_eq!(parse(&args).unwrap().layers.flags["max_keys"], "7");
        }
        assert!(matches!(parse(&[]).unwrap().command, Command::Serve));
    }

    #[test]
    fn earlier_flag_names_are_accepted() {
        let both = ["--turns-max", "5", "--responses-max", "7"];
        for (args, value) in [(&both[..2], 5), (&both[2..], 7), (&both[..], 7)] {
            let values = parse(args).unwrap().layers.merge().unwrap();
            let shown = values.provenance().to_string();
            let row = shown
                .lines()
                .find(|line| line.starts_with("responses_max "));
            assert!(row.unwrap().contains(&format!(" {value} ")), "{row:?}");
        }
        for flag in ["--turn-window", "--response-window"] {
            assert!(parse(&[flag, "5"]).is_ok(), "{flag}");
        }
    }

    #[test]
    fn an_unknown_flag_is_refused() {
        assert_eq!(parse(&["--max-key", "7"]).unwrap_err().exit_code(), 2);
    }
}
