"""HTTP/1.1 over sockets of the standard library, for a fraction of the time that a general client takes."""
