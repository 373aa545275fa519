"""Conversation store for Pydantic AI."""

from .._adapter import missing

try:
    import pydantic_ai.conversation_store  # noqa: F401
except ImportError as error:
    raise missing("pydantic-ai", error) from error

from .store import ThreadkeepConversationStore

__all__ = ["ThreadkeepConversationStore"]
