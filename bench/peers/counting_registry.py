"""A registry that counts the bytes that it gets. It has the part of the API (github.com/distribution/distribution) that a push needs; it keeps only digests."""

import hashlib
import http.server
import re
import subprocess
import threading
import uuid


class CountingRegistry:
    def __enter__(self) -> "CountingRegistry":
        self.known: set[str] = set()
        self.bytes = 0
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def answer(self, status: int, **headers: str) -> None:
                self.send_response(status)
                for name, value in {"Content_Length": "0", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.end_headers()

            def do_GET(self):
                digest = re.search("sha256:[0-9a-f]{64}", self.path)
                is_there = self.path == "/v2/" or (digest and digest[0] in registry.known)
                self.answer(200 if is_there else 404, **({"Docker_Content_Digest": digest[0]} if digest else {}))

            do_HEAD = do_GET

            def do_POST(self):
                self.answer(202, Location=f"{self.path.split('?')[0].rstrip('/')}/{uuid.uuid4()}", Range="0-0")

            def do_PATCH(self):
                size, _ = self.take_body()
                self.answer(202, Location=self.path, Range=f"0-{max(0, size - 1)}")

            def do_PUT(self):
                """Takes the end of a blob, whose digest is in the address, or a manifest."""
                _, of_body = self.take_body()
                named = re.search("sha256(?::|%3A)([0-9a-f]{64})", self.path)
                digest = "sha256:" + (named[1] if named else of_body)
                registry.known.add(digest)
                self.answer(201, Location=self.path, Docker_Content_Digest=digest)

            def take_body(self) -> tuple[int, str]:
                """Returns the size and the SHA-256 of the request's body."""
                size, digest = 0, hashlib.sha256()

                def take(count: int) -> None:
                    nonlocal size
                    while count and (data := self.rfile.read(min(count, 1 << 20))):
                        digest.update(data)
                        size += len(data)
                        count -= len(data)

                if self.headers.get("Transfer-Encoding") == "chunked":
                    while count := int(self.rfile.readline().split(b";")[0], 16):
                        take(count)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    take(int(self.headers.get("Content-Length") or 0))
                registry.bytes += size
                return size, digest.hexdigest()

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.server.shutdown()
        self.server.server_close()

    def push(self, image: str) -> int:
        """Pushes an image of the engine, and returns the number of bytes that this registry received."""
        before, name = self.bytes, f"127.0.0.1:{self.server.server_address[1]}/pipe-bench:pushed"
        subprocess.run(["docker", "tag", image, name], check=True)
        try:
            subprocess.run(["docker", "push", "-q", name], check=True, stdout=subprocess.DEVNULL)
        finally:
            subprocess.run(["docker", "rmi", name], check=True, stdout=subprocess.DEVNULL)
        return self.bytes - before
