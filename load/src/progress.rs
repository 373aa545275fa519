use std::sync::Arc;
use std::time::Duration;

use crate::run::Run;

const PERIOD: Duration = Duration::from_secs(2);

/// Prints a line every two seconds until the future is dropped.
pub(crate) async fn show(run: Arc<Run>) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.tick().await;
    let mut before = 0;
    loop {
        ticks.tick().await;
        let tally = run.account.tally();
        let rate = (tally.requests - before) / PERIOD.as_secs();
        before = tally.requests;
        eprintln!(
            "{:>5} s  {} requests, {rate}/s  {} unanswered  {} pushes acknowledged, {} verified  \
             {} faults",
            run.started.elapsed().as_secs(),
            tally.requests,
            tally.all_unanswered(),
            tally.pushes.acknowledged,
            tally.pushes.verified,
            tally.all_findings(),
        );
    }
}
