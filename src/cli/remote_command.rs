#![expect(
    clippy::doc_markdown,
    reason = "comments of commands and options are their help"
)]

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::remote::threads::{ForkRequest, ThreadQuery};

/// A command for a running server.
#[derive(Debug, Subcommand)]
pub(super) enum RemoteCommand {
    /// List, show, fork, erase, export and import threads of a running server
    Threads(Group<ThreadsCommand>),
    // hidden shortcuts for `threads export` and `threads import`; the help for these two commands mentions them
    #[command(hide = true)]
    Export {
        #[command(flatten)]
        export: ExportRequest,
        #[command(flatten)]
        server: Server,
    },
    #[command(hide = true)]
    Import {
        #[command(flatten)]
        import: ImportRequest,
        #[command(flatten)]
        server: Server,
    },
    /// Print the events of a running server
    Events(Group<EventsCommand>),
    /// List, show and restore ended threads of a running server
    #[command(alias = "archive")]
    Archives(Group<ArchivesCommand>),
    /// List webhook endpoints of a running server, and replay failed deliveries
    Webhooks(Group<WebhooksCommand>),
}

#[derive(Debug, Args)]
pub(super) struct Group<C: Subcommand> {
    #[command(subcommand)]
    pub(super) command: C,
    #[command(flatten)]
    pub(super) server: Server,
}

#[derive(Debug, Args)]
pub(super) struct Server {
    /// URL of the server [default: THREADKEEP_URL, or the local server of these settings]
    #[arg(long = "server", value_name = "URL", global = true, display_order = 0)]
    pub(super) url: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ThreadsCommand {
    /// Print threads, one per line: all threads by id, or the threads of an owner, newest first
    List(ThreadQuery),
    /// Print a thread and its state; this extends the thread's lifetime
    Show {
        /// Id of the thread
        #[arg(value_name = "THREAD ID")]
        id: String,
        /// Print JSON instead of a table
        #[arg(long = "json")]
        is_json: bool,
    },
    /// Erase all data of an owner, and wait until the erasure is complete
    Erase {
        /// Owner whose threads and archives to erase
        owner: String,
        /// Do not ask for confirmation
        #[arg(long = "yes")]
        is_confirmed: bool,
        /// Print JSON instead of a table
        #[arg(long = "json")]
        is_json: bool,
    },
    /// Copy a thread to a new id, and print the copy
    Fork(ForkRequest),
    Export(ExportRequest),
    Import(ImportRequest),
}

/// Print all threads, one JSON document per line (shortcut: `threadkeep export`)
#[derive(Debug, Args)]
pub(super) struct ExportRequest {
    /// Print only threads of this owner
    #[arg(long)]
    pub(super) owner: Option<String>,
    /// Write to this file, and resume an interrupted export to it
    #[arg(long, value_name = "FILE")]
    pub(super) resume: Option<PathBuf>,
    /// No effect: documents are always JSON
    #[arg(long = "json")]
    _is_json: bool,
}

/// Import an export from standard input (shortcut: `threadkeep import`)
#[derive(Debug, Args)]
pub(super) struct ImportRequest {
    /// Skip or replace threads that already exist [default: stop at the first such thread]
    #[arg(long, value_name = "skip|replace", value_parser = ["skip", "replace"], hide_possible_values = true)]
    pub(super) if_exists: Option<String>,
    /// Print the counts as JSON
    #[arg(long = "json")]
    pub(super) is_json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum EventsCommand {
    /// Print events as they happen, one CloudEvent per line
    Tail {
        /// Print only events of this type; repeat it for more types
        #[arg(long = "type", value_name = "TYPE")]
        types: Vec<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ArchivesCommand {
    /// Print how a thread ended, with its final state
    #[command(alias = "get")]
    Show(EndedThread),
    /// Print all archives without their states, one per line
    List {
        /// Print only archives created at or after this time (RFC 3339)
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
    },
    /// Restore a thread, and print it
    Restore(EndedThread),
}

#[derive(Debug, Args)]
pub(super) struct EndedThread {
    /// Id of the ended thread
    #[arg(value_name = "THREAD ID")]
    pub(super) id: String,
    /// Life of the thread (the id of the period from its creation to its end) [default: the life that ended last]
    #[arg(long)]
    pub(super) life: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum WebhooksCommand {
    /// Print the endpoints, one per line
    List,
    /// Print events that await delivery, oldest first, one per line
    Pending {
        /// Id of the endpoint, as `list` prints it
        #[arg(value_name = "WEBHOOK ID")]
        id: String,
    },
    /// Print events that could not be delivered for a day, one per line
    Failed {
        /// Id of the endpoint, as `list` prints it
        #[arg(value_name = "WEBHOOK ID")]
        id: String,
    },
    /// Deliver failed events again, all or some of them
    Replay {
        /// Id of the endpoint, as `list` prints it
        #[arg(value_name = "WEBHOOK ID")]
        id: String,
        /// Deliver only this event; repeat it for more events
        #[arg(long = "event", value_name = "EVENT ID")]
        events: Vec<String>,
    },
}

impl RemoteCommand {
    pub(super) fn server(&self) -> Option<&str> {
        let (Self::Threads(Group { server, .. })
        | Self::Export { server, .. }
        | Self::Import { server, .. }
        | Self::Events(Group { server, .. })
        | Self::Archives(Group { server, .. })
        | Self::Webhooks(Group { server, .. })) = self;
        server.url.as_deref()
    }
}
