//! The differences between OpenAI's own API and compatible servers.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAI or Azure.
    OpenAi,
    Compatible,
}

impl Dialect {
    /// Returns the dialect of a host. A gateway to OpenAI at another host is a compatible server, because gateways
    /// translate.
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

    /// The name of the token limit.
    ///
    /// OpenAI's models since o1 reject `max_tokens` with 400, and all of them accept the newer name. Most compatible servers
    /// only know the older one: some ignore the newer one, so that nothing limits the answer (llama-cpp-python, issue 1907),
    /// and strict ones answer "Extra inputs are not permitted".
    pub(super) fn max_tokens(self) -> &'static str {
        match self {
            Self::OpenAi => "max_completion_tokens",
            Self::Compatible => "max_tokens",
        }
    }

    /// Returns whether messages of the assistant have a field for reasoning, an extension of compatible servers. Some of
    /// their models need their reasoning between the calls of a response.
    pub(super) fn has_reasoning(self) -> bool {
        self == Self::Compatible
    }

    /// Returns whether the arguments of earlier calls may be any text.
    ///
    /// Compatible servers parse them for their models' templates and fail on invalid JSON, so one mistake of a model would
    /// end its conversation.
    pub(super) fn takes_any_arguments(self) -> bool {
        self == Self::OpenAi
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openai_is_known_by_its_hosts() {
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
