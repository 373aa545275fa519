use super::body::{kind_of, string};
use super::fault::Fault;
use threadkeep_domain::{Json, members};

const PAIRS_MAX: usize = 16;
const KEY_MAX_CHARS: usize = 64;
const VALUE_MAX_CHARS: usize = 512;
/// Maximum size of metadata in bytes. A character that is written as two escapes takes 12 bytes. Each pair also has
/// four quotes, a colon and a comma.
pub(super) const MAX_BYTES: u64 =
    (PAIRS_MAX * (12 * (KEY_MAX_CHARS + VALUE_MAX_CHARS) + 6) + 2) as u64;

pub(super) fn read_metadata(object: &str) -> Result<Json, Fault> {
    if !object.starts_with('{') {
        let expected = format!("an object, but got {}", kind_of(object));
        return Err(Fault::wrong_type("metadata", &expected));
    }
    let count = members(object).count();
    if count > PAIRS_MAX {
        let message = format!(
            "Invalid 'metadata': too many properties. Expected an object with at most {PAIRS_MAX} properties, but got \
             an object with {count} properties instead."
        );
        return Err(Fault::new(
            "object_above_max_properties",
            "metadata",
            message,
        ));
    }
    for (key, value) in members(object) {
        check_pair(key, value)?;
    }
    Ok(Json::from_compact(object))
}

fn check_pair(key: &str, value: &str) -> Result<(), Fault> {
    let key: Option<String> = serde_json::from_str(key).ok();
    let Some(key) = key.filter(|key| key.chars().count() <= KEY_MAX_CHARS) else {
        let message = format!("Invalid 'metadata': a key has at most {KEY_MAX_CHARS} characters.");
        return Err(Fault::new("invalid_key", "metadata", message));
    };
    let param = format!("metadata.{key}");
    let length = string(value, &param)?.chars().count();
    if length > VALUE_MAX_CHARS {
        let message = format!(
            "Invalid '{param}': string too long. Expected a string with maximum length {VALUE_MAX_CHARS}, but got a \
             string with length {length} instead."
        );
        return Err(Fault::new("string_above_max_length", param, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn code(object: &str) -> Result<(), (&'static str, String)> {
        let read = read_metadata(object).map(drop);
        read.map_err(|fault| (fault.code, fault.param))
    }

    #[test]
    fn limits_count_characters_not_bytes() {
        let full = |pairs: usize, key: usize, value: usize| {
            let pairs = (0..pairs).map(|pair| {
                let key = format!("{pair:02}{}", "😀".repeat(key - 2));
                (key, json!("😀".repeat(value)))
            });
            json!(pairs.collect::<Map<_, _>>()).to_string()
        };
        let largest = full(16, 64, 512);
        assert_eq!(code(&largest), Ok(()));
        assert!(largest.len() > 36_000);
        let escaped = largest.replace('😀', r"\ud83d\ude00");
        assert_eq!(code(&escaped), Ok(()));
        assert!((escaped.len() as u64) <= MAX_BYTES);

        let (code_of, _) = code(&full(17, 2, 1)).unwrap_err();
        assert_eq!(code_of, "object_above_max_properties");
        let (code_of, param) = code(&full(1, 65, 1)).unwrap_err();
        assert_eq!((code_of, &*param), ("invalid_key", "metadata"));
        let (code_of, param) = code(&full(1, 2, 513)).unwrap_err();
        assert_eq!(
            (code_of, &*param),
            ("string_above_max_length", "metadata.00")
        );
    }

    #[test]
    fn values_must_be_strings() {
        for bad in ["1", "null", "[]", "{}", "true", r#""\ud800""#] {
            let refused = code(&format!(r#"{{"a":{bad}}}"#));
            assert_eq!(refused, Err(("invalid_type", "metadata.a".into())), "{bad}");
        }
        for bad in ["[]", "1", "\"\""] {
            assert_eq!(code(bad), Err(("invalid_type", "metadata".into())), "{bad}");
        }
        assert_eq!(
            code(r#"{"\ud800":""}"#),
            Err(("invalid_key", "metadata".into()))
        );
        assert_eq!(code("{}"), Ok(()));
    }
}
