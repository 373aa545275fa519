use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use super::mask::mask;
use super::{Fault, Given, OnlineSettings, SettingsError, Values, Warning, named_secrets, online};
use threadkeep_domain::{ResponseLimits, TTL_MAX, TTL_MIN, is_name};
use threadkeep_identity::ApiKeys;
use threadkeep_upstreams::{UpstreamUrl, UpstreamUrlError};

const UPSTREAM_FORM: &str = "it must be a name, a kind and a URL, separated by spaces";
const MODEL_FORM: &str = "it must be a name, an upstream and, if it differs, the upstream's name for it, separated by spaces";
const TAKEN: &str = "its name is taken by an earlier one";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    pub upstreams: Vec<UpstreamSetting>,
    /// At least one model. The first model whose pattern matches the requested name is used.
    pub models: Vec<ModelSetting>,
    /// Time limit for the complete answer of a model.
    pub upstream_timeout: Duration,
    /// Maximum number of retries for a request to an upstream, 0 to 10.
    pub upstream_retries: u32,
    /// Token limit (1 to 1,000,000) to send if an upstream requires a limit and the request does not specify one.
    pub upstream_max_output_tokens: u64,
    pub limits: ResponseLimits,
    pub online: OnlineSettings,
}

/// A service that provides models. The `Debug` output omits the key and the path of the URL.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamSetting {
    /// Name in the settings: 1 to 64 characters of `A-Za-z0-9._-`.
    pub name: String,
    pub kind: UpstreamKind,
    /// Base URL of the API: http or https, with a host, but no credentials, query, fragment or trailing slash.
    pub url: String,
    /// API key, in visible ASCII. Without a key, requests are sent without credentials.
    pub key: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamKind {
    /// OpenAI's Chat Completions, which many services implement.
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSetting {
    /// Name that clients request: 1 to 128 visible ASCII characters without a comma. A trailing `*` matches any text.
    pub pattern: String,
    /// Name of an upstream in [`ModelSettings::upstreams`].
    pub upstream: String,
    /// Model name to send upstream: 1 to 128 visible ASCII characters without a comma or `*`. `None` sends the
    /// requested name, and is required if `pattern` ends in `*`.
    pub upstream_model: Option<String>,
}

impl UpstreamKind {
    const ALL: [Self; 3] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
        }
    }
}

impl fmt::Debug for UpstreamSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamSetting")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("url", &mask("upstreams", &self.url))
            .finish_non_exhaustive()
    }
}

/// Reads the settings, and checks them even if no models are configured.
pub(super) fn read(
    values: &mut Values,
    api_keys: &ApiKeys,
    warnings: &mut Vec<Warning>,
) -> Result<Option<ModelSettings>, SettingsError> {
    let mut upstreams = upstreams(&values.take("upstreams"))?;
    let file = values.take("upstream_keys_file");
    let keys = values.take("upstream_keys").or_file(file)?;
    assign_keys(&mut upstreams, &keys)?;
    let models = models(&values.take("models"), &upstreams)?;
    let rule = "a number of milliseconds, 100 to 3600000";
    let timeout_ms = values
        .take("upstream_timeout_ms")
        .within(100..=3_600_000, rule)?;
    let retries = values
        .take("upstream_retries")
        .within(0..=10, "a number of retries, 0 to 10")?;
    let rule = "a number of tokens, 1 to 1000000";
    let max_output_tokens = values
        .take("upstream_max_output_tokens")
        .within(1..=1_000_000, rule)?;
    let limits = limits(values)?;
    let online = online::read(values, &upstreams)?;
    if models.is_empty() {
        return Ok(None);
    }
    if api_keys.is_empty() {
        warnings.push(Warning::ModelsWithoutApiKey);
    }
    Ok(Some(ModelSettings {
        upstreams,
        models,
        upstream_timeout: Duration::from_millis(timeout_ms),
        upstream_retries: retries as u32,
        upstream_max_output_tokens: max_output_tokens,
        limits,
        online,
    }))
}

fn upstreams(given: &Given) -> Result<Vec<UpstreamSetting>, SettingsError> {
    let mut names = HashSet::new();
    let read = |(index, text)| {
        let upstream = upstream(text).map_err(|rule| fault(given, index, rule))?;
        if !names.insert(upstream.name.clone()) {
            return Err(fault(given, index, TAKEN));
        }
        Ok(upstream)
    };
    given.items().enumerate().map(read).collect()
}

fn upstream(text: &str) -> Result<UpstreamSetting, &'static str> {
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let [name, kind, url] = words[..] else {
        return Err(UPSTREAM_FORM);
    };
    if !is_name(name, 64) {
        return Err("its name must be 1 to 64 of A-Z, a-z, 0-9, `.`, `_`, `-`");
    }
    let mut kinds = UpstreamKind::ALL.into_iter();
    Ok(UpstreamSetting {
        name: name.into(),
        kind: kinds
            .find(|candidate| candidate.as_str() == kind)
            .ok_or("its kind must be openai-chat, openai-responses or anthropic")?,
        url: url_of(url)?,
        key: None,
    })
}

/// Checks a URL, and removes the trailing slash.
pub(super) fn url_of(text: &str) -> Result<String, &'static str> {
    const RULE: &str = "its URL must be http or https, with a host and without query and fragment";
    match text.parse::<UpstreamUrl>() {
        Ok(_) => {}
        Err(UpstreamUrlError::Credentials) => {
            return Err("its URL has a user or password; set its key in `upstream_keys` instead");
        }
        Err(_) => return Err(RULE),
    }
    // the URL parser silently accepts other schemes, backslashes and control characters
    let has_scheme = text.starts_with("http://") || text.starts_with("https://");
    let is_forbidden = |char: char| char.is_whitespace() || char.is_control();
    if !has_scheme || text.contains(['?', '#', '\\']) || text.contains(is_forbidden) {
        return Err(RULE);
    }
    Ok(text.strip_suffix('/').unwrap_or(text).into())
}

fn assign_keys(upstreams: &mut [UpstreamSetting], given: &Given) -> Result<(), SettingsError> {
    for (index, key) in named_secrets(given)?.into_iter().enumerate() {
        let fault = |rule| {
            let number = index + 1;
            given.refuse(Fault::Key { number, rule })
        };
        if !is_visible(key.secret) {
            return Err(fault(
                "its secret must be visible ASCII, as it is sent in a header",
            ));
        }
        let mut upstreams = upstreams.iter_mut();
        let upstream = upstreams.find(|upstream| upstream.name == key.name);
        let upstream = upstream.ok_or_else(|| fault("no upstream has its name"))?;
        upstream.key = Some(key.secret.into());
    }
    Ok(())
}

fn models(
    given: &Given,
    upstreams: &[UpstreamSetting],
) -> Result<Vec<ModelSetting>, SettingsError> {
    let mut patterns = HashSet::new();
    let read = |(index, text)| {
        let model = model(text).map_err(|rule| fault(given, index, rule))?;
        let mut names = upstreams.iter().map(|upstream| &upstream.name);
        if !names.any(|name| *name == model.upstream) {
            return Err(fault(given, index, "its upstream is not in `upstreams`"));
        }
        if !patterns.insert(model.pattern.clone()) {
            return Err(fault(given, index, TAKEN));
        }
        Ok(model)
    };
    given.items().enumerate().map(read).collect()
}

fn model(text: &str) -> Result<ModelSetting, &'static str> {
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let (pattern, upstream, upstream_model) = match words[..] {
        [pattern, upstream] => (pattern, upstream, None),
        [pattern, upstream, upstream_model] => (pattern, upstream, Some(upstream_model)),
        _ => return Err(MODEL_FORM),
    };
    if !is_model(pattern) || !upstream_model.is_none_or(is_model) {
        return Err("its names must be 1 to 128 characters of visible ASCII");
    }
    match (pattern.find('*'), upstream_model) {
        (Some(at), _) if at + 1 < pattern.len() => return Err("`*` may only end its name"),
        (Some(_), Some(_)) => {
            return Err("its name ends in `*`, so it cannot have a different name at the upstream");
        }
        (None, Some(name)) if name.contains('*') => {
            return Err("its name at the upstream contains `*`");
        }
        _ => {}
    }
    Ok(ModelSetting {
        pattern: pattern.into(),
        upstream: upstream.into(),
        upstream_model: upstream_model.map(Into::into),
    })
}

pub(super) fn is_model(name: &str) -> bool {
    name.len() <= 128 && is_visible(name)
}

fn limits(values: &mut Values) -> Result<ResponseLimits, SettingsError> {
    let mut within = |name, range, rule| values.take(name).within(range, rule);
    let day = 1..=86_400;
    let seconds = "a number of seconds, 1 to 86400";
    let max_steps = within(
        "response_max_steps",
        1..=1_000,
        "a number of steps, 1 to 1000",
    )?;
    let rule = "a number of calls, 1 to 10000";
    let max_tool_calls = within("response_max_tool_calls", 1..=10_000, rule)?;
    let max_time = within("response_max_seconds", day.clone(), seconds)?;
    let rule = "a number of bytes, 1024 to 8388608";
    let max_bytes = within("response_max_bytes", 1_024..=8_388_608, rule)?;
    let rule = "a number of responses, 1 to 65536";
    let responses_max = within("responses_max", 1..=65_536, rule)?;
    let rule = "a number of milliseconds, 1000 to 600000";
    let lease_ms = within("response_lease_ms", 1_000..=600_000, rule)?;
    let resume = within("response_resume_seconds", day, seconds)?;
    let window = within(
        "model_window_exchanges",
        0..=10_000,
        "a number of exchanges, 0 to 10000",
    )?;
    let ttl = TTL_MIN.as_secs()..=TTL_MAX.as_secs();
    let rule = "a number of seconds, 60 to 946080000";
    let response_ttl = within("response_ttl_seconds", ttl, rule)?;
    Ok(ResponseLimits {
        max_steps: max_steps as u32,
        max_tool_calls: max_tool_calls as u32,
        max_time: Duration::from_secs(max_time),
        max_bytes,
        lease: Duration::from_millis(lease_ms),
        resume: Duration::from_secs(resume),
        window: window as u32,
        response_ttl: Duration::from_secs(response_ttl),
        responses_max: responses_max as usize,
    })
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn fault(given: &Given, index: usize, rule: &'static str) -> SettingsError {
    let number = index + 1;
    given.refuse(Fault::Item { number, rule })
}
