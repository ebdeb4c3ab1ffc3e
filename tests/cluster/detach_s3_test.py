"""Detached runs on a cluster whose pods share no files with the machine that has started them: everything passes through a bucket."""

import hashlib
import json
import os
import pathlib
import subprocess
import unittest

import detach_test
from support_addresses import POD, Served
from support_cluster import needs_cluster, needs_test_bed
from support_s3 import S3, S3Bucket, needs_s3


@needs_cluster
@needs_test_bed
@needs_s3
class DetachedThroughABucketTest(Served, S3Bucket, detach_test.StopsAnywhere, detach_test.DetachedTest):
    def left_in_bucket(self) -> list[str]:
        """Returns the bucket's objects that are neither artifacts nor results."""
        return [name for name in self.objects() if not name.startswith(("team/pipe/artifacts/", "team/pipe/results/"))]

    def assert_ended_well(self, steps: list[str]):
        self.wait_for("succeeded")
        self.assertEqual(self.steps(), {step: "succeeded" for step in steps})
        self.assert_each_step_had_one_pod(steps)
        self.assert_nothing_in_the_cluster()

    def assert_nothing_in_the_cluster(self):
        super().assert_nothing_in_the_cluster()
        self.assertEqual(self.left_in_bucket(), [])

    def test_run_completes_and_its_logs_and_artifacts_can_be_read_here(self):
        self.write("words.txt", "from the code\n")
        self.pipeline({"make": {"command": "cat words.txt > ${outputs.text}; mkdir ${outputs.many}; echo 1 > ${outputs.many}/one; echo made; sleep 2; echo ended",
                                "code": ["words.txt"], "outputs": ["text", "many"]},
                       "use": {"command": "cat ${inputs.text} ${inputs.many}/one > ${outputs.all}; printf '#!/bin/sh\\necho ran\\n' > ${outputs.tool};"
                                          " chmod +x ${outputs.tool}; env > ${outputs.seen}",
                               "inputs": {"text": "make.text", "many": "make.many"}, "outputs": ["all", "tool", "seen"], "cache": False}})
        event = self.detached()
        run = event["run"]
        (secret,) = [item for item in json.loads(self.in_namespace("get", "secrets", "-o", "json"))["items"] if item["metadata"]["name"] == event["driver"]["job"]]
        self.assertIn("AWS_SECRET_ACCESS_KEY", secret["data"])
        (pod,) = self.driver_pods()
        self.assertEqual([list(volume) for volume in pod["spec"]["volumes"] if "hostPath" in volume or "persistentVolumeClaim" in volume], [])
        self.assertEqual(self.pipe("logs", run, "make", "-f").out, "made\nended\n")
        self.assert_ended_well(["make", "use"])
        listed = self.pipe("artifacts", run).out
        self.assertIn(f"s3://{self.bucket}/team/pipe/artifacts/", listed)
        self.assertEqual(self.artifact("use.all"), "from the code\n1\n")
        self.assertNotIn("AWS_", self.artifact("use.seen"), "only the driver has keys")
        self.pipe("artifacts", run, "use.tool", "--copy", self.folder / "tool")
        self.assertEqual(subprocess.run([self.folder / "tool"], stdout=subprocess.PIPE, check=True, text=True).stdout, "ran\n")
        self.assertNotIn(S3["SECRET_KEY"].encode(), b"".join(file.read_bytes() for file in self.folder.rglob("*") if file.is_file()))
        again = self.run_pipe("--namespace", self.namespace)
        self.assertEqual(again.steps()["make"], "cached")

    def test_pods_fetch_data_at_addresses_and_the_driver_fetches_what_they_cannot(self):
        near, far = os.urandom(9 << 20), os.urandom(1 << 20)
        server = self.server({"/near": near, "/far": far}, trouble=lambda agent, path: 403 if agent == POD and path == "/far" else None)
        self.pipeline({"near": {"command": "sha256sum < ${inputs.data} > ${outputs.sum}", "outputs": ["sum"],
                                "inputs": {"data": {"url": server.url("/near"), "sha256": hashlib.sha256(near).hexdigest()}}},
                       "far": {"command": "sha256sum < ${inputs.data} > ${outputs.sum}", "outputs": ["sum"], "after": ["near"], "inputs": {"data": server.url("/far")}}})
        self.detached()
        self.assert_ended_well(["near", "far"])
        for step, content in (("near", near), ("far", far)):
            self.assertEqual(self.artifact(f"{step}.sum").split()[0], hashlib.sha256(content).hexdigest())
        self.assertEqual(server.asked[("pipe", "/near")], 0, server.asked)
        self.assertEqual(server.asked[(POD, "/far")], 1, server.asked)
        self.assertIn(hashlib.sha256(far).hexdigest(), (self.folder / "pipeline.lock").read_text())

    def test_run_completes_though_its_driver_and_its_files_are_lost_twice(self):
        steps = self.write_chain(4, 1, waits=(0, 2))
        self.detached()
        self.lose_driver_twice()
        self.assert_ended_well(steps)

    def test_program_is_its_own_driver(self):
        self.command = pathlib.Path(os.environ["BUILD_DIR"]) / "bin/dsl_program"
        for words, status in (("--detach",), "succeeded"), ((), "cached"):
            result = self.pipe("run", "--namespace", self.namespace, *words)
            self.assertEqual(result.code, 0, result)
            self.wait_for("succeeded")
            self.assertEqual(set(self.steps().values()), {status})
        self.assertEqual(self.artifact("count_lines.result"), "2\n")

    def test_missing_keys_are_an_error_before_anything_is_built(self):
        self.write_chain(1)
        result = self.pipe("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--detach", AWS_ACCESS_KEY_ID="")
        self.assertEqual(result.code, 3, result)
        self.assertIn("there are no keys for the remote store", result.err)
        self.assertEqual(self.cluster_objects(), [])


if __name__ == "__main__":
    unittest.main()
