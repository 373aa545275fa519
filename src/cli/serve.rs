use std::io::{self, IsTerminal as _, Write as _};

use super::error::CliError;
use crate::app::{Application, ConsoleLinks, ServerInfo};
use crate::config::{LogFormat, Settings, local_url};
use crate::telemetry::{flush_log, log_json, log_text};

pub(super) fn serve(settings: Settings) -> Result<(), CliError> {
    let is_terminal = io::stderr().is_terminal();
    match settings.log.format {
        LogFormat::Auto if is_terminal => log_text(&settings.log.filter)?,
        LogFormat::Text => log_text(&settings.log.filter)?,
        LogFormat::Auto | LogFormat::Json => log_json(&settings.log.filter)?,
    }
    let info = is_terminal.then(|| ServerInfo::new(&settings));
    let served = actix_web::rt::System::new().block_on(async {
        let application = Application::build(settings).await?;
        if let Some(info) = info {
            print_stderr(&greeting(&application, &info));
            print_links(&application);
        }
        Ok(application.run_until_signal().await?)
    });
    flush_log();
    served
}

/// Prints to stderr. Ignores errors, because the server must keep running even if the terminal is closed.
fn print_stderr(text: &str) {
    drop(io::stderr().write_all(text.as_bytes()));
}

/// Prints the one-time link that opens the console without an API key. Prints a new link whenever the previous link has
/// been used.
pub(super) fn print_links(application: &Application) {
    let base = local_url(application.address());
    let Some(links) = application.console() else {
        return;
    };
    let mut tokens = links.tokens();
    let print = move |token: &str| {
        let path = ConsoleLinks::path(token);
        print_stderr(&format!(
            "  Link to the console, without an API key, once: {base}{path}\n"
        ));
    };
    print(&tokens.borrow_and_update());
    actix_web::rt::spawn(async move {
        while tokens.changed().await.is_ok() {
            print(&tokens.borrow_and_update());
        }
    });
}

fn greeting(application: &Application, info: &ServerInfo) -> String {
    let address = application.address();
    let base = local_url(address);
    let also = match address.ip().is_unspecified() {
        true => " and every other address of this machine",
        false => "",
    };
    let mut greeting = format!("{}\n  {:<9}{base}{also}\n", info.title(), "Address");
    for (topic, text) in info.lines(&base) {
        greeting += &format!("  {topic:<9}{text}\n");
    }
    greeting
}
