//! The server, until it is told to stop.

use super::error::CliError;
use crate::app::Application;
use crate::config::{LogFormat, Settings};
use crate::telemetry::{log_json, log_text};

/// Serves until SIGTERM or SIGINT.
pub(super) fn serve(settings: Settings) -> Result<(), CliError> {
    match settings.log.format {
        LogFormat::Json => log_json(&settings.log.filter)?,
        LogFormat::Text => log_text(&settings.log.filter)?,
    }
    actix_web::rt::System::new().block_on(async {
        let application = Application::build(settings).await?;
        Ok(application.run_until_signal().await?)
    })
}
