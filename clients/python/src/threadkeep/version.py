"""The version of this package, which is that of the server."""

__version__ = "0.1.0"
