//! The differences between OpenAI's own API and compatible servers.

/// A variant of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAI itself, or Azure.
    OpenAi,
    /// A compatible server.
    Compatible,
}

impl Dialect {
    /// The dialect of a host. A gateway to OpenAI at another host is a compatible server, as gateways translate.
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

    /// The name of the limit of tokens.
    ///
    /// OpenAI's models since o1 answer 400 to `max_tokens`, and all of its models know the newer name. Most compatible
    /// servers know the older one only: some ignore the newer one, so that nothing limits the answer (llama-cpp-python,
    /// issue 1907), and strict ones answer "Extra inputs are not permitted".
    pub(super) fn max_tokens(self) -> &'static str {
        match self {
            Self::OpenAi => "max_completion_tokens",
            Self::Compatible => "max_tokens",
        }
    }

    /// Whether messages of the assistant have a field for reasoning: an extension of compatible servers, some of whose
    /// models need their reasoning between the calls of a response.
    pub(super) fn has_reasoning(self) -> bool {
        self == Self::Compatible
    }

    /// Whether the arguments of earlier calls may be any text. Compatible servers parse them for the templates of their
    /// models and fail on text that is not JSON, so one mistake of a model would end its conversation.
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
