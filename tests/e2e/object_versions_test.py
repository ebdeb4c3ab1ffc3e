"""Inputs of a bucket that keeps versions: a version's content never changes, and the lock file's is read again after the object has changed or was deleted."""

import json
import os
import unittest
import urllib.error

from support import PipeTest
from support_moto import VersionedBucket


class Versions(VersionedBucket, PipeTest):
    orchestrator = "local"

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
