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
    Ask {
        server: Option<String>,
        asked: RemoteCommand,
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
        // a flag that is global is found with the innermost command
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
            [command @ ("export" | "import")] => Command::Ask {
                server: text("server"),
                asked: remote_command::read(command, "", inner),
            },
            [group, action] => Command::Ask {
                server: text("server"),
                asked: remote_command::read(group, action, inner),
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
        .help("The settings file; else THREADKEEP_CONFIG, else threadkeep.toml if it exists");
    clap::Command::new("threadkeep")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
        .arg(file)
        .args(settings.iter().map(flag))
        .after_help(
            "Every setting is also a flag and a variable: --redis-url and THREADKEEP_REDIS_URL set \
             `redis_url`.\n`threadkeep help settings` lists them.",
        )
        .subcommands([
            clap::Command::new("serve").about("Run the server (the default)"),
            clap::Command::new("sign")
                .about("Sign a thread id, as for the header x-thread-id")
                .arg(Arg::new("id").value_name("THREAD ID").required(true)),
            clap::Command::new("verify")
                .about("Verify a signed id of a header or cookie; tells the id and the key's name")
                .arg(Arg::new("signed").value_name("SIGNED ID").required(true)),
            clap::Command::new("keygen")
                .about("Make a random secret of 32 bytes")
                .arg(
                    Arg::new("name")
                        .long("name")
                        .value_name("NAME")
                        .help("Make a key of that name, for signing_keys or api_keys"),
                ),
            clap::Command::new("config")
                .about("Show every setting, where it is from, and whether all can be used"),
            clap::Command::new("settings")
                .about("List all settings with their flags, variables and defaults")
                .arg(
                    Arg::new("markdown")
                        .long("markdown")
                        .action(ArgAction::SetTrue)
                        .help("Print them as a page of Markdown"),
                )
                // only when it is asked for: other commands need no list
                .defer(|settings| settings.override_help(settings_list::text())),
            clap::Command::new("openapi").about("Print the OpenAPI document"),
        ])
        .subcommands(remote_command::commands())
}

/// A setting as a flag. The help of a command is about the command, so flags are listed by
/// [`settings_list`] alone.
fn flag(setting: &Setting) -> Arg {
    Arg::new(setting.name)
        .long(setting.flag())
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
    fn an_unknown_flag_is_refused() {
        assert_eq!(parse(&["--max-key", "7"]).unwrap_err().exit_code(), 2);
    }
}
