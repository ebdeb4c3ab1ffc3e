"""An HTTP server of one content. Tests choose whether it has ranges and ETags, whether it cuts connections, and how it fails."""

import dataclasses
import hashlib
import http.client
import http.server
import threading


@dataclasses.dataclass
class Request:
    """A request; `begin` and `end` are the bytes of the content that it asked for, `end` excluded."""

    method: str
    path: str
    begin: int
    end: int
    headers: http.client.HTTPMessage


class Server(http.server.ThreadingHTTPServer):
    """Serves `content` at /data.csv and below /many/; /moved redirects to it. Members that tests set:
    `cut`: a longer response ends after this many bytes (0: never). `broken`: this many requests are answered with `status`. `ranges`, `etags`, `dates`,
    `heads`, `lengths`: whether the server has them. `wrong_ranges`: responses name a range that was not asked for. `retry_after`: the header's value."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, content: bytes):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.cut, self.broken, self.status, self.ranges, self.wrong_ranges = content, 0, 0, 503, True, False
        self.etags, self.dates, self.heads, self.lengths, self.retry_after = True, False, True, True, None
        self.on_request = lambda request: None
        self.requests: list[Request] = []
        self.lock, self.at_once, self.most_at_once = threading.Lock(), 0, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, path: str = "data.csv") -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"

    def gets(self) -> list[Request]:
        return [request for request in self.requests if request.method == "GET"]

    def handle_error(self, request, client_address):
        pass  # Connections that were cut would be reported.


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        begin, end = 0, len(server.content)
        if wanted and server.ranges:
            first, last = wanted.removeprefix("bytes=").split("-")
            begin, end = int(first), min(int(last) + 1 if last else end, end)
        request = Request(self.command, self.path, begin, end, self.headers)
        with server.lock:
            server.requests.append(request)
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            self.answer(request, wanted)
        finally:
            with server.lock:
                server.at_once -= 1

    do_HEAD = do_GET

    def answer(self, request: Request, wanted: str | None):
        server = self.server
        server.on_request(request)
        if self.path.startswith("/moved"):
            return self.empty(302, {"Location": "/data.csv"})
        if not self.path.startswith(("/data.csv", "/many/")):
            return self.empty(404)
        if self.command == "HEAD" and not server.heads:
            return self.empty(405)
        with server.lock:
            is_broken = server.broken > 0
            server.broken -= is_broken
        if is_broken:
            return self.empty(server.status, {"Retry-After": server.retry_after} if server.retry_after else {})
        content = server.content
        if wanted and server.ranges and request.begin >= len(content):
            return self.empty(416, {"Content-Range": f"bytes */{len(content)}"})
        body = content[request.begin : request.end]
        self.send_response(206 if wanted and server.ranges else 200)
        if wanted and server.ranges:
            begin = request.begin + (7 if server.wrong_ranges else 0)
            self.send_header("Content-Range", f"bytes {begin}-{request.end - 1}/{len(content)}")
        if server.etags:
            self.send_header("ETag", '"' + hashlib.md5(content).hexdigest() + '"')
        if server.dates:
            self.send_header("Last-Modified", "Tue, 24 Nov 2026 10:00:00 GMT")
        if server.lengths:
            self.send_header("Content-Length", str(len(body)))
        else:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command == "HEAD":
            return
        if server.cut and len(body) > server.cut:
            self.wfile.write(body[: server.cut])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
        else:
            self.wfile.write(body)

    def empty(self, status: int, headers: dict | None = None):
        self.send_response(status)
        for name, value in ({"Content-Length": "0"} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *words):
        pass
