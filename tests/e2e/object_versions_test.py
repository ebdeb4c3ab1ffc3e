"""Inputs of a bucket that keeps versions (moto, a server of Amazon's API from PyPI, in a virtual environment of the tests): a version's content never changes,
and the lock file's is read again after the object has changed or was deleted."""

import fcntl
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

from support import PipeTest, wait_until

WANTED = "moto[s3,server]==5.2.1"
CACHE = pathlib.Path(os.environ.get("TESTBED_CACHE", "/var/cache/pipe-testbed")) / "moto-5.2.1"
# moto compares no signature; the header says which service is meant
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0", "x-amz-content-sha256": "UNSIGNED-PAYLOAD",
          "Content-Type": "application/octet-stream"}


def server_program() -> pathlib.Path:
    """Makes the virtual environment once for all tests of this machine; a test is skipped where there is no moto to be had."""
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


class Versions(PipeTest):
    orchestrator = "local"

    @classmethod
    def setUpClass(cls):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            cls.port = free.getsockname()[1]
        cls.server = subprocess.Popen([server_program(), "-H", "127.0.0.1", "-p", str(cls.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                      start_new_session=True)
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        wait_until(lambda: cls.answers(), "an answer of moto")

    @classmethod
    def answers(cls) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", cls.port)) == 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def setUp(self):
        super().setUp()
        self.bucket = f"lab-{self.mark}"
        self.ask("PUT", "")
        self.ask("PUT", "?versioning", b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")

    def ask(self, method: str, path: str, body: bytes | None = None):
        request = urllib.request.Request(f"{self.endpoint}/{self.bucket}{path}", data=body, method=method, headers=SIGNED)
        return urllib.request.urlopen(request, timeout=30)

    def put(self, content: bytes) -> str:
        """Returns the id of the version."""
        return self.ask("PUT", "/raw/table.csv", content).headers["x-amz-version-id"]

    def environment(self, env: dict) -> dict:
        return super().environment({"AWS_ENDPOINT_URL_S3": self.endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": str(self.folder), **env})

    def takes(self, **more):
        self.address = f"s3://{self.bucket}/raw/table.csv"
        self.pipeline({"a": {"command": "cat ${inputs.table} > ${outputs.x}", "inputs": {"table": {"url": self.address, **more} if more else self.address}, "outputs": ["x"]}})

    def new_machine(self):
        self.state = self.folder / f"state-{os.urandom(3).hex()}"

    @property
    def lock(self) -> str:
        return (self.folder / "pipeline.lock").read_text()

    def test_a_version_of_the_pipeline_stays_readable_when_there_are_newer_ones(self):
        first = self.put(b"first\n")
        second = self.put(b"second\n")
        self.assertNotEqual(first, second)
        self.takes(version=first)
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.artifact("a.x"), "first\n")
        self.put(b"third\n")
        self.assertNotIn("notes", self.plan()["a"])
        self.assertEqual(self.run_pipe().steps(), {"a": "cached"})
        self.takes(version=second)
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.artifact("a.x"), "second\n")

    def test_a_locked_object_is_read_in_its_version_though_it_has_changed_or_was_deleted(self):
        first = self.put(b"first\n")
        self.takes()
        self.run_pipe()
        self.assertIn(first, self.lock)
        second = self.put(b"second, longer\n")
        self.assertIn("changed at the source since it was locked", self.plan()["a"]["notes"][0])
        self.new_machine()
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.artifact("a.x"), "first\n")
        self.ask("DELETE", "/raw/table.csv")  # leaves a mark; versions stay
        with self.assertRaises(urllib.error.HTTPError):
            self.ask("GET", "/raw/table.csv")
        self.new_machine()
        self.run_pipe("--locked")
        self.assertEqual(self.artifact("a.x"), "first\n")
        self.ask("PUT", "/raw/table.csv", b"fourth\n")
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "--upgrade", "table").code, 0)
        self.assertNotIn(first, self.lock)
        self.assertNotIn(second, self.lock)
        self.run_pipe()
        self.assertEqual(self.artifact("a.x"), "fourth\n")

    def test_a_version_that_is_gone_is_named(self):
        first = self.put(b"first\n")
        self.put(b"second\n")
        self.takes()
        self.pipe("lock", "pipeline.yaml")
        gone = json.loads(json.dumps(self.lock))
        self.takes(version=first)
        self.ask("DELETE", f"/raw/table.csv?versionId={first}")
        failed = self.run_pipe(code=3)
        self.assertIn("the bucket has no such object of version " + first, failed.text)
        self.assertEqual(self.lock, gone)


if __name__ == "__main__":
    unittest.main()
