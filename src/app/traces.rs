use prometheus_client::registry::Registry;

use crate::config::TraceSettings;
use crate::telemetry::{Collector, Exporter, SpanCounts, register_spans};
use threadkeep_trace::Tracer;

#[derive(Debug)]
pub(super) struct Traces(Option<Exporter>);

impl Traces {
    /// Starts to export spans if a collector is configured, and registers metrics about the export. `replica`
    /// identifies this process in its spans.
    pub(super) fn start(
        settings: Option<&TraceSettings>,
        replica: &str,
        registry: &mut Registry,
    ) -> (Option<Tracer>, Self) {
        let collector = settings.and_then(|settings| {
            let headers = settings
                .headers
                .iter()
                .map(|(name, value)| (&**name, &**value));
            Collector::new(&settings.url, headers, settings.ratio)
        });
        let started = collector.map(|collector| Exporter::start(collector, replica.to_owned()));
        let (tracer, exporter) = started.unzip();
        let counts = exporter
            .as_ref()
            .map_or_else(SpanCounts::default, Exporter::counts);
        register_spans(registry, counts);
        (tracer, Self(exporter))
    }

    pub(super) async fn shutdown(self) {
        if let Some(exporter) = self.0 {
            exporter.shutdown().await;
        }
    }
}
