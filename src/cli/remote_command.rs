//! Commands that ask a running server.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};

use super::remote::threads::{ForkRequest, ThreadQuery};

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
    ListThreads {
        query: ThreadQuery,
        is_json: bool,
    },
    ShowThread {
        id: String,
        is_json: bool,
    },
    EraseThreads {
        owner: String,
        is_confirmed: bool,
        is_json: bool,
    },
    ForkThread {
        request: ForkRequest,
        is_json: bool,
    },
    Export {
        owner: Option<String>,
        resume: Option<PathBuf>,
    },
    Import {
        if_exists: Option<String>,
        is_json: bool,
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
pub(super) fn commands() -> [clap::Command; 6] {
    let server = Arg::new("server")
        .long("server")
        .value_name("URL")
        .global(true)
        .help("Ask this server [default: THREADKEEP_URL, or else the server that these settings start here]");
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
    let id = |value: &'static str, help: &'static str| {
        Arg::new("id").value_name(value).required(true).help(help)
    };
    let life = Arg::new("life")
        .long("life")
        .value_name("LIFE")
        .help("Life of the thread, as in its event [default: the one that ended last]");
    let of_thread = |name: &'static str| {
        clap::Command::new(name)
            .arg(id("THREAD ID", "Id of the ended thread"))
            .arg(life.clone())
    };
    let since = Arg::new("since")
        .long("since")
        .value_name("TIME")
        .help("Print only archives made at or after this time (RFC 3339)");
    let json = Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print JSON instead of a table");
    let owner = |help: &'static str| {
        Arg::new("owner")
            .long("owner")
            .value_name("OWNER")
            .help(help)
    };
    let export = clap::Command::new("export")
        .about("Print all threads, one document per line; short: `threadkeep export`")
        .arg(owner("Print only threads of this owner"))
        .arg(
            Arg::new("resume")
                .long("resume")
                .value_name("FILE")
                .value_parser(ValueParser::path_buf())
                .help("Write to this file, and continue an interrupted export into it"),
        )
        .arg(json.clone().help("No effect: documents are JSON already"));
    let import = clap::Command::new("import")
        .about("Create the threads of an export from standard input; short: `threadkeep import`")
        .arg(
            Arg::new("if-exists")
                .long("if-exists")
                .value_name("THEN")
                .value_parser(["skip", "replace"])
                .help("Skip or replace threads that exist [default: stop at the first one]"),
        )
        .arg(json.clone().help("Print the counts as JSON"));
    let fork = clap::Command::new("fork")
        .about("Copy a thread to a new id, and print the copy")
        .arg(id("THREAD ID", "Id of the thread to copy"))
        .arg(
            Arg::new("new-id")
                .long("id")
                .value_name("THREAD ID")
                .help("Id of the copy [default: a random one]"),
        )
        .arg(owner("Owner of the copy [default: that of the thread]"))
        .arg(
            Arg::new("checkpoint")
                .long("checkpoint")
                .value_name("NUMBER")
                .value_parser(value_parser!(u32))
                .help("Copy state and metadata of this checkpoint"),
        )
        .arg(
            Arg::new("metadata")
                .long("metadata")
                .value_name("JSON")
                .help("Metadata of the copy, an object [default: that of the thread]"),
        )
        .arg(
            many("include", "PART")
                .value_parser(["state", "scope", "history"])
                .help("Copy only this part; repeat it for more parts [default: all]"),
        )
        .arg(json.clone());
    [
        group("threads")
            .about("List, show, fork, erase, export and import threads of a running server")
            .subcommand(
                clap::Command::new("list")
                    .about(
                        "Print threads, one per line: those of an owner newest first, or all by id",
                    )
                    .arg(owner("Print only threads of this owner"))
                    .arg(
                        Arg::new("order")
                            .long("order")
                            .value_name("ORDER")
                            .requires("owner")
                            .value_parser(["updated", "created"])
                            .help("Sort by the last write or by the first one [default: updated]"),
                    )
                    .arg(
                        many("metadata", "KEY=TEXT")
                            .help("Print only threads with this metadata; repeat it for more keys"),
                    )
                    .arg(
                        Arg::new("limit")
                            .long("limit")
                            .value_name("NUMBER")
                            .value_parser(value_parser!(usize))
                            .help("Stop after this number of threads"),
                    )
                    .arg(json.clone()),
            )
            .subcommand(
                clap::Command::new("show")
                    .about("Print a thread with the keys of its state; this extends its life")
                    .arg(id("THREAD ID", "Id of the thread"))
                    .arg(json.clone()),
            )
            .subcommand(
                clap::Command::new("erase")
                    .about("Erase all that an owner has, and wait until nothing is left")
                    .arg(
                        Arg::new("owner")
                            .value_name("OWNER")
                            .required(true)
                            .help("Owner whose threads and archives to erase"),
                    )
                    .arg(
                        Arg::new("yes")
                            .long("yes")
                            .action(ArgAction::SetTrue)
                            .help("Do not ask for a confirmation"),
                    )
                    .arg(json.clone()),
            )
            .subcommand(fork)
            .subcommand(export.clone())
            .subcommand(import.clone()),
        // short for those of `threads`, which list them
        export.arg(server.clone()).hide(true),
        import.arg(server.clone()).hide(true),
        group("events")
            .about("Print the events of a running server")
            .subcommand(
                clap::Command::new("tail")
                    .about("Print events as they happen, one CloudEvent per line")
                    .arg(
                        many("type", "TYPE")
                            .help("Print only events of this type; repeat it for more types"),
                    ),
            ),
        group("archive")
            .about("List, show and restore ended threads of a running server")
            .subcommand(of_thread("get").about("Print how a thread ended, with its final state"))
            .subcommand(
                clap::Command::new("list")
                    .about("Print all archives without their states, one per line")
                    .arg(since),
            )
            .subcommand(of_thread("restore").about("Restore a thread, and print it")),
        group("webhooks")
            .about("List webhook endpoints of a running server, and replay failed deliveries")
            .subcommand(clap::Command::new("list").about("Print the endpoints, one per line"))
            .subcommand(
                clap::Command::new("failed")
                    .about("Print events that could not be delivered for a day, one per line")
                    .arg(id("WEBHOOK ID", "Id of the endpoint, as `list` prints it")),
            )
            .subcommand(
                clap::Command::new("replay")
                    .about("Deliver these events again, all or some")
                    .arg(id("WEBHOOK ID", "Id of the endpoint, as `list` prints it"))
                    .arg(
                        many("event", "EVENT ID")
                            .help("Deliver only this event; repeat it for more events"),
                    ),
            ),
    ]
}

/// Reads a command of a group, which are those of [`commands`].
pub(super) fn read(group: &str, action: &str, matches: &ArgMatches) -> RemoteCommand {
    let text = |name| matches.get_one::<String>(name).cloned();
    let id = || text("id").unwrap_or_default();
    let all = |name| {
        let given = matches.get_many::<String>(name).into_iter().flatten();
        given.cloned().collect()
    };
    let flag = |name| matches.get_flag(name);
    match (group, action) {
        ("threads", "show") => RemoteCommand::ShowThread {
            id: id(),
            is_json: flag("json"),
        },
        ("threads", "erase") => RemoteCommand::EraseThreads {
            owner: text("owner").unwrap_or_default(),
            is_confirmed: flag("yes"),
            is_json: flag("json"),
        },
        ("threads", "fork") => RemoteCommand::ForkThread {
            request: ForkRequest {
                source: id(),
                id: text("new-id"),
                owner: text("owner"),
                checkpoint: matches.get_one("checkpoint").copied(),
                metadata: text("metadata"),
                include: all("include"),
            },
            is_json: flag("json"),
        },
        ("threads", "export") => RemoteCommand::Export {
            owner: text("owner"),
            resume: matches.get_one::<PathBuf>("resume").cloned(),
        },
        ("threads", "import") => RemoteCommand::Import {
            if_exists: text("if-exists"),
            is_json: flag("json"),
        },
        ("threads", _) => RemoteCommand::ListThreads {
            query: ThreadQuery {
                owner: text("owner"),
                order: text("order"),
                metadata: all("metadata"),
                limit: matches.get_one("limit").copied(),
            },
            is_json: flag("json"),
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
