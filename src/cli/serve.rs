//! Runs the server until a signal stops it.

use std::io::{self, IsTerminal as _, Write as _};

use super::error::CliError;
use crate::app::{Application, ServerInfo};
use crate::config::{LogFormat, Settings, local_url};
use crate::telemetry::{log_json, log_text};

/// Serves until SIGTERM or SIGINT.
pub(super) fn serve(settings: Settings) -> Result<(), CliError> {
    let is_terminal = io::stderr().is_terminal();
    match settings.log.format {
        LogFormat::Auto if is_terminal => log_text(&settings.log.filter)?,
        LogFormat::Text => log_text(&settings.log.filter)?,
        LogFormat::Auto | LogFormat::Json => log_json(&settings.log.filter)?,
    }
    let info = is_terminal.then(|| ServerInfo::new(&settings));
    actix_web::rt::System::new().block_on(async {
        let application = Application::build(settings).await?;
        if let Some(info) = info {
            // serves even if the terminal is closed
            drop(io::stderr().write_all(greeting(&application, &info).as_bytes()));
        }
        Ok(application.run_until_signal().await?)
    })
}

/// Five lines for the person at the terminal.
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
