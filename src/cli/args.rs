//! Reads the command line. The flags of settings are made from the default file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction};

use super::remote_command::{self, RemoteCommand};
use super::settings_list;
use crate::config::{Layers, Setting};

/// A command with its input.
#[derive(Debug)]
pub(super) enum Command {
    Serve,
    Sign {
        id: String,
    },
    Verify {
        signed: String,
    },
    Keygen {
        name: Option<String>,
    },
    Config,
    Openapi,
    Settings {
        is_markdown: bool,
    },
    /// Asks a running server.
    Remote {
        server: Option<String>,
        command: RemoteCommand,
    },
}

/// A command, and the layers that its settings come from.
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
        // clap passes global flags on to the innermost command
        let (mut inner, mut names) = (&matches, Vec::new());
        while let Some((name, next)) = inner.subcommand() {
            names.push(name);
            inner = next;
        }
        let flags = settings.iter().filter_map(|setting| {
            let text = inner.get_one::<String>(setting.name)?;
            Some((setting.name.into(), text.clone()))
        });
        let layers = Layers {
            file: inner.get_one::<PathBuf>("config").cloned(),
            fallback_file: Some("threadkeep.toml".into()),
            environment,
            flags: flags.collect(),
        };
        let text = |name| inner.get_one::<String>(name).cloned();
        let command = match names[..] {
            ["sign"] => Command::Sign {
                id: text("id").unwrap_or_default(),
            },
            ["verify"] => Command::Verify {
                signed: text("signed").unwrap_or_default(),
            },
            ["keygen"] => Command::Keygen { name: text("name") },
            ["config"] => Command::Config,
            ["openapi"] => Command::Openapi,
            ["settings"] => Command::Settings {
                is_markdown: inner.get_flag("markdown"),
            },
            [action @ ("export" | "import")] => Command::Remote {
                server: text("server"),
                command: remote_command::read("threads", action, inner),
            },
            [group, action] => Command::Remote {
                server: text("server"),
                command: remote_command::read(group, action, inner),
            },
            _ => Command::Serve,
        };
        Ok(Self { command, layers })
    }
}

fn command(settings: &[Setting]) -> clap::Command {
    let file = Arg::new("config")
        .long("config")
        .value_name("PATH")
        .value_parser(ValueParser::path_buf())
        .global(true)
        .help("Read this settings file [default: THREADKEEP_CONFIG or ./threadkeep.toml]");
    clap::Command::new("threadkeep")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .arg(file)
        .args(settings.iter().map(flag))
        .after_help(
            "Settings are flags and variables too (--listen, THREADKEEP_LISTEN): see `threadkeep help settings`.",
        )
        .subcommands([
            clap::Command::new("serve").about("Run the server (the default)"),
            clap::Command::new("sign")
                .about("Sign a thread id, and print it as the header x-thread-id carries it")
                .arg(
                    Arg::new("id")
                        .value_name("THREAD ID")
                        .required(true)
                        .help("Id to sign, such as thrd_6f1c..."),
                ),
            clap::Command::new("verify")
                .about("Verify a signed id, and print the id and the name of its key")
                .arg(
                    Arg::new("signed")
                        .value_name("SIGNED ID")
                        .required(true)
                        .help("Value of the header x-thread-id or of the cookie"),
                ),
            clap::Command::new("keygen")
                .about("Print a new random secret of 32 bytes")
                .arg(
                    Arg::new("name")
                        .long("name")
                        .value_name("NAME")
                        .help("Print it as `NAME:secret`, for signing_keys or api_keys"),
                ),
            clap::Command::new("config")
                .about("Print the value of each setting and its source, and check them all"),
            clap::Command::new("settings")
                .about("List all settings with their flags, variables and defaults")
                .arg(
                    Arg::new("markdown")
                        .long("markdown")
                        .action(ArgAction::SetTrue)
                        .help("Print the list as a page of Markdown"),
                )
                // made only for `help settings`: other commands do not need it
                .defer(|settings| settings.override_help(settings_list::text())),
            clap::Command::new("openapi").about("Print the OpenAPI document"),
        ])
        .subcommands(remote_command::commands())
}

/// The flag of a setting. The help of a command shows its own options only; [`settings_list`]
/// lists these flags.
fn flag(setting: &Setting) -> Arg {
    Arg::new(setting.name)
        .long(setting.flag())
        .aliases(setting.earlier_flag())
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
    fn the_flags_are_sound() {
        command(&Setting::all()).debug_assert();
    }

    #[test]
    fn flags_count_before_and_after_the_command() {
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
    fn a_flag_has_its_earlier_name_too() {
        for name in ["--responses-max", "--turns-max"] {
            let invocation = parse(&[name, "7"]).unwrap();
            assert_eq!(invocation.layers.flags["responses_max"], "7");
        }
    }

    #[test]
    fn an_unknown_flag_is_refused() {
        assert_eq!(parse(&["--max-key", "7"]).unwrap_err().exit_code(), 2);
    }
}
