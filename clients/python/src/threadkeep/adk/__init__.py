"""Session service for Google's Agent Development Kit (ADK)."""

from .._adapter import missing

try:
    import google.adk.sessions  # noqa: F401
except ImportError as error:
    raise missing("adk", error) from error

from .service import ThreadkeepSessionService

__all__ = ["ThreadkeepSessionService"]
