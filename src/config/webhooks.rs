use std::collections::HashSet;

use super::{Fault, Given, SettingsError, Values};
use threadkeep_domain::{EventType, EventTypes, is_name};
use threadkeep_webhooks::{Endpoint, EndpointUrl, Secret};

const FORM: &str = "it must be a name, a URL and event types, separated by spaces";

struct Item<'a> {
    name: &'a str,
    url: EndpointUrl,
    types: EventTypes,
}

/// Returns the webhook endpoints with their secrets, and whether their URLs may refer to private IP addresses.
pub(super) fn endpoints(values: &mut Values) -> Result<(Vec<Endpoint>, bool), SettingsError> {
    let allow_private = values
        .take("webhook_allow_private")
        .parse("true or false")?;
    let given = values.take("webhooks");
    let file = values.take("webhook_secrets_file");
    let given_secrets = values.take("webhook_secrets").or_file(file)?;
    let items = items(&given, allow_private)?;
    let mut secrets = secrets(&given_secrets, &items)?;
    let endpoints = items.iter().enumerate().map(|(index, item)| {
        let of_item = secrets.extract_if(.., |(name, _)| *name == item.name);
        let secrets: Vec<_> = of_item.map(|(_, secret)| secret).collect();
        let endpoint = Endpoint::configured(item.name, item.url.clone(), item.types, secrets);
        endpoint.ok_or_else(|| fault(&given, index, "it has no secret in `webhook_secrets`"))
    });
    Ok((endpoints.collect::<Result<_, _>>()?, allow_private))
}

fn items(given: &Given, allow_private: bool) -> Result<Vec<Item<'_>>, SettingsError> {
    let mut names = HashSet::new();
    let mut items = Vec::new();
    for (index, text) in given.items().enumerate() {
        let item = item(text, allow_private).map_err(|rule| fault(given, index, rule))?;
        if !names.insert(item.name) {
            return Err(fault(given, index, "its name is taken by an earlier one"));
        }
        items.push(item);
    }
    Ok(items)
}

fn item(text: &str, allow_private: bool) -> Result<Item<'_>, &'static str> {
    let mut words = text.split_ascii_whitespace();
    let (Some(name), Some(url)) = (words.next(), words.next()) else {
        return Err(FORM);
    };
    if !is_name(name, 64) {
        return Err("its name must be 1 to 64 of A-Z, a-z, 0-9, `.`, `_`, `-`");
    }
    let url: EndpointUrl = url
        .parse()
        .map_err(|_| "its URL must be http or https, with a host and without user or comma")?;
    if url.is_private() && !allow_private {
        return Err("its URL has a private address, and `webhook_allow_private` is false");
    }
    let types: Vec<EventType> = words
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| "it has an unknown event type")?;
    if types.is_empty() {
        return Err(FORM);
    }
    Ok(Item {
        name,
        url,
        types: types.into_iter().collect(),
    })
}

/// Returns all secrets in the configured order, each with the name of its endpoint.
fn secrets<'a>(
    given: &'a Given,
    items: &[Item<'_>],
) -> Result<Vec<(&'a str, Secret)>, SettingsError> {
    let read = |(index, text): (usize, &'a str)| {
        let (name, secret) = text
            .split_once(':')
            .ok_or_else(|| fault(given, index, "it must be `name:whsec_..`"))?;
        if !items.iter().any(|item| item.name == name) {
            return Err(fault(given, index, "no endpoint has its name"));
        }
        let rule = "its secret must be `whsec_` and base64 of 24 to 64 bytes";
        let secret = secret.parse().map_err(|_| fault(given, index, rule))?;
        Ok((name, secret))
    };
    given.items().enumerate().map(read).collect()
}

fn fault(given: &Given, index: usize, rule: &'static str) -> SettingsError {
    let number = index + 1;
    given.refuse(Fault::Key { number, rule })
}
