//! Numbers that are kept elsewhere, as series of a family.

use std::fmt;

use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Shows a number that only grows, with these labels.
pub(super) fn total(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    number: u64,
) -> Result<(), fmt::Error> {
    let family = family.encode_family(labels)?;
    ConstCounter::new(number).encode(family)
}

/// Shows a number that goes up and down, with these labels.
pub(super) fn level(
    family: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    number: u64,
) -> Result<(), fmt::Error> {
    let family = family.encode_family(labels)?;
    ConstGauge::new(number).encode(family)
}
