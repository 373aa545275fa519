//! Suggests the setting whose name is closest to a misspelled name.

/// Minimum similarity of a suggestion, from 0 to 1. Clap uses the same value.
const SIMILARITY_MIN: f64 = 0.7;

pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = |known| strsim::jaro(name, known);
    let alike = known.map(|known| (likeness(known), known));
    let alike = alike.filter(|(likeness, _)| *likeness > SIMILARITY_MIN);
    let best = alike.max_by(|(one, _), (other, _)| one.total_cmp(other));
    best.map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Setting;

    #[test]
    fn misspelt_names_are_near_to_those_that_were_meant() {
        let settings = Setting::all();
        for (name, meant) in [
            ("listne", Some("listen")),
            ("redis", Some("redis_url")),
            ("signing_key_file", Some("signing_keys_file")),
            ("api_key", Some("api_keys")),
            ("max_key", Some("max_keys")),
            ("port", None),
            ("", None),
        ] {
            let names = settings.iter().map(|setting| setting.name);
            assert_eq!(nearest(name, names), meant, "{name}");
        }
    }
}
