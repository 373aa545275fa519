use std::sync::Arc;
use std::time::Duration;

use goose::GooseAttack;
use goose::client::GooseClientBuilder;
use goose::config::GooseConfiguration;
use goose::goose::Scenario;
use goose::metrics::GooseMetrics;

use crate::agent::scenario;
use crate::args::{Args, Choice};
use crate::error::LoadError;
use crate::report::measured_in;
use crate::run::Run;
use crate::scenario::{Chat, Hot, Large, Merge, Tools};

pub(crate) async fn run(args: &Args, run: &Arc<Run>) -> Result<GooseMetrics, LoadError> {
    let client = GooseClientBuilder::new()
        .without_cookies()
        .timeout(run.timeout)
        .gzip(false);
    let attack = GooseAttack::initialize_with_config(configuration(args))?
        .set_client_builder_without_cookies(client)?;
    let pause = Duration::from_millis(args.pause_ms);
    let mut attack = attack;
    for scenario in scenarios(args.scenario, run)? {
        // pauses are uniform between 0 and twice the mean
        let scenario = scenario.set_wait_time(Duration::ZERO, pause * 2)?;
        attack = attack.register_scenario(scenario);
    }
    Ok(attack.execute().await?)
}

fn scenarios(choice: Choice, run: &Arc<Run>) -> Result<Vec<Scenario>, LoadError> {
    Ok(match choice {
        Choice::Chat => vec![scenario::<Chat>(run)],
        Choice::Hot => vec![scenario::<Hot>(run)],
        Choice::Merge => vec![scenario::<Merge>(run)],
        Choice::Large => vec![scenario::<Large>(run)],
        Choice::Tools => vec![scenario::<Tools>(run)],
        Choice::Mixed => vec![
            scenario::<Chat>(run).set_weight(4)?,
            scenario::<Hot>(run).set_weight(3)?,
            scenario::<Merge>(run).set_weight(2)?,
            scenario::<Tools>(run).set_weight(2)?,
            scenario::<Large>(run).set_weight(1)?,
        ],
    })
}

/// Configures the load library from `args`, without the library's own argument parser.
fn configuration(args: &Args) -> GooseConfiguration {
    let users = args.users.get();
    let mut configuration = GooseConfiguration::default();
    configuration.host = args.hosts.first().map(ToString::to_string);
    configuration.users = Some(users);
    // starts all users within a second, and also counts the requests sent during that second
    configuration.increase_rate = Some(users.to_string());
    configuration.no_reset_metrics = true;
    configuration.run_time = Some(args.seconds.to_string());
    configuration.report_file = vec![measured_in(args).display().to_string()];
    configuration.report_graph_data = true;
    configuration.no_print_metrics = true;
    // the library's telnet server would listen on a port
    configuration.no_telnet = true;
    configuration.quiet = 1;
    configuration
}
