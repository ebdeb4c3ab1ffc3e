"""A server of files that pods can reach, and that counts the requests of each program."""

import collections
import hashlib
import http.server
import re
import threading

import support_cluster  # noqa: F401  puts tests/e2e on the path
from support_s3 import S3

POD = "pipe-stager"  # The User-Agent of the stager, which fetches inputs in a step's pod; that of the driver is `pipe`.
HOST = re.search("//(.*):", S3["PLAIN"])[1] if S3 else ""  # An address of this machine that pods can reach.


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server, agent = self.server, self.headers.get("User-Agent", "")
        with server.lock:
            server.asked[(agent, self.path)] += 1
            trouble = server.trouble(agent, self.path)
        server.hold(agent, self.path)
        if trouble == "cut":
            self.close_connection = True
            return
        content = server.content.get(self.path)
        status = trouble or (404 if content is None else 200)
        body, headers = content or b"", {"ETag": '"' + hashlib.sha256(content or b"").hexdigest() + '"'}
        given = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if status >= 300:
            body = b""
        elif given and body:
            begin, end = int(given[1]), min(int(given[2]) + 1, len(body))
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(body)}"
            status, body = 206, body[begin:end]
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """Serves `content`, files by their paths. `trouble(agent, path)` returns a status to answer with, "cut" to close the connection, or None to serve the file.
    `asked` counts the requests by User-Agent and path."""

    daemon_threads = True

    def __init__(self, host: str, content: dict, trouble=lambda agent, path: None):
        self.content, self.trouble, self.asked, self.lock = content, trouble, collections.Counter(), threading.Lock()
        self.hold = lambda agent, path: None  # Is called before each response; a test may wait in it.
        super().__init__((host, 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path: str) -> str:
        return f"http://{self.server_address[0]}:{self.server_port}{path}"

    def by(self, agent: str) -> int:
        """Returns how many requests a program has sent."""
        return sum(count for (who, _), count in self.asked.items() if who == agent)

    def handle_error(self, request, client_address):
        pass  # Connections that were cut would be reported.


class Served:
    """A mixin before a test."""

    def server(self, content: dict, host: str = HOST, **more) -> Server:
        made = Server(host, content, **more)
        self.addCleanup(made.server_close)
        self.addCleanup(made.shutdown)
        return made
