mod html;
mod row;
mod text;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use goose::metrics::GooseMetrics;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::account::{Finding, Tally};
use crate::args::Args;
use crate::error::LoadError;
use crate::run::Run;
use crate::verdict::{Verdict, judge};
use row::Row;

/// All results of a run. The field names are also the names in the JSON file.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    scenario: &'static str,
    hosts: Vec<String>,
    users: usize,
    /// Time in RFC 3339, UTC.
    started: String,
    /// Duration of the whole run, including the verification.
    seconds: f64,
    verdict: Verdict,
    reasons: Vec<String>,
    requests_per_second: f64,
    account: Tally,
    findings: Vec<Finding>,
    requests: Vec<Row>,
    #[serde(skip)]
    measured_in: PathBuf,
}

impl Report {
    pub(crate) fn new(args: &Args, run: &Run, metrics: &GooseMetrics) -> Self {
        let took = run.started.elapsed();
        let seconds = took.as_secs_f64();
        let account = run.account.tally();
        let (verdict, reasons) = judge(&account, args.tolerate_outages);
        let started = OffsetDateTime::from(SystemTime::now() - took);
        Self {
            scenario: args.scenario.name(),
            hosts: run.hosts.bases().to_vec(),
            users: args.users.get(),
            started: started.format(&Rfc3339).unwrap_or_default(),
            seconds,
            verdict,
            reasons,
            requests_per_second: account.requests as f64 / seconds,
            findings: run.account.findings(),
            requests: row::all(metrics, seconds),
            account,
            measured_in: measured_in(args),
        }
    }

    pub(crate) fn is_good(&self) -> bool {
        self.verdict == Verdict::Good
    }

    pub(crate) async fn write(&self, directory: &Path) -> Result<(), LoadError> {
        let file = |ending: &str| directory.join(format!("{}.{ending}", self.scenario));
        let json = file("json");
        let mut text = serde_json::to_string_pretty(self).expect("a report has no odd keys");
        text.push('\n');
        fs::write(&json, text).map_err(|error| LoadError::Report(json.clone(), error))?;
        html::write(self, &self.measured_in, &file("html")).await
    }
}

/// Creates the directory, which must exist when the load library starts.
pub(crate) fn prepare(directory: &Path) -> Result<(), LoadError> {
    fs::create_dir_all(directory).map_err(|error| LoadError::Report(directory.to_owned(), error))
}

/// Returns the path of the load library's measurements file, which is deleted after the HTML report is written.
pub(crate) fn measured_in(args: &Args) -> PathBuf {
    let name = format!(".{}.measured.json", args.scenario.name());
    args.report.join(name)
}
