use std::time::Duration;

use super::{Fault, Given, SettingsError, UpstreamKind, UpstreamSetting, Values, is_model, url_of};
use threadkeep_online::{FetchSettings, PrivateHost, SearchKind, SearchSettings};

const SEARCH_FORM: &str = "a kind and a URL, separated by a space; the kinds are brave, searxng and tavily, and the URL is http or https, with a host and without user, query and fragment";
const IMAGES_FORM: &str = "an upstream of `upstreams` whose kind is not anthropic, and the name of one of its models, separated by a space";

/// Settings of model tools that call other servers. A tool without settings is unavailable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OnlineSettings {
    pub search: Option<SearchSettings>,
    pub fetch: Option<FetchSettings>,
    pub images: Option<ImagesSetting>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagesSetting {
    /// Name of an upstream in [`ModelSettings::upstreams`](super::ModelSettings::upstreams).
    pub upstream: String,
    /// Name of the model at the upstream: 1 to 128 visible ASCII characters.
    pub model: String,
}

pub(super) fn read(
    values: &mut Values,
    upstreams: &[UpstreamSetting],
) -> Result<OnlineSettings, SettingsError> {
    Ok(OnlineSettings {
        search: search(values)?,
        fetch: fetch(values)?,
        images: images(&values.take("images"), upstreams)?,
    })
}

fn search(values: &mut Values) -> Result<Option<SearchSettings>, SettingsError> {
    let given = values.take("web_search");
    let file = values.take("web_search_key_file");
    let key = values.take("web_search_key").or_file(file)?;
    let Some(text) = given.filled() else {
        return match key.filled() {
            Some(_) => Err(given.refuse(Fault::Needed("with `web_search_key`"))),
            None => Ok(None),
        };
    };
    let form = || given.refuse(Fault::Expected(SEARCH_FORM));
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let [kind, url] = words[..] else {
        return Err(form());
    };
    let mut kinds = SearchKind::ALL.into_iter();
    let kind = kinds.find(|candidate| candidate.as_str() == kind);
    let kind = kind.ok_or_else(form)?;
    let url = url_of(url).map_err(|_| form())?;
    let url = url.parse().map_err(|_| form())?;
    let needed = "for `web_search` of the kinds brave and tavily";
    match (kind.has_key(), key.filled()) {
        (true, None) => return Err(key.refuse(Fault::Needed(needed))),
        (false, Some(_)) => {
            let rule = "empty, as `web_search` is of the kind searxng, which takes no key";
            return Err(key.refuse(Fault::Expected(rule)));
        }
        _ => {}
    }
    let rule = "visible ASCII without spaces, as it is sent in a header";
    let key_of = |text: &str| text.parse().map_err(|_| key.refuse(Fault::Expected(rule)));
    Ok(Some(SearchSettings {
        kind,
        url,
        key: key.filled().map(key_of).transpose()?,
    }))
}

fn fetch(values: &mut Values) -> Result<Option<FetchSettings>, SettingsError> {
    let is_on: bool = values.take("web_fetch").parse("true or false")?;
    let given = values.take("web_fetch_private_hosts");
    let private_hosts = given.items().enumerate().map(|(index, text)| {
        let number = index + 1;
        let rule = "it must be `host:port`, without a scheme and a path";
        let host = text.parse::<PrivateHost>();
        host.map_err(|_| given.refuse(Fault::Item { number, rule }))
    });
    let private_hosts = private_hosts.collect::<Result<Vec<_>, _>>()?;
    let rule = "a number of bytes, 1024 to 16777216";
    let max_bytes = values.take("web_fetch_max_bytes");
    let max_bytes = max_bytes.within(1_024..=16_777_216, rule)?;
    let rule = "a number of milliseconds, 100 to 120000";
    let timeout_ms = values.take("web_fetch_timeout_ms");
    let timeout_ms = timeout_ms.within(100..=120_000, rule)?;
    if !is_on && !private_hosts.is_empty() {
        let rule = "empty, as `web_fetch` is false";
        return Err(given.refuse(Fault::Expected(rule)));
    }
    Ok(is_on.then_some(FetchSettings {
        private_hosts,
        max_bytes: max_bytes as usize,
        timeout: Duration::from_millis(timeout_ms),
    }))
}

fn images(
    given: &Given,
    upstreams: &[UpstreamSetting],
) -> Result<Option<ImagesSetting>, SettingsError> {
    let Some(text) = given.filled() else {
        return Ok(None);
    };
    let words: Vec<_> = text.split_ascii_whitespace().collect();
    let has_images = |name| {
        let mut named = upstreams.iter().filter(|upstream| upstream.name == name);
        named.any(|upstream| upstream.kind != UpstreamKind::Anthropic)
    };
    match words[..] {
        [upstream, model] if is_model(model) && has_images(upstream) => Ok(Some(ImagesSetting {
            upstream: upstream.into(),
            model: model.into(),
        })),
        _ => Err(given.refuse(Fault::Expected(IMAGES_FORM))),
    }
}
