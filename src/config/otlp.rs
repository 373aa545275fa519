use std::fmt;

use super::{Fault, SettingsError, Values, named_secrets};
use threadkeep_webhooks::EndpointUrl;

#[derive(Clone)]
pub struct TraceSettings {
    pub url: String,
    /// Headers of each export request, with lowercase names. The values are secret.
    pub headers: Vec<(String, String)>,
    /// Share of new traces to record, 0 to 1.
    pub ratio: f64,
}

/// Omits the values of headers.
impl fmt::Debug for TraceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceSettings")
            .field("ratio", &self.ratio)
            .finish_non_exhaustive()
    }
}

pub(super) fn read(values: &mut Values) -> Result<Option<TraceSettings>, SettingsError> {
    let endpoint = values.take("otlp_endpoint");
    let file = values.take("otlp_headers_file");
    let given = values.take("otlp_headers").or_file(file)?;
    let rule = "names and values in visible ASCII, as `name:value,name:value`";
    let mut headers = Vec::new();
    for header in named_secrets(&given)? {
        let is_visible = |byte: u8| (b' '..=b'~').contains(&byte);
        if !header.secret.bytes().all(is_visible) {
            return Err(given.refuse(Fault::Expected(rule)));
        }
        let value = header.secret.trim().to_owned();
        headers.push((header.name.to_ascii_lowercase(), value));
    }
    let sample_ratio = values.take("otlp_sample_ratio");
    let rule = "a number from 0 to 1";
    let ratio: f64 = sample_ratio.parse(rule)?;
    if !(0.0..=1.0).contains(&ratio) {
        return Err(sample_ratio.refuse(Fault::Expected(rule)));
    }
    let Some(text) = endpoint.filled() else {
        return Ok(None);
    };
    let url: EndpointUrl = text
        .parse()
        .map_err(|_| endpoint.refuse(Fault::Expected(RULE)))?;
    if text.contains(['?', '#']) {
        return Err(endpoint.refuse(Fault::Expected(RULE)));
    }
    Ok(Some(TraceSettings {
        url: format!("{}/v1/traces", url.as_str().trim_end_matches('/')),
        headers,
        ratio,
    }))
}

const RULE: &str =
    "a URL such as http://collector:4318, without a user, password, query or fragment";
