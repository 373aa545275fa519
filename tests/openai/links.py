"""A proxy that breaks connections between a request and its answer."""

import socket
import struct
import threading


class CuttingProxy:
    """Forwards connections to a server. `cut_next` resets the next `count` connections when the server starts to answer."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.server = (host, int(port))
        self.cuts = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()

    def cut_next(self, count=1):
        self.cuts = count

    def listen(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(self.server)
            for source, target in [(client, server), (server, client)]:
                threading.Thread(target=self.copy, args=(source, target, source is server), daemon=True).start()

    def copy(self, source, target, is_answer):
        try:
            while data := source.recv(65536):
                if is_answer and self.cuts > 0:
                    self.cuts -= 1
                    # reset the connection instead of closing it
                    target.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()
