//! Suggests the setting whose name is closest to a misspelled name.

/// Minimum similarity between a name and a suggestion, from 0 to 1. Clap uses the same value for its suggestions.
const SIMILARITY_MIN: f64 = 0.7;

pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let candidates = names.map(|candidate| (strsim::jaro(name, candidate), candidate));
    let candidates = candidates.filter(|(similarity, _)| *similarity > SIMILARITY_MIN);
    let best = candidates.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Setting;

    #[test]
    fn a_misspelled_name_suggests_the_closest_setting() {
        let settings = Setting::all();
        for (name, expected) in [
            ("listne", Some("listen")),
            ("redis", Some("redis_url")),
            ("signing_key_file", Some("signing_keys_file")),
            ("api_key", Some("api_keys")),
            ("max_key", Some("max_keys")),
            ("port", None),
            ("", None),
        ] {
            let names = settings.iter().map(|setting| setting.name);
            assert_eq!(nearest(name, names), expected, "{name}");
        }
    }
}
