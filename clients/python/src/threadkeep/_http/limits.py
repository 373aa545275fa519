CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 100
"""Maximum number of connections in use per event loop. Further calls wait."""
MAX_IDLE_CONNECTIONS = 100
MAX_IDLE_SECONDS = 60.0
"""Less than 75 s, after which the server closes an idle connection."""
RECEIVE_BYTES = 65_536
MAX_UNREAD_BYTES = 262_144
"""Number of unread bytes after which the client stops receiving a stream, so that the server waits."""
