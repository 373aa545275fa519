"""HTTP/1.1 over the standard library's sockets, which takes a fraction of the time of a general client."""
