"""${checkpoint} and outputs of failed attempts in pods that share no files with the driver: both pass through a bucket."""

import json
import signal
import unittest

from support_cluster import ClusterTest, kubectl, needs_cluster, needs_test_bed, wait_until
from support_s3 import S3Bucket, ScriptedProxy, needs_s3
from support_training import KilledTraining


@needs_cluster
@needs_test_bed
@needs_s3
class CheckpointsInABucket(KilledTraining, S3Bucket, ClusterTest):
    def checkpoints(self) -> list[str]:
        """Returns the bucket's objects that belong to checkpoints."""
        return [name for name in self.objects() if "/checkpoints/" in name]

    def heads(self) -> list[dict]:
        """Returns the records that say which uploaded state each checkpoint has."""
        files = [self.data / name for name in self.checkpoints() if name.endswith("/head.json")]
        return [json.loads(file.read_text()) for file in files]

    def test_a_training_killed_at_random_ends_with_the_weights_of_an_undisturbed_one(self):
        self.check_killed_training()

    # Each attempt adds a line, and the third one succeeds.
    COUNT = ("echo $PIPE_ATTEMPT >> ${checkpoint}/lines; mkdir -p ${checkpoint}/deep; echo x > ${checkpoint}/deep/tool; chmod +x ${checkpoint}/deep/tool;"
             " test $(wc -l < ${checkpoint}/lines) -ge 3; test -x ${checkpoint}/deep/tool; cp ${checkpoint}/lines ${outputs.lines}")

    def test_retries_and_the_next_run_from_another_state_folder_continue_where_the_attempt_before_ended(self):
        self.pipeline({"count": {"command": self.COUNT, "outputs": ["lines"], "retry": {"max_retries": 1, "delay": "0s"}}})
        self.run_pipe(code=1)
        self.assertEqual(len(self.heads()), 1)
        self.state = self.folder / "another"
        self.run_pipe()
        self.assertEqual(self.artifact("count.lines"), "1\n2\n1\n")
        self.assertIn("${checkpoint} has the files that an earlier attempt uploaded last", self.pipe("logs", "latest", "count").text)
        self.assertEqual(self.checkpoints(), [])

    def test_the_checkpoint_that_a_step_writes_at_sigterm_is_uploaded(self):
        self.pipeline({"train": {"command": "trap 'echo stopped > ${checkpoint}/why; exit 1' TERM; cat ${checkpoint}/why > ${outputs.why} && exit 0;"
                                            " echo begun; while :; do sleep 0.1; done", "outputs": ["why"]}})
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        wait_until(lambda: "begun" in self.pipe("logs", "latest", "train").out, "the step's beginning")
        run.send_signal(signal.SIGINT)
        self.finish(run)
        self.assertEqual(self.pipe("resume").code, 0)
        self.assertEqual(self.artifact("train.why"), "stopped\n")
        self.assertEqual(self.checkpoints(), [])

    def test_a_checkpoint_that_was_uploaded_incompletely_or_is_damaged_is_never_restored(self):
        """If a later checkpoint cannot be uploaded, the one before is restored; if it is damaged in the bucket, the folder is empty."""
        refuses = False
        proxy = ScriptedProxy(lambda method, path: 403 if refuses and method == "PUT" and "/checkpoints/" in path and "/head.json" in path else None)
        self.addCleanup(proxy.end)
        self.profile(endpoint=proxy.url)
        self.pipeline({"train": {"command": "cat ${checkpoint}/n > ${outputs.n} || { echo 1 > ${checkpoint}/n; until [ -e ${checkpoint}/go ]; do sleep 0.1; done; }; exit 1",
                                 "outputs": ["n"]}})
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        wait_until(self.heads, "a first state")
        refuses = True
        self.change_checkpoint("echo 2 > n; touch go", [])
        self.finish(run)
        self.assertIn("${checkpoint} was not uploaded", self.pipe("logs", "latest", "train").text)
        refuses = False
        self.run_pipe(code=1)
        self.assertEqual(self.artifact("train.n"), "1\n", "kept of the failed attempt")
        (head,) = self.heads()
        part = next(self.data / name for name in self.checkpoints() if name.endswith(head["slot"] + ".1"))
        damaged = bytearray(part.read_bytes())
        damaged[600] ^= 1
        part.write_bytes(damaged)
        earlier = self.pods()  # An ended pod is reported as running for a while.
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        self.change_checkpoint("touch go", earlier)
        self.finish(run)
        self.assertIn("${checkpoint} is empty, because the uploaded checkpoint cannot be used", self.pipe("logs", "latest", "train").text)

    def change_checkpoint(self, line: str, earlier: list[str]):
        """Runs the line in a pod that is not among the earlier ones. The line ends the step, and the end of its container may kill the line's shell."""
        pod = wait_until(lambda: [pod for pod in self.pods() if pod not in earlier], "a pod")[0]
        wait_until(lambda: "n" in kubectl("exec", pod, "--", "ls", "/pipe/checkpoint", check=False).split(), "the step's first file")
        kubectl("exec", pod, "--", "sh", "-c", f"cd /pipe/checkpoint; {line}", check=False)

    def test_what_a_failed_attempt_has_written_can_be_copied_out(self):
        self.pipeline({"bad": {"command": "mkdir ${outputs.folder}; echo half > ${outputs.folder}/f; ln -s /etc/passwd ${outputs.odd}; exit 3", "outputs": ["folder", "odd"]},
                       "slow": {"command": "echo begun > ${outputs.text}; sleep 100", "timeout": "8s", "outputs": ["text"]}},
                      execution_mode="continue_on_failure")
        self.run_pipe(code=None)
        self.assertEqual(self.artifact("slow.text"), "begun\n")
        copied = self.pipe("artifacts", "latest", "bad.folder", "--copy", self.folder / "half")
        self.assertEqual(copied.code, 0, copied)
        self.assertEqual((self.folder / "half/f").read_text(), "half\n")
        self.assertNotEqual(self.pipe("artifacts", "latest", "bad.odd", "--copy", self.folder / "odd").code, 0)
        self.assertEqual([name for name in self.objects() if "/runs/" in name], [])


if __name__ == "__main__":
    unittest.main()
