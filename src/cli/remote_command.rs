//! Commands that ask a running server.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches};

/// A command for a running server.
#[derive(Debug)]
pub(super) enum RemoteCommand {
    Events {
        types: Vec<String>,
    },
    GetArchive {
        id: String,
        life: Option<String>,
    },
    ListArchives {
        since: Option<String>,
    },
    RestoreArchive {
        id: String,
        life: Option<String>,
    },
    Export {
        owner: Option<String>,
        resume: Option<PathBuf>,
    },
    Import {
        if_exists: Option<String>,
    },
    ListWebhooks,
    FailedOfWebhook {
        id: String,
    },
    ReplayWebhook {
        id: String,
        events: Vec<String>,
    },
}

/// The commands that ask a running server.
pub(super) fn commands() -> [clap::Command; 5] {
    let server = Arg::new("server")
        .long("server")
        .value_name("URL")
        .global(true)
        .help("The server to ask; else that of THREADKEEP_URL, or the one that these settings start on this machine");
    let group = |name: &'static str| {
        clap::Command::new(name)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .arg(server.clone())
    };
    let many = |name: &'static str, value: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .action(ArgAction::Append)
    };
    let id = |value: &'static str| Arg::new("id").value_name(value).required(true);
    let life = Arg::new("life")
        .long("life")
        .value_name("LIFE")
        .help("Which life of it, as in its event; else the last one that ended");
    let of_thread = |name: &'static str| {
        clap::Command::new(name)
            .arg(id("THREAD ID"))
            .arg(life.clone())
    };
    let since = Arg::new("since")
        .long("since")
        .value_name("TIME")
        .help("Only what was archived from then on; RFC 3339");
    let resume = Arg::new("resume")
        .long("resume")
        .value_name("FILE")
        .value_parser(ValueParser::path_buf())
        .help("Write to this file, and go on where an export into it was interrupted");
    let owner = Arg::new("owner")
        .long("owner")
        .value_name("OWNER")
        .help("Only the threads of this owner");
    let if_exists = Arg::new("if-exists")
        .long("if-exists")
        .value_name("THEN")
        .value_parser(["skip", "replace"])
        .help("Skip or replace a thread that exists; without it, the import stops there");
    [
        clap::Command::new("export")
            .about("Write all threads of a running server to standard output, a document a line")
            .arg(server.clone())
            .arg(owner)
            .arg(resume),
        clap::Command::new("import")
            .about("Make the threads of an export from standard input in a running server")
            .arg(server.clone())
            .arg(if_exists),
        group("events")
            .about("Ask a running server for events")
            .subcommand(
                clap::Command::new("tail")
                    .about("Print events as they come, a CloudEvent a line")
                    .arg(many("type", "TYPE").help("Only events of this type; can be repeated")),
            ),
        group("archive")
            .about("Ask a running server for threads that are over")
            .subcommand(of_thread("get").about("Print how a thread ended, with its final state"))
            .subcommand(
                clap::Command::new("list")
                    .about("Print all archives without their states, one a line")
                    .arg(since),
            )
            .subcommand(of_thread("restore").about("Bring a thread back, and print it")),
        group("webhooks")
            .about("Ask a running server for its webhook endpoints")
            .subcommand(clap::Command::new("list").about("Print the endpoints, one a line"))
            .subcommand(
                clap::Command::new("failed")
                    .about("Print the events that were given up, one a line")
                    .arg(id("WEBHOOK ID")),
            )
            .subcommand(
                clap::Command::new("replay")
                    .about("Send the events that were given up once more")
                    .arg(id("WEBHOOK ID"))
                    .arg(many("event", "EVENT ID").help("Only this event; can be repeated")),
            ),
    ]
}

/// Reads a command of one word or of two, which are those of [`commands`].
pub(super) fn read(group: &str, action: &str, matches: &ArgMatches) -> RemoteCommand {
    let text = |name| matches.get_one::<String>(name).cloned();
    let id = || text("id").unwrap_or_default();
    let all = |name| {
        let given = matches.get_many::<String>(name).into_iter().flatten();
        given.cloned().collect()
    };
    match (group, action) {
        ("export", _) => RemoteCommand::Export {
            owner: text("owner"),
            resume: matches.get_one::<PathBuf>("resume").cloned(),
        },
        ("import", _) => RemoteCommand::Import {
            if_exists: text("if-exists"),
        },
        ("archive", "get") => RemoteCommand::GetArchive {
            id: id(),
            life: text("life"),
        },
        ("archive", "restore") => RemoteCommand::RestoreArchive {
            id: id(),
            life: text("life"),
        },
        ("archive", _) => RemoteCommand::ListArchives {
            since: text("since"),
        },
        ("webhooks", "replay") => RemoteCommand::ReplayWebhook {
            id: id(),
            events: all("event"),
        },
        ("webhooks", "failed") => RemoteCommand::FailedOfWebhook { id: id() },
        ("webhooks", _) => RemoteCommand::ListWebhooks,
        _ => RemoteCommand::Events { types: all("type") },
    }
}
