"""A proxy before an HTTP server that answers some calls itself, cuts them, loses their answers, or never answers."""

import contextlib
import select
import socket
import threading

# The faults of a call; the server gets the call only in the last two.
FAULTS = ["429", "500", "503", "refused", "lost", "cut"]


class FaultyProxy:
    """@param listener a listening socket
    @param connect opens a connection to the server
    @param fault   is called for each call (method, target), under a lock, and returns one of FAULTS, "never", or None"""

    def __init__(self, listener: socket.socket, connect, fault):
        self.listener, self.connect, self.fault = listener, connect, fault
        self.lock, self.asked, self.faults = threading.Lock(), [], []
        self.open, self.ended = set(), threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def end(self):
        self.ended.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            for each in self.open:
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def accept(self):
        while not self.ended.is_set():
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket):
        with self.lock:
            self.open.add(client)
        try:
            with contextlib.suppress(OSError, ValueError):
                self.answer(client)
        finally:
            with self.lock:
                self.open.discard(client)
            client.close()

    def answer(self, client: socket.socket):
        request = b""
        while b"\r\n\r\n" not in request:
            more = client.recv(65536)
            if not more:
                return
            request += more
        method, target = request.split(b" ", 2)[:2]
        with self.lock:
            fault = self.fault(method.decode(), target.decode())
            self.asked.append(f"{method.decode()} {target.decode()}")
            if fault:
                self.faults.append(fault)
        if fault == "never":
            self.ended.wait()
            return
        if fault == "refused":
            return
        if fault in ("429", "500", "503"):
            text = b'{"message": "not now", "code": %s, "kind": "Status"}' % fault.encode()
            client.sendall(b"HTTP/1.1 %s Not Now\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                           % (fault.encode(), len(text), text))
            with contextlib.suppress(OSError):  # The rest of the request is read: closing before that would reset the connection, and the answer would be lost.
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
            return
        server = self.connect()
        with self.lock:
            self.open.add(server)
        try:
            head, body = request.split(b"\r\n", 1)
            server.sendall(head + b"\r\nConnection: close\r\n" + body)
            self.pass_on(client, server, fault)
        finally:
            with self.lock:
                self.open.discard(server)
            server.close()

    def pass_on(self, client: socket.socket, server: socket.socket, fault: str | None):
        """Passes bytes on in both directions until the server closes its connection. Passes on nothing of a lost answer, and half of the first part of a cut
        one."""
        ways = {client: server, server: client}
        while ways:
            pending = [each for each in ways if hasattr(each, "pending") and each.pending()]
            for ready in pending or select.select(list(ways), [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    if ready is server:
                        return
                    del ways[client]
                    if not hasattr(server, "pending"):
                        with contextlib.suppress(OSError):
                            server.shutdown(socket.SHUT_WR)
                    continue
                if ready is server and fault == "lost":
                    return
                if ready is server and fault == "cut":
                    client.sendall(data[:len(data) // 2])
                    return
                ways[ready].sendall(data)


def chosen(random, share: float = 0.3, never: float = 0.02, answered=lambda method, target: False):
    """Returns a function for FaultyProxy that gives this share of the calls a fault, and never answers the share `never`. The latter spares the calls for which
    `answered` is true."""
    def fault(method: str, target: str):
        if random.random() < never and not answered(method, target):
            return "never"
        return random.choice(FAULTS) if random.random() < share else None

    return fault
