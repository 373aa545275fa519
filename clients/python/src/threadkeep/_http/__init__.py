"""HTTP/1.1 over the standard library's sockets. Much faster than a general HTTP client."""
