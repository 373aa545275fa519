//! Recognizes the paths below `/v1` that belong to `OpenAI`'s API. `OpenAI`'s clients use `/v1` as their base URL.

/// First segments of the paths that `OpenAI`'s clients use. Unknown paths below these segments are rejected in the
/// clients' error format. `threads` is not included, because `/v1/threads` belongs to this server's own API.
const ROOTS: [&str; 25] = [
    "assistants",
    "audio",
    "batches",
    "chat",
    "chatkit",
    "completions",
    "containers",
    "conversations",
    "edits",
    "embeddings",
    "engines",
    "evals",
    "files",
    "fine_tuning",
    "images",
    "models",
    "moderations",
    "organization",
    "projects",
    "realtime",
    "responses",
    "skills",
    "uploads",
    "vector_stores",
    "videos",
];

pub fn is_openai_path(path: &str) -> bool {
    let below = path.strip_prefix("/v1/");
    let root = below.and_then(|below| below.split('/').next());
    root.is_some_and(|root| ROOTS.binary_search(&root).is_ok())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::openapi_json;

    #[test]
    fn exactly_the_paths_tagged_openai_belong_to_openai() {
        let document: Value = serde_json::from_str(openapi_json()).unwrap();

        for (path, item) in document["paths"].as_object().unwrap() {
            let mut operations = item.as_object().unwrap().values();
            let is_tagged = operations.all(|operation| operation["tags"] == json!(["openai"]));
            assert_eq!(is_openai_path(path), is_tagged, "{path}");
        }
    }

    #[test]
    fn a_root_matches_only_a_complete_path_segment() {
        assert!(ROOTS.is_sorted());
        for path in ["/v1/models", "/v1/chat/completions", "/v1/conversations/"] {
            assert!(is_openai_path(path), "{path}");
        }
        for path in [
            "/v1",
            "/v1/",
            "/v1/modelsx",
            "/models",
            "/v1//models",
            "/v1/threads",
        ] {
            assert!(!is_openai_path(path), "{path}");
        }
    }
}
