"""Inputs at URLs on a cluster that shares no files with this machine: pods fetch them by themselves, and the driver on this machine fetches what pods cannot
reach."""

import hashlib
import json
import os
import signal
import threading
import time
import unittest

from support_addresses import HOST, POD, Served
from support_cluster import ClusterTest, kubectl, needs_cluster, needs_test_bed
from support_moto import VersionedBucket
from support_s3 import S3Bucket, needs_s3

MIB = 1 << 20


@needs_cluster
@needs_test_bed
@needs_s3
class Addresses(Served, S3Bucket, ClusterTest):
    def takes(self, address, step: str = "use", **more):
        """Writes a pipeline whose step has the input at this address, and outputs its SHA-256. `more` has further keys of the step."""
        self.pipeline({step: {"command": "if [ -d ${inputs.data} ]; then cd ${inputs.data}; cat $(find . -type f | LC_ALL=C sort); else cat ${inputs.data}; fi"
                                         " | sha256sum > ${outputs.sum}", "inputs": {"data": address}, "outputs": ["sum"], **more}})

    def assert_saw(self, content: bytes, step: str = "use"):
        """Fails unless the step has read this content."""
        self.assertEqual(self.artifact(f"{step}.sum").split()[0], hashlib.sha256(content).hexdigest())

    def stored(self) -> list[str]:
        """Returns the digests of the artifacts in the bucket."""
        return [name.split("artifacts/")[1].replace("/", "") for name in self.objects() if "/artifacts/" in name]

    def use_new_machine(self):
        """Continues with an empty state folder, as on another machine."""
        self.state = self.folder / f"state-{os.urandom(3).hex()}"

    def test_a_pod_fetches_an_input_by_ranges_and_stores_it_in_the_bucket_for_other_pods(self):
        content = os.urandom(20 * MIB + 1)
        digest = hashlib.sha256(content).hexdigest()
        troubles = ["cut", None, 503, "cut"]
        server = self.server({"/base?signature=secret": content}, trouble=lambda agent, path: troubles.pop(0) if agent == POD and troubles else None)
        self.takes({"url": server.url("/base?signature=secret"), "sha256": digest})
        self.assertEqual(self.run_pipe().steps(), {"use": "succeeded"})
        self.assert_saw(content)
        self.assertEqual((server.by("pipe"), troubles), (0, []), server.asked)
        self.assertGreaterEqual(server.by(POD), 3)
        self.assertIn(digest, self.stored())
        self.assertFalse((self.state / "artifacts" / digest[:2] / digest[2:]).exists())
        asked = server.by(POD)
        self.use_new_machine()
        self.assertEqual(self.run_pipe("--no-cache").steps(), {"use": "succeeded"})
        self.assertEqual((server.by("pipe"), server.by(POD)), (0, asked))
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])

    def test_no_signature_is_in_a_job_a_log_or_an_event(self):
        content = b"data" * 1000
        server = self.server({"/x?signature=secret-of-the-url": content})
        self.pipeline({"use": {"command": "sleep 3; cat ${inputs.data} > ${outputs.sum}", "outputs": ["sum"],
                               "inputs": {"data": {"url": server.url("/x?signature=secret-of-the-url"), "sha256": hashlib.sha256(content).hexdigest()}}}})
        process = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        seen = []

        def look():
            while process.poll() is None:
                seen.append(kubectl("get", "jobs,pods,events", "-o", "json"))
                time.sleep(0.3)

        result = self.finish_beside(process, look)
        self.assertEqual(result.code, 0, result.text)
        self.assertEqual(server.by(POD), 1)
        self.assertIn(self.mark, "".join(seen))
        self.assertNotIn("secret-of-the-url", "".join(seen) + result.text)
        for file in [*(self.state / "logs").rglob("*"), *self.data.rglob("*.json")]:
            if file.is_file():
                self.assertNotIn(b"secret-of-the-url", file.read_bytes(), file)

    def test_this_machine_fetches_what_a_pod_cannot_reach_and_later_pods_do_not_try(self):
        content = os.urandom(3 * MIB)
        server = self.server({"/x": content, "/y": content + b"y"}, trouble=lambda agent, path: 403 if agent == POD else None)
        self.pipeline({"first": {"command": "sha256sum < ${inputs.data} > ${outputs.sum}", "inputs": {"data": server.url("/x")}, "outputs": ["sum"]},
                       "second": {"command": "sha256sum < ${inputs.data} > ${outputs.sum}", "inputs": {"data": server.url("/y")}, "outputs": ["sum"], "after": ["first"]}})
        result = self.run_pipe()
        self.assertEqual(result.steps(), {"first": "succeeded", "second": "succeeded"})
        self.assert_saw(content, "first")
        self.assert_saw(content + b"y", "second")
        self.assertEqual(server.by(POD), 1, server.asked)
        self.assertEqual({event["step"]: event["attempts"] for event in result.events("step_finished")}, {"first": 1, "second": 1})
        self.assertIn("the pod cannot fetch " + server.url("/x"), self.pipe("logs", "latest", "first").text)

    def test_a_pod_waits_for_the_next_driver_if_its_driver_is_killed_while_it_fetches(self):
        step = f"use-{self.mark}"
        content, begun, go = os.urandom(1 * MIB), threading.Event(), threading.Event()
        server = self.server({"/x": content}, trouble=lambda agent, path: 403 if agent == POD else None)
        self.addCleanup(go.set)

        def hold(agent, path):
            if agent == "pipe":
                begun.set()
                go.wait(120)

        server.hold = hold
        self.takes({"url": server.url("/x"), "sha256": hashlib.sha256(content).hexdigest()}, step)
        process = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        self.assertTrue(begun.wait(120))
        process.kill()
        process.wait()
        go.set()
        resumed = self.pipe("resume", "--output", "json")
        self.assertEqual(resumed.code, 0, resumed)
        self.assert_saw(content, step)
        self.assertEqual(server.by(POD), 1)
        self.assertEqual(list(self.pods_made().values()), [1])
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])

    def server_of_this_machine(self, hold):
        """Starts a server that refuses pods, and calls hold() before it answers this machine. Returns the input's keys."""
        content = b"x" * 1000
        server = self.server({"/x": content}, trouble=lambda agent, path: 403 if agent == POD else None)
        server.hold = lambda agent, path: hold() if agent == "pipe" else None
        return {"url": server.url("/x"), "sha256": hashlib.sha256(content).hexdigest()}

    def test_the_time_of_a_download_by_this_machine_does_not_count_for_the_timeout(self):
        self.takes(self.server_of_this_machine(lambda: time.sleep(12)), timeout="8s")
        self.assertEqual(self.run_pipe().steps(), {"use": "succeeded"})

    def test_an_interrupt_ends_a_download_by_this_machine(self):
        begun, ended = threading.Event(), threading.Event()
        self.addCleanup(ended.set)

        def hold():
            begun.set()
            ended.wait(120)

        self.takes(self.server_of_this_machine(hold))
        process = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        self.addCleanup(process.kill)
        self.assertTrue(begun.wait(120))
        process.send_signal(signal.SIGINT)
        result = self.finish(process)
        self.assertEqual(result.code, 130, result)
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])
        self.assertEqual(self.jobs(), [])

    def test_content_that_has_changed_since_it_was_locked_is_an_error_that_says_so(self):
        server = self.server({"/x": b"first" * 100})
        self.takes(server.url("/x"))
        self.run_pipe()
        server.content["/x"] = b"other" * 100
        self.use_new_machine()
        for name in self.data.rglob("*"):
            if name.is_file() and "/artifacts/" in str(name):
                name.unlink()
        failed = self.run_pipe("--no-cache", code=3)
        self.assertIn("has changed at the source since it was locked", failed.text)
        self.assertEqual(self.jobs(), [])

    def test_pods_fetch_a_locked_object_and_a_folder_of_a_bucket_without_this_machine(self):
        big, files = os.urandom(9 * MIB), {"a.txt": b"a", "deep/b.txt": b"b" * 100_000, "c d.txt": b"c"}
        for key, content in {"raw/big.bin": big, **{f"corpus/{name}": text for name, text in files.items()}}.items():
            (self.data / key).parent.mkdir(parents=True, exist_ok=True)
            (self.data / key).write_bytes(content)
        self.takes(f"s3://{self.bucket}/raw/big.bin")
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        self.use_new_machine()
        self.run_pipe("--locked")
        self.assert_saw(big)
        self.assertNotIn("cannot fetch", self.pipe("logs", "latest", "use").text)
        self.assertEqual([file for file in (self.state / "artifacts").rglob("*") if file.is_file() and file.stat().st_size > 8 * MIB], [])
        self.pipeline({"use": {"command": "cd ${inputs.data}; cat a.txt 'c d.txt' deep/b.txt | sha256sum > ${outputs.sum}", "outputs": ["sum"],
                               "inputs": {"data": f"s3://{self.bucket}/corpus/"}}})
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        self.use_new_machine()
        self.run_pipe("--locked")
        self.assert_saw(b"a" + b"c" + b"b" * 100_000)
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])

    def test_an_address_that_only_this_machine_has_is_fetched_by_this_machine(self):
        content = b"of this machine" * 100
        server = self.server({"/x": content}, host="127.0.0.1")
        self.takes({"url": server.url("/x"), "sha256": hashlib.sha256(content).hexdigest()})
        self.run_pipe()
        self.assert_saw(content)
        self.assertEqual(server.by(POD), 0)


@needs_cluster
@needs_test_bed
@needs_s3
class Versions(VersionedBucket, ClusterTest):
    """The input and the artifacts are in a bucket that keeps versions."""

    host = HOST

    def environment(self, env: dict) -> dict:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "HOME": str(self.folder), "PIPE_PROFILE": "lab"}
        return super().environment({**keys, **env})

    def test_a_pod_reads_the_version_that_is_locked(self):
        self.write("profiles.yaml", json.dumps({"lab": {"orchestrator": "kubernetes", "artifact_store": {"bucket": f"s3://{self.bucket}/store", "endpoint": self.endpoint}}}))
        first = os.urandom(9 * MIB)
        self.put(first)
        self.pipeline({"use": {"command": "sha256sum < ${inputs.data} > ${outputs.sum}", "inputs": {"data": f"s3://{self.bucket}/raw/table.csv"}, "outputs": ["sum"]}})
        self.assertEqual(self.pipe("lock", "pipeline.yaml").code, 0)
        self.put(b"second")
        self.state = self.folder / "another-machine"
        self.run_pipe("--locked")
        self.assertEqual(self.artifact("use.sum").split()[0], hashlib.sha256(first).hexdigest())
        self.assertEqual([file for file in (self.state / "artifacts").rglob("*") if file.is_file() and file.stat().st_size > 8 * MIB], [])


if __name__ == "__main__":
    unittest.main()
