"""A bucket that keeps versions: moto, a server of Amazon's API from PyPI, in a virtual environment of the tests."""

import fcntl
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request

from support import free_port, wait_until

WANTED = "moto[s3,server]==5.2.1"
CACHE = pathlib.Path(os.environ.get("TESTBED_CACHE", "/var/cache/pipe-testbed")) / "moto-5.2.1"
# moto does not check the signature, but reads from the header that the request is for S3.
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0", "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
          "Content-Type": "application/octet-stream"}


def server_program() -> pathlib.Path:
    """Returns the path of moto's server, whose virtual environment is made once for all tests of this machine. Skips the test if moto cannot be installed."""
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
        folder = CACHE
    except PermissionError:
        folder = pathlib.Path(tempfile.gettempdir()) / f"pipe-moto-{os.getuid()}"
        folder.mkdir(exist_ok=True)
    program = folder / "venv/bin/moto_server"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "venv"], check=True)
            done = subprocess.run([folder / "venv/bin/pip", "install", "--quiet", WANTED], stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                raise unittest.SkipTest(f"no {WANTED} to be had: {done.stderr[-300:]}")
            (folder / "complete").touch()
    return program


class VersionedBucket:
    """A mixin before PipeTest: starts a server for the test's class, and makes a bucket for each test."""

    host = "127.0.0.1"

    @classmethod
    def setUpClass(cls):
        cls.port = free_port(cls.host)
        cls.server = subprocess.Popen([server_program(), "-H", cls.host, "-p", str(cls.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      start_new_session=True)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        wait_until(lambda: cls.answers(), "an answer of moto")

    @classmethod
    def answers(cls) -> bool:
        """Returns whether the server accepts connections."""
        with socket.socket() as probe:
            return probe.connect_ex((cls.host, cls.port)) == 0

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}:{self.port}"

    def setUp(self):
        super().setUp()
        self.bucket = f"lab-{self.mark}"
        self.ask("PUT", "")
        self.ask("PUT", "?versioning", b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")

    def ask(self, method: str, path: str, body: bytes | None = None):
        """Sends a request for `path`, such as `/KEY`, in the test's bucket, and returns the response."""
        request = urllib.request.Request(f"{self.endpoint}/{self.bucket}{path}", data=body, method=method, headers=SIGNED)
        return urllib.request.urlopen(request, timeout=30)

    def put(self, content: bytes) -> str:
        """Writes the object raw/table.csv, and returns the id of its new version."""
        return self.ask("PUT", "/raw/table.csv", content).headers["x-amz-version-id"]
