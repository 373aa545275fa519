use super::request::message;

#[derive(Debug)]
pub(super) enum Content {
    Keys(Vec<(String, String)>),
    Messages(Vec<String>),
}

impl Content {
    pub(super) fn keys(count: usize, value: impl Fn(usize) -> String) -> Self {
        Self::Keys((0..count).map(|n| (key(n), value(n))).collect())
    }

    pub(super) fn messages(count: usize, first: usize) -> Self {
        Self::Messages((first..first + count).map(message).collect())
    }

    pub(super) fn json(&self) -> String {
        match self {
            Self::Keys(keys) => {
                let members = keys
                    .iter()
                    .map(|(key, value)| format!(r#""{key}":{value}"#));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Self::Messages(messages) => format!(r#"{{"messages":[{}]}}"#, messages.join(",")),
        }
    }
}

pub(super) fn key(n: usize) -> String {
    format!("key{n}")
}
