//! The export of spans that the settings ask for.

use prometheus_client::registry::Registry;

use crate::config::TraceSettings;
use threadkeep_trace::Tracer;

/// Sends the last spans when the server stops, if it sends any.
#[derive(Debug)]
pub(super) struct Traces(#[cfg(feature = "otel")] Option<crate::telemetry::Exporter>);

impl Traces {
    /// Starts the export, if there is a collector, and adds its metrics to a registry. `replica` tells the spans of this process from those of others.
    #[cfg(feature = "otel")]
    pub(super) fn start(
        settings: Option<&TraceSettings>,
        replica: &str,
        registry: &mut Registry,
    ) -> (Option<Tracer>, Self) {
        use crate::telemetry::{Collector, Exporter, SpanCounts, register_spans};

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

    /// Sends nothing: the settings already reject a collector, with a better message.
    #[cfg(not(feature = "otel"))]
    pub(super) fn start(
        _: Option<&TraceSettings>,
        _: &str,
        _: &mut Registry,
    ) -> (Option<Tracer>, Self) {
        (None, Self())
    }

    /// Sends the last spans, for up to five seconds.
    #[cfg_attr(
        not(feature = "otel"),
        expect(clippy::unused_async, reason = "there is nothing to wait for")
    )]
    pub(super) async fn shutdown(self) {
        #[cfg(feature = "otel")]
        if let Some(exporter) = self.0 {
            exporter.shutdown().await;
        }
    }
}
