"""A slow link to an HTTP server that is cut again and again, and whose server is busy at times: for measuring transfers over it."""

import random
import re
import socket
import threading
import time

PIECE = 64 << 10


class BadLink:
    """Forwards each request by a connection of its own. Both directions share the rate, in bytes a second; all connections are cut whenever another
    `cut_every` bytes have passed, up to `cuts` times; a share of the requests is answered with 503."""

    def __init__(self, server: tuple[str, int], rate: float, cut_every: int = 0, cuts: int = 0, busy: float = 0):
        self.server, self.rate, self.cut_every, self.cuts, self.busy = server, rate, cut_every, cuts, busy
        self.passed = self.refused = self.done_cuts = 0
        self.lock, self.open, self.free_at = threading.Lock(), set(), time.monotonic()
        self.random = random.Random(1)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def close(self) -> None:
        self.listener.close()
        self.cut()

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        with self.lock:
            self.open.add(client)
            is_busy = self.random.random() < self.busy
        server = None
        try:
            request = b""
            while b"\r\n\r\n" not in request:
                piece = self.take(client)
                if not piece:
                    return
                request += piece
            if is_busy:
                return self.refuse(client)
            server = socket.create_connection(self.server)
            with self.lock:
                self.open.add(server)
            head, body = request.split(b"\r\n\r\n", 1)
            head = re.sub(rb"(?i)\r\n(connection|host):[^\r]*", b"", head)
            server.sendall(head + b"\r\nHost: %s:%d\r\nConnection: close\r\n\r\n" % (self.server[0].encode(), self.server[1]) + body)
            threading.Thread(target=self.pump, args=(client, server), daemon=True).start()
            self.pump(server, client)
        except OSError:
            pass
        finally:
            for each in (client, server):
                if each:
                    self.end(each)

    def refuse(self, client: socket.socket) -> None:
        with self.lock:
            self.refused += 1
        client.sendall(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 37\r\nConnection: close\r\n\r\n<Error><Code>SlowDown</Code></Error>\r\n")
        client.shutdown(socket.SHUT_WR)
        client.settimeout(1)
        while self.take(client):  # what was on its way already
            pass

    def take(self, sender: socket.socket) -> bytes:
        """Receives a piece at the rate of the link, and cuts all connections if it is time for that."""
        piece = sender.recv(PIECE)
        with self.lock:
            self.passed += len(piece)
            is_cut = self.done_cuts < self.cuts and self.passed >= (self.done_cuts + 1) * self.cut_every
            self.done_cuts += is_cut
            begin = max(self.free_at, time.monotonic())
            self.free_at = begin + len(piece) / self.rate
        if is_cut:
            self.cut()
        time.sleep(max(0.0, begin - time.monotonic()))
        return piece

    def pump(self, sender: socket.socket, receiver: socket.socket) -> None:
        try:
            while piece := self.take(sender):
                receiver.sendall(piece)
            receiver.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self) -> None:
        with self.lock:
            every = list(self.open)
        for each in every:
            self.end(each)

    def end(self, each: socket.socket) -> None:
        with self.lock:
            self.open.discard(each)
        try:
            each.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        each.close()
