use std::fs;
use std::io;
use std::path::Path;

use goose::GooseAttack;
use goose::config::GooseConfiguration;
use goose::goose::Scenario;
use serde_json::Value;

use super::Report;
use crate::error::LoadError;

/// Writes the page from the measurements file, then deletes that file.
pub(super) async fn write(report: &Report, measured: &Path, page: &Path) -> Result<(), LoadError> {
    let failed = |error| LoadError::Report(page.to_owned(), error);
    annotate(report, measured).map_err(failed)?;
    let mut configuration = GooseConfiguration::default();
    configuration.render_report = Some(measured.display().to_string());
    configuration.report_file = vec![page.display().to_string()];
    configuration.quiet = 1;
    // the library requires a scenario even if it runs no scenario
    GooseAttack::initialize_with_config(configuration)?
        .register_scenario(Scenario::new("report"))
        .execute()
        .await?;
    fs::remove_file(measured).map_err(failed)
}

/// Adds the results of the checks to the measurements file, which the library writes before the results are complete.
fn annotate(report: &Report, measured: &Path) -> io::Result<()> {
    let mut json: Value = serde_json::from_slice(&fs::read(measured)?)?;
    let mut notes = String::new();
    report.write_summary(&mut notes).map_err(io::Error::other)?;
    json["notes"] = notes.into();
    fs::write(measured, serde_json::to_vec(&json)?)
}
