"""Inputs from a bucket that keeps all versions of an object. The lock file records which version a step has read, so that a later run reads the same version
even if the object has changed or was deleted."""

import os
import unittest
import urllib.error

from support import PipeTest
from support_moto import VersionedBucket


class Versions(VersionedBucket, PipeTest):
    orchestrator = "local"

    def environment(self, env: dict) -> dict:
        return super().environment({"AWS_ENDPOINT_URL_S3": self.endpoint, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": str(self.folder), **env})

    def write_pipeline(self, **more):
        """Writes a pipeline with a step that reads the object. `more` has further keys of the input."""
        self.address = f"s3://{self.bucket}/raw/table.csv"
        self.pipeline({"a": {"command": "cat ${inputs.table} > ${outputs.x}", "inputs": {"table": {"url": self.address, **more} if more else self.address}, "outputs": ["x"]}})

    def use_new_machine(self):
        """Continues with an empty state, as on a machine that has not seen the object."""
        self.state = self.folder / f"state-{os.urandom(3).hex()}"

    @property
    def lock(self) -> str:
        return (self.folder / "pipeline.lock").read_text()

    def test_a_step_reads_the_version_that_the_pipeline_names_although_there_are_newer_ones(self):
        first = self.put(b"first\n")
        second = self.put(b"second\n")
        self.assertNotEqual(first, second)
        self.write_pipeline(version=first)
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.artifact("a.x"), "first\n")
        self.put(b"third\n")
        self.assertNotIn("notes", self.plan()["a"])
        self.assertEqual(self.run_pipe().steps(), {"a": "cached"})
        self.write_pipeline(version=second)
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.artifact("a.x"), "second\n")

    def test_a_step_reads_the_locked_version_of_an_object_that_has_changed_or_was_deleted(self):
        first = self.put(b"first\n")
        self.write_pipeline()
        self.run_pipe()
        self.assertIn(first, self.lock)
        second = self.put(b"second, longer\n")
        self.assertIn("changed at the source since it was locked", self.plan()["a"]["notes"][0])
        self.use_new_machine()
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.artifact("a.x"), "first\n")
        self.ask("DELETE", "/raw/table.csv")  # This adds a delete marker; the versions stay.
        with self.assertRaises(urllib.error.HTTPError):
            self.ask("GET", "/raw/table.csv")
        self.use_new_machine()
        self.run_pipe("--locked")
        self.assertEqual(self.artifact("a.x"), "first\n")
        self.ask("PUT", "/raw/table.csv", b"fourth\n")
        self.assertEqual(self.pipe("lock", "pipeline.yaml", "--upgrade", "table").code, 0)
        self.assertNotIn(first, self.lock)
        self.assertNotIn(second, self.lock)
        self.run_pipe()
        self.assertEqual(self.artifact("a.x"), "fourth\n")

    def test_the_error_for_a_deleted_version_names_the_version(self):
        first = self.put(b"first\n")
        self.put(b"second\n")
        self.write_pipeline()
        self.pipe("lock", "pipeline.yaml")
        lock = self.lock
        self.write_pipeline(version=first)
        self.ask("DELETE", f"/raw/table.csv?versionId={first}")
        failed = self.run_pipe(code=3)
        self.assertIn("the bucket has no such object of version " + first, failed.text)
        self.assertEqual(self.lock, lock)


if __name__ == "__main__":
    unittest.main()
