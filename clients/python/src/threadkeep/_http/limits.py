CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 100
"""Maximum in use at once per event loop. Further calls wait."""
MAX_IDLE_CONNECTIONS = 100
MAX_IDLE_SECONDS = 60.0
"""The server closes a connection after 75 s without a request."""
RECEIVE_BYTES = 65_536
MAX_UNREAD_BYTES = 262_144
"""Unread bytes of a stream at which receiving pauses, so that the server waits."""
