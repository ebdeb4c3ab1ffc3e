"""Messages of failures on a real cluster. The whole text of each is in tests/golden/cluster/NAME.txt (PIPE_ACCEPT=1 writes it), and a test for each failure is
named after it."""

import json
import os
import re
import unittest

from support_cluster import NAME, ROOT, ClusterTest, kubectl, needs_cluster, wait_until

GOLDEN = ROOT / "tests/golden/cluster"


class Failures(ClusterTest):
    def setUp(self):
        super().setUp()
        self.name = f"s{self.mark}"

    def step(self, command: str, resources: dict | None = None, kubernetes: dict | None = None, **more) -> None:
        """Writes a pipeline with one step that has these settings. `more` has further keys of the step."""
        settings = {name: value for name, value in (("resources", resources), ("kubernetes", kubernetes)) if value}
        self.pipeline({self.name: {"command": command, "settings": settings, **more}})

    def pods(self) -> list[dict]:
        return json.loads(kubectl("get", "pods", "-l", f"pipe.pipeline={self.mark}", "-o", "json"))["items"]

    def running_pod(self) -> str:
        """Waits until a pod of the step runs, and returns its name."""
        def running():
            return [pod["metadata"]["name"] for pod in self.pods() if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]]

        return wait_until(running, "a pod that runs")[0]

    def run_beside(self, disturb, *words) -> str:
        """Runs the pipeline, calls disturb() meanwhile, and returns the output."""
        return self.finish_beside(self.start("run", "pipeline.yaml", "-o", "kubernetes", *words), disturb).text

    def expect(self, name: str, text: str) -> None:
        """Compares an output with the golden file of this name, after what differs between runs and machines has been replaced by words."""
        for pattern, word in ((self.name, "STEP"), (self.mark, "PIPELINE"), (r"pipe-STEP-?[a-z0-9-]+|pipe-s[0-9a-f]{12}[a-z0-9-]*", "POD"),
                              (r"\d{8}-\d{6}-[0-9a-z]{6}", "RUN"), (r"\b\d+(\.\d+)?(ms|s)\b|\b\d+m\d\ds\b", "TIME"), (str(self.folder), "FOLDER"),
                              (r"on node \S+", "on node NODE"), (r"\b\d+/\d+ nodes", "NODES"), (r"\d+ (node\(s\)|Insufficient|Preemption|No preemption)", r"N \1"),
                              (r"\b(line \d+:) +\d+ (Killed) +", r"\1 PID \2 "), (r" *note: there are: .*\n", ""), (r" *\| MissingClusterDNS:.*\n", ""),  # the test bed has no DNS
                              (r"TIME {2,}", "TIME  ")):  # columns are as wide as the times were
            text = re.sub(pattern, word, text)
        text = "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
        file, own = GOLDEN / f"{name}.txt", GOLDEN / f"{name}.{NAME}.txt"
        if os.environ.get("PIPE_ACCEPT"):
            GOLDEN.mkdir(exist_ok=True)
            if NAME != "kubernetes" and file.exists() and file.read_text() != text:
                file = own
            file.write_text(text)
        if own.exists():  # Servers of another version have other words.
            file = own
        self.assertEqual(text, file.read_text())
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()


@needs_cluster
class FailuresTest(Failures):
    def test_memory(self):
        self.step("tail < /dev/zero", {"memory": "64MiB"})
        self.expect("memory", self.pipe("run", "-o", "kubernetes").text)

    def test_exit_code_with_the_last_lines(self):
        self.step("echo reading; echo 'no such column: age' >&2; exit 3")
        self.expect("exit_code", self.pipe("run", "-o", "kubernetes").text)

    def test_timeout(self):
        self.step("echo begun; sleep 100", timeout="3s")
        self.expect("timeout", self.pipe("run", "-o", "kubernetes").text)

    def test_deadline_of_the_job(self):
        self.step("echo begun; sleep 100", kubernetes={"active_deadline_seconds": 15})
        # A controller of 1.20 may forget the deadline of a Job if it could not write the Job's first status; so the test tries it a second time.
        told = self.pipe("run", "-o", "kubernetes").text
        self.expect("deadline", told if "failed" in told else self.pipe("run", "-o", "kubernetes", "--no-cache").text)

    def test_no_node_takes_it(self):
        self.step("echo begun", {"gpu_count": 500}, {"autoscaling": True, "pod_startup_timeout": "5s"})
        self.expect("unschedulable", self.pipe("run", "-o", "kubernetes").text)

    def test_secret_that_is_not_there(self):
        self.step("echo $TOKEN", kubernetes={"env": [f"TOKEN=secret/{self.mark}/token"]})
        self.expect("missing_secret", self.pipe("run", "-o", "kubernetes").text)

    def test_secret_without_the_key(self):
        kubectl("create", "secret", "generic", self.mark, "--from-literal=password=x")
        self.addCleanup(kubectl, "delete", "secret", self.mark)
        self.step("echo $TOKEN", kubernetes={"env": [f"TOKEN=secret/{self.mark}/token"]})
        self.expect("missing_key", self.pipe("run", "-o", "kubernetes").text)

    def test_pod_deleted_and_begun_again(self):
        self.step("echo begun; if [ $PIPE_ATTEMPT = 1 ]; then sleep 100; fi")
        self.expect("pod_deleted", self.run_beside(lambda: kubectl("delete", "pod", self.running_pod(), "--wait=false")))

    def test_pod_deleted_again_and_again(self):
        self.step("echo begun; sleep 100", retry={"max_infrastructure_retries": 1})

        def disturb():
            first = self.running_pod()
            kubectl("delete", "pod", first, "--wait=false", "--grace-period=1")
            wait_until(lambda: self.running_pod() != first, "the second attempt's pod")
            kubectl("delete", "pod", self.running_pod(), "--wait=false", "--grace-period=1")

        self.expect("budget_used_up", self.run_beside(disturb))


if __name__ == "__main__":
    unittest.main()
