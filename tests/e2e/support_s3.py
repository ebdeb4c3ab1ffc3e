"""A bucket of a real S3 server (scripts/testbed/s3: rclone), and who stands before the server to disturb it."""

import http.client
import http.server
import json
import pathlib
import shutil
import threading
import unittest
import urllib.parse

from support import files_below

ENVIRONMENT = pathlib.Path("/var/lib/pipe-s3/environment")
S3 = dict(line.split("=", 1) for line in ENVIRONMENT.read_text().splitlines()) if ENVIRONMENT.exists() else {}
needs_s3 = unittest.skipUnless(S3, "no S3 server: scripts/testbed/s3 start")


class S3Bucket:
    """Put before a PipeTest: a bucket of its own, and a profile that names it."""

    def setUp(self):
        super().setUp()
        self.bucket = f"pipe-{self.mark}"
        self.data = pathlib.Path(S3["DATA"]) / self.bucket
        self.data.mkdir()
        self.addCleanup(shutil.rmtree, self.data, ignore_errors=True)
        self.profile()

    def environment(self, env: dict) -> dict:
        keys = {"AWS_ACCESS_KEY_ID": S3["ACCESS_KEY"], "AWS_SECRET_ACCESS_KEY": S3["SECRET_KEY"], "HOME": str(self.folder), "PIPE_PROFILE": "lab"}
        return super().environment({**keys, **env})

    def profile(self, **store):
        settings = {"bucket": f"s3://{self.bucket}/team/pipe", "endpoint": S3["ENDPOINT"], "certificate_authority": S3["CA"], **store}
        self.write("profiles.yaml", json.dumps({"lab": {"orchestrator": self.orchestrator, "artifact_store": settings}}))

    def objects(self) -> list[str]:
        """Names of the objects, but for the server's own files of uploads that it has not ended."""
        return [str(file.relative_to(self.data)) for file in files_below(self.data) if not file.name.startswith(".rclone_temp_")]


class Between(http.server.ThreadingHTTPServer):
    """Stands before the plain server, and lets `trouble(method, path)` answer in its place: a status, "cut", or nothing."""

    daemon_threads = True

    def __init__(self, trouble):
        self.trouble, self.asked, self.served, self.lock = trouble, [], [], threading.Lock()  # served: of what was asked, what had its answer whole
        self.there = urllib.parse.urlsplit(S3["PLAIN"])
        super().__init__((self.there.hostname, 0), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{self.there.hostname}:{self.server_port}"

    def end(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # of connections that were cut


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        line = f"{self.command} {self.path.split('?')[0]}"
        with self.server.lock:
            self.server.asked.append(line)
            trouble = self.server.trouble(self.command, self.path)
        if trouble == "cut":
            self.close_connection = True
            return
        if trouble:
            code = {403: "AccessDenied", 412: "PreconditionFailed"}.get(trouble, "SlowDown")
            text = f"<Error><Code>{code}</Code><Message>so it is</Message></Error>".encode()
            self.send_response(trouble)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)
            return
        there = http.client.HTTPConnection(self.server.there.netloc)
        there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            there.putheader(name, value)
        there.endheaders(body)
        answer = there.getresponse()
        text = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", answer.headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.server.served.append(line)
        there.close()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, *_):
        pass
