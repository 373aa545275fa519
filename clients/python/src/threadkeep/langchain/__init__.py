"""Byte store, model answer cache and chat histories for LangChain."""

from .._adapter import missing

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise missing("langchain", error) from error

from .cache import ThreadkeepCache
from .chat_history import ThreadkeepChatMessageHistory
from .stores import ThreadkeepByteStore

__all__ = ["ThreadkeepByteStore", "ThreadkeepCache", "ThreadkeepChatMessageHistory"]
