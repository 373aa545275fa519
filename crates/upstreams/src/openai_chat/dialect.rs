//! The differences between OpenAI's own API and compatible servers.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAI or Azure.
    OpenAi,
    Compatible,
}

impl Dialect {
    /// Returns the dialect for a host. A gateway to OpenAI on a different host counts as a compatible server, because
    /// gateways accept the dialect of compatible servers and translate it.
    pub(super) fn of_host(host: &str) -> Self {
        let is_openai = ["openai.com", "azure.com"].into_iter().any(|domain| {
            let prefix = host.strip_suffix(domain);
            prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
        });
        if is_openai {
            Self::OpenAi
        } else {
            Self::Compatible
        }
    }

    /// Returns the name of the field that limits output tokens.
    ///
    /// OpenAI's models since o1 reject `max_tokens` with 400, and all OpenAI models accept `max_completion_tokens`.
    /// Most compatible servers support only `max_tokens`. Some of them ignore the newer name, which leaves the answer
    /// unlimited (llama-cpp-python, issue 1907). Strict servers reject it with "Extra inputs are not permitted".
    pub(super) fn max_tokens(self) -> &'static str {
        match self {
            Self::OpenAi => "max_completion_tokens",
            Self::Compatible => "max_tokens",
        }
    }

    /// Returns whether assistant messages can contain reasoning, which is an extension of compatible servers. Some
    /// models need the reasoning that preceded their earlier calls.
    pub(super) fn has_reasoning(self) -> bool {
        self == Self::Compatible
    }

    /// Returns whether the arguments of earlier calls may be arbitrary text.
    ///
    /// Compatible servers parse the arguments to fill in the model's chat template, and fail on invalid JSON. A single
    /// invalid call would therefore make all later requests in the conversation fail.
    pub(super) fn accepts_any_arguments(self) -> bool {
        self == Self::OpenAi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openai_is_recognized_by_host() {
        for host in [
            "api.openai.com",
            "eu.api.openai.com",
            "a.openai.azure.com",
            "a.services.ai.azure.com",
        ] {
            assert_eq!(Dialect::of_host(host), Dialect::OpenAi, "{host}");
        }
        for host in [
            "127.0.0.1",
            "openrouter.ai",
            "notopenai.com",
            "openai.com.example",
            "",
        ] {
            assert_eq!(Dialect::of_host(host), Dialect::Compatible, "{host}");
        }
    }
}
