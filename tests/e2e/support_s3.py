"""A bucket of a real S3 server (scripts/testbed/s3: rclone), and a proxy that disturbs requests to it."""

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
    """A mixin before PipeTest: makes a bucket for each test, and a profile whose artifact store is in that bucket. `data` is the server's folder of the
    bucket's objects."""

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
        """Writes the profile again. `store` replaces settings of its artifact store."""
        settings = {"bucket": f"s3://{self.bucket}/team/pipe", "endpoint": S3["ENDPOINT"], "certificate_authority": S3["CA"], **store}
        self.write("profiles.yaml", json.dumps({"lab": {"orchestrator": self.orchestrator, "artifact_store": settings}}))

    def objects(self) -> list[str]:
        """Returns the keys of the objects, without the server's temporary files of unfinished uploads."""
        return [str(file.relative_to(self.data)) for file in files_below(self.data) if not file.name.startswith(".rclone_temp_")]


class ScriptedProxy(http.server.ThreadingHTTPServer):
    """A proxy before the server's address without TLS. `trouble(method, path)` says how a request is answered: a status is sent in the server's place, "cut" closes
    the connection, and None lets the server answer. `asked` has all requests, `served` those whose response was passed on completely."""

    daemon_threads = True

    def __init__(self, trouble, port: int = 0):
        self.trouble, self.asked, self.served, self.lock = trouble, [], [], threading.Lock()
        self.upstream = urllib.parse.urlsplit(S3["PLAIN"])
        super().__init__((self.upstream.hostname, port), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://{self.upstream.hostname}:{self.server_port}"

    def end(self):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # Connections that were cut would be reported.


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
        upstream = http.client.HTTPConnection(self.server.upstream.netloc)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            upstream.putheader(name, value)
        upstream.endheaders(body)
        answer = upstream.getresponse()
        text = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        self.send_header("Content-Length", answer.headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(text)))
        self.end_headers()
        self.wfile.write(text)
        self.server.served.append(line)
        upstream.close()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, *_):
        pass
