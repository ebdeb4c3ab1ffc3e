"""Shared parts of tests on a cluster: the cluster, commands for it, and the objects that a test makes there."""

import collections
import json
import os
import pathlib
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from support import PipeTest, Result, wait_until  # noqa: E402, F401

NAME = os.environ.get("TEST_BED", "kubernetes")  # The name of a script in scripts/testbed.
TEST_BED = pathlib.Path(f"/var/lib/pipe-testbed/{NAME}/kubeconfig")
KUBECONFIG = os.environ.get("KUBECONFIG") or (str(TEST_BED) if TEST_BED.exists() else "")
needs_cluster = unittest.skipUnless(KUBECONFIG, f"no cluster: KUBECONFIG is not set, and scripts/testbed/{NAME} has not been started")
needs_test_bed = unittest.skipUnless(KUBECONFIG == str(TEST_BED), "not the test bed's cluster: others are left alone")


def test_bed(*words: str, check: bool = True, **more) -> str:
    """Runs a command of the test bed's script, and returns its stdout."""
    done = subprocess.run([ROOT / "scripts/testbed" / NAME, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **more)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def kubectl(*words: str, **more) -> str:
    """Runs kubectl on the cluster, and returns its stdout."""
    return test_bed("kubectl", "--kubeconfig", KUBECONFIG, *words, **more)


class ClusterTest(PipeTest):
    orchestrator = "kubernetes"

    def environment(self, env: dict) -> dict:
        return super().environment({"KUBECONFIG": KUBECONFIG, **env})

    def pipeline(self, steps: dict, docker_settings: dict | None = None, **top) -> pathlib.Path:
        """Writes pipeline.yaml without the settings that apply only to a Docker Engine. The pipeline's name is the test's mark."""
        document = {"name": self.mark, "settings": {"docker": {"parent_image": "debian:bookworm-slim", **(docker_settings or {})}}, "steps": steps, **top}
        return self.write("pipeline.yaml", json.dumps(document, indent=2))

    def finish_beside(self, process: subprocess.Popen, disturb) -> Result:
        """Calls disturb() while a run goes on, waits for the run, and returns its Result. Fails if disturb() fails."""
        errors = []

        def work():
            try:
                disturb()
            except Exception as error:  # noqa: BLE001
                errors.append(error)
                process.terminate()  # The test has failed, and need not wait for the run.

        thread = threading.Thread(target=work)
        thread.start()
        result = self.finish(process, timeout=600)
        thread.join()
        self.assertEqual(errors, [], result.text)
        return result

    def jobs(self) -> list[str]:
        """Returns the existing Jobs of this test's pipeline."""
        return kubectl("get", "jobs", "-l", f"pipe.pipeline={self.mark}", "-o", "name").split()

    def release_pod(self, pod: str, *options: str):
        """Makes the file /tmp/go in a pod (pod/NAME), whose step waits for it. The shell that makes it may be killed when the step's container ends."""
        runs = lambda: kubectl(*options, "get", pod, "--ignore-not-found", "-o", "jsonpath={.status.phase}") == "Running"  # noqa: E731
        say = lambda: kubectl(*options, "exec", pod, "--", "sh", "-c", "touch /tmp/go; echo said", check=False)  # noqa: E731
        wait_until(lambda: "said" in say() or not runs(), f"the file /tmp/go in {pod}")

    def pods_made(self) -> collections.Counter:
        """Returns how many pods each of this test's Jobs has ever had, according to the cluster's events."""
        made = collections.Counter()
        for event in json.loads(kubectl("get", "events", "--field-selector", "reason=SuccessfulCreate,involvedObject.kind=Job", "-o", "json"))["items"]:
            name = event["involvedObject"]["name"]
            if self.mark in name:
                made[name] += event.get("count") or 1
        return made


class NamespaceTest(ClusterTest):
    """A test that has a namespace of its own."""

    def setUp(self):
        super().setUp()
        self.namespace = f"pipe-test-{self.mark}"
        kubectl("create", "namespace", self.namespace)
        self.addCleanup(kubectl, "delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found")

    def in_namespace(self, *words: str, **more) -> str:
        return kubectl("-n", self.namespace, *words, **more)
