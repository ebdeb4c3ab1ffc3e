"""Outputs of pods stay in the bucket by default: no byte of them passes through the driver (`pipe run`)."""

import hashlib
import json
import pathlib
import signal
import unittest

from support_cluster import ClusterTest, needs_cluster, needs_test_bed, wait_until
from support_s3 import S3, S3Bucket, ScriptedProxy, needs_s3


@needs_cluster
@needs_test_bed
@needs_s3
class ElsewhereTest(S3Bucket, ClusterTest):
    def setUp(self):
        super().setUp()
        self.proxy = ScriptedProxy(self.trouble)
        self.addCleanup(self.proxy.end)
        self.profile(endpoint=self.proxy.url, pod_endpoint=S3["PLAIN"])

    def trouble(self, method, path):
        return None

    def downloads(self) -> list[str]:
        """Returns the driver's requests that read outputs, since the last call."""
        found = [line for line in self.proxy.asked if line.startswith("GET ") and ("/artifacts/" in line or "/outputs/" in line)]
        self.proxy.asked.clear()
        return found

    def blob(self, digest: str, suffix: str = "") -> pathlib.Path:
        """Returns the server's file of an artifact; that of a folder has the suffix `.tar`."""
        return self.data / "team/pipe/artifacts" / digest[:2] / (digest[2:] + suffix)

    def damage(self, digest: str, suffix: str = ""):
        """Changes a bit in the middle of an artifact in the bucket."""
        blob = self.blob(digest, suffix)
        content = bytearray(blob.read_bytes())
        content[len(content) // 2] ^= 1
        blob.write_bytes(content)

    def outputs(self) -> dict[str, dict]:
        """Returns the artifacts of the latest run by name, as `pipe artifacts` has them in JSON."""
        return {one["output"]: one for one in json.loads(self.pipe("artifacts", "--output", "json").out)["artifacts"]}

    def chain(self, **more):
        """Writes a pipeline: `make` has large outputs, and `use` reads them. `more` has further steps."""
        self.pipeline({
            "make": {"command": "head -c 20000000 /dev/zero | tr '\\0' x > ${outputs.data}; mkdir -p ${outputs.many}/deep/none;"
                                " for i in 1 2 3; do head -c 1000000 /dev/urandom > ${outputs.many}/deep/$i; done; ln -s deep/1 ${outputs.many}/link; chmod +x ${outputs.many}/deep/2; cp /bin/bash ${outputs.tool}; echo small > ${outputs.small}",
                     "outputs": ["data", "many", "tool", "small"]},
            "use": {"command": "${inputs.tool} -c 'sha256sum < ${inputs.data}' > ${outputs.sum}; cat ${inputs.many}/deep/[123] ${inputs.many}/link | wc -c >> ${outputs.sum};"
                               " test -x ${inputs.many}/deep/2 -a -d ${inputs.many}/deep/none",
                    "inputs": {"data": "make.data", "many": "make.many", "tool": "make.tool"}, "outputs": ["sum"]}, **more})

    def test_outputs_that_only_pods_use_are_never_read_by_the_driver(self):
        self.chain()
        result = self.run_pipe()
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        made = self.outputs()
        for name, suffix in (("data", ""), ("tool", ""), ("many", ".tar")):
            one = made[f"make.{name}"]
            self.assertTrue(one["url"].endswith(f"/artifacts/{one['digest'][:2]}/{one['digest'][2:]}{suffix}"), one)
            self.assertTrue(self.blob(one["digest"], suffix).exists())
        self.assertIn("path", made["make.small"])
        self.assertLess(len(self.downloads()), 3, "only small artifacts are downloaded")
        self.assertEqual(self.artifact("use.sum").split(), [hashlib.sha256(b"x" * 20000000).hexdigest(), "-", "4000000"])
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])
        # Reuse, plan and tables do not need the content. `verify` knows that it is in the bucket.
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.chain(more={"command": "wc -c < ${inputs.data} > ${outputs.n}", "inputs": {"data": "make.data"}, "outputs": ["n"]})
        self.pipe("plan", "pipeline.yaml")
        for command in ("show", "runs", "artifacts"):
            self.pipe(command)
        verified = json.loads(self.pipe("verify", "--output", "json").out)
        self.assertEqual({one["state"] for one in verified["findings"]}, {"not on this machine"}, verified)
        self.assertEqual(self.run_pipe().steps(), {"make": "cached", "use": "cached", "more": "succeeded"})
        self.assertLess(len(self.downloads()), 2)
        # An output that a local step or the user needs is downloaded once.
        self.chain(here={"orchestrator": "local", "command": "ls ${inputs.many}/deep > ${outputs.list}; ${inputs.tool} -c 'echo ran' >> ${outputs.list}",
                         "inputs": {"many": "make.many", "tool": "make.tool"}, "outputs": ["list"]})
        self.assertEqual(self.run_pipe().steps()["here"], "succeeded")
        self.assertEqual(self.artifact("here.list"), "1\n2\n3\nnone\nran\n")
        self.assertEqual(len(set(self.downloads())), 2)
        self.pipe("artifacts", "latest", "make.data", "--copy", str(self.folder / "copy"))
        self.assertEqual((self.folder / "copy").read_bytes(), b"x" * 20000000)
        self.assertIn("path", self.outputs()["make.data"])

    def test_an_output_that_is_damaged_in_the_bucket_is_noticed_by_its_consumer_and_made_again(self):
        self.chain()
        self.run_pipe()
        self.damage(self.outputs()["make.many"]["digest"], ".tar")
        result = self.run_pipe("--force", "use")
        self.assertEqual(result.steps(), {"make": "succeeded", "use": "succeeded"}, result)
        self.assertIn("runs again, because its output is damaged", result.text)
        self.assertEqual(self.artifact("use.sum").split()[0], hashlib.sha256(b"x" * 20000000).hexdigest())

    def test_another_driver_records_a_step_whose_driver_was_killed_before_it_could(self):
        self.chain()
        killed = []

        def trouble(method, path):
            is_copy = method == "PUT" and "/artifacts/" in path and not path.split("?")[0].endswith(".tar")  # The tar archive is the code, which is uploaded.
            if is_copy and not killed and process:
                killed.append(path)
                process[0].send_signal(signal.SIGKILL)
            return None

        process = []
        self.proxy.trouble = trouble
        process.append(self.start("run", "pipeline.yaml", "--output", "json"))
        wait_until(lambda: killed, "the first copy to a digest")
        process[0].communicate()
        result = self.pipe("resume", "--output", "json")
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        self.assertEqual({event["attempts"] for event in result.events("step_finished")}, {1}, "nothing has run twice")
        self.assertIn("url", self.outputs()["make.data"])

    def make_large(self, letter: str):
        """Writes a pipeline with a step that makes an output of 70 MB, and one that reads it."""
        self.pipeline({f"make{letter}": {"command": f"head -c 70000000 /dev/zero | tr '\\0' {letter} > ${{outputs.data}}", "outputs": ["data"]},
                       f"use{letter}": {"command": "sha256sum < ${inputs.data} > ${outputs.sum}", "inputs": {"data": f"make{letter}.data"}, "outputs": ["sum"]}})

    def test_a_large_output_is_sent_to_its_digest_also_if_the_driver_is_killed_before_it_answers(self):
        self.make_large("a")
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})
        made = self.outputs()["makea.data"]["digest"]
        requests = [line for line in self.proxy.asked if line.endswith(f"/artifacts/{made[:2]}/{made[2:]}")]
        self.assertEqual({line.split()[0] for line in requests}, {"HEAD", "POST"}, "no copy")
        process, killed = [], []

        def trouble(method, path):
            if method != "PUT" or not path.split("?")[0].endswith("/answer.json") or killed:
                return None
            killed.append(path)
            process[0].send_signal(signal.SIGKILL)
            return "cut"

        self.make_large("b")
        self.proxy.trouble = trouble
        process.append(self.start("run", "pipeline.yaml", "--output", "json"))
        wait_until(lambda: killed, "the answer to the pod's question")
        process[0].communicate()
        result = self.pipe("resume", "--output", "json")  # Answers in time, or finds what the pod has sent without an answer.
        self.assertEqual(set(result.steps().values()), {"succeeded"}, result)
        self.assertEqual({event["attempts"] for event in result.events("step_finished")}, {1}, "nothing has run twice")
        self.assertIn("url", self.outputs()["makeb.data"])
        self.assertEqual(self.artifact("useb.sum").split()[0], hashlib.sha256(b"b" * 70000000).hexdigest())
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])

    def test_the_next_driver_removes_what_a_killed_driver_had_not_removed_of_an_ended_step(self):
        staged = lambda: [name for name in self.objects() if "/runs/" in name]
        for words in ("resume",), ("run", "pipeline.yaml"):
            with self.subTest(words[0]):
                self.pipeline({f"{self.mark}{words[0]}": {"command": "echo x > ${outputs.y}", "outputs": ["y"]}})
                process, killed = [], []

                def trouble(method, path, process=process, killed=killed):
                    if method != "DELETE" or "/runs/" not in path or "uploadId" in path or not process or killed:
                        return None
                    killed.append(path)
                    process[0].send_signal(signal.SIGKILL)
                    return "cut"

                self.proxy.trouble = trouble
                process.append(self.start("run", "pipeline.yaml", "--output", "json"))
                wait_until(lambda: killed, "a removal after the step's record")
                process[0].communicate()
                self.assertNotEqual(staged(), [])
                result = self.pipe(*words, "--output", "json")
                self.assertEqual((result.code, staged()), (0, []), result)
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main()
