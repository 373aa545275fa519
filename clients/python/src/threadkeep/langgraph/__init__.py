"""Checkpointer, long-term store and node cache for LangGraph."""

from .._adapter import missing

try:
    import langgraph.cache.base
    import langgraph.checkpoint.base
    import langgraph.store.base  # noqa: F401
except ImportError as error:
    raise missing("langgraph", error) from error

from .cache import ThreadkeepCache
from .saver import ThreadkeepSaver
from .store import ThreadkeepStore

__all__ = ["ThreadkeepCache", "ThreadkeepSaver", "ThreadkeepStore"]
