"""Sessions for the OpenAI Agents SDK."""

from .._adapter import missing

try:
    import agents  # noqa: F401
except ImportError as error:
    raise missing("openai-agents", error) from error

from .session import ThreadkeepSession

__all__ = ["ThreadkeepSession"]
