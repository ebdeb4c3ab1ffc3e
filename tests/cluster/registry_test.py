"""Images through a real registry with TLS and a login: `pipe` pushes them, and the cluster pulls them by digest with its own credentials.

The nodes of the test bed share this machine's engine. So a step is held back until its image has been pushed and removed from the engine. Then only the
registry has the image, as with any other cluster.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))
from support import PipeTest, docker, wait_until  # noqa: E402

TEST_BED = pathlib.Path("/var/lib/pipe-testbed/kubernetes/kubeconfig")
ENVIRONMENT = pathlib.Path("/var/lib/pipe-registry/environment")
REGISTRY = dict(line.split("=", 1) for line in ENVIRONMENT.read_text().splitlines()) if ENVIRONMENT.exists() else {}
PARENT = "debian:bookworm-slim"


@unittest.skipUnless(TEST_BED.exists() and os.environ.get("KUBECONFIG", str(TEST_BED)) == str(TEST_BED),
                     "no cluster whose nodes trust the registry: scripts/testbed/kubernetes has not been started, or KUBECONFIG names another")
@unittest.skipUnless(REGISTRY, "no registry: scripts/testbed/registry start")
class RegistryTest(PipeTest):
    orchestrator = "kubernetes"

    def setUp(self):
        super().setUp()
        self.repository = f"{REGISTRY['HOST']}/pipe-e2e-{self.mark}"
        self.name_space = f"pipe-{self.mark}"
        self.kubectl("create", "namespace", self.name_space)
        self.addCleanup(self.kubectl, "delete", "namespace", self.name_space, "--wait=false")
        self.addCleanup(self.forget_images)
        self.kubectl("create", "secret", "docker-registry", "registry", f"--docker-server={REGISTRY['HOST']}", f"--docker-username={REGISTRY['LOGIN']}",
                     f"--docker-password={REGISTRY['PASSWORD']}")
        wait_until(lambda: self.kubectl("get", "serviceaccounts", "--no-headers"), "a service account")

    def kubectl(self, *words: str, **more) -> str:
        return subprocess.run([ROOT / "scripts/testbed/kubernetes", "kubectl", "--namespace", self.name_space, *words], check=True,
                              stdout=subprocess.PIPE, text=True, **more).stdout.strip()

    def environment(self, env: dict) -> dict:
        return super().environment({"KUBECONFIG": str(TEST_BED), "DOCKER_CONFIG": REGISTRY["CONFIG"], **env})

    def use_pull_secret(self):
        self.kubectl("patch", "serviceaccount", "default", "-p", '{"imagePullSecrets": [{"name": "registry"}]}')

    def images_here(self) -> list[str]:
        """Returns the names of this test's images on the engine."""
        images = json.loads(subprocess.run(["curl", "-fsS", "--unix-socket", "/var/run/docker.sock", "http://d/images/json"], check=True,
                                           stdout=subprocess.PIPE).stdout)
        names = [name for image in images for key in ("RepoTags", "RepoDigests") for name in image[key] or []]
        return [name for name in names if name.startswith(self.repository)]

    def forget_images(self):
        while names := self.images_here():
            docker("image", "rm", "-f", names[0])

    def pods(self) -> list[dict]:
        return json.loads(self.kubectl("get", "pods", "-o", "json"))["items"]

    def assert_pods_are_sent_away(self):
        """Fails unless all pods are gone or being deleted; the kubelet decides when they are gone."""
        self.assertEqual([pod["metadata"]["name"] for pod in self.pods() if "deletionTimestamp" not in pod["metadata"]], [])

    def start_held_back(self, repository: str = "") -> subprocess.Popen:
        """Starts a run whose step asks for a node with a label. Once its image is removed from the engine, node1 gets the label. Returns the process."""
        self.repository = repository or self.repository
        self.write("pipeline.yaml", json.dumps({
            "name": "e2e",
            "settings": {"docker": {"parent_image": PARENT, "target_repository": self.repository, "environment": {"MARK": self.mark}}},
            "steps": {"train": {"command": "echo $MARK > ${outputs.model}; cat ${outputs.model}", "outputs": ["model"], "settings": {
                "resources": {"placement_constraints": [f"attribute:test-{self.mark} exists"]}, "kubernetes": {"autoscaling": True}}}}}))
        process = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.name_space, "--output", "json")
        wait_until(lambda: self.pods() or process.poll() is not None, "a pod")
        self.assertIsNone(process.poll(), process.communicate() if process.poll() is not None else "")
        self.forget_images()
        self.kubectl("label", "node", "node1", f"test-{self.mark}=yes")
        self.addCleanup(self.kubectl, "label", "node", "node1", f"test-{self.mark}-")
        return process

    def test_the_cluster_pulls_by_digest_an_image_that_only_the_registry_has(self):
        self.use_pull_secret()
        process = self.start_held_back()
        spec = self.pods()[0]["spec"]
        for container in spec["containers"] + spec["initContainers"]:
            self.assertRegex(container["image"], f"^{self.repository}@sha256:[0-9a-f]{{64}}$")
        agent = [volume for volume in spec["volumes"] if "agent" in json.dumps(volume)]
        self.assertEqual(agent, [{"name": "agent", "emptyDir": {}}], "the agent is no file of this machine")
        result = self.finish(process)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.artifact("train.model"), self.mark + "\n")
        self.assertEqual(len([event for event in result.events("build_started") if event["reason"].startswith("push: ")]), 2, result)
        self.assert_nothing_left()

        again = self.run_pipe("--namespace", self.name_space)
        self.assertEqual(again.steps(), {"train": "cached"})
        self.assertEqual(again.events("build_started"), [], "a result that is there needs no registry")
        changed = self.run_pipe("--namespace", self.name_space, "--no-cache")
        self.assertEqual(changed.steps(), {"train": "succeeded"}, changed)

    def test_detached_run_has_its_driver_and_its_steps_from_the_registry(self):
        role = self.pipe("kubernetes", "rbac", "--namespace", self.name_space, "--subject", "ServiceAccount:pipe").out
        self.kubectl("apply", "-f", "-", input=role)
        self.write("pipeline.yaml", json.dumps({
            "name": "e2e",
            "settings": {"docker": {"parent_image": PARENT, "target_repository": self.repository, "environment": {"MARK": self.mark}},
                         "kubernetes": {"image_pull_secrets": ["registry"]}},
            "steps": {"wait": {"command": "sleep 2; echo > ${outputs.done}", "outputs": ["done"]},
                      "train": {"command": "echo $MARK > ${outputs.model}", "inputs": {"done": "wait.done"}, "outputs": ["model"]}}}))
        result = self.pipe("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.name_space, "--detach", "--output", "json")
        self.assertEqual(result.code, 0, result)
        self.forget_images()
        images = {container["image"] for pod in self.pods() for container in pod["spec"]["containers"]}
        self.assertGreaterEqual(len(images), 1)
        for image in images:
            self.assertRegex(image, f"^{self.repository}@sha256:[0-9a-f]{{64}}$")
        wait_until(lambda: json.loads(self.pipe("show", "--output", "json").out)["status"] == "succeeded", "the run's end")
        self.assertEqual(self.artifact("train.model"), self.mark + "\n")

    def test_a_waiting_step_says_that_the_nodes_may_not_read_the_registry(self):
        process = self.start_held_back()
        waiting = "[kubernetes] waiting: the image cannot be fetched ("
        seen = []
        for line in process.stdout:
            event = json.loads(line)
            seen.append(event)
            if event["event"] == "step_log" and waiting in event["line"] and "no basic auth credentials" in event["line"]:
                break
        else:
            self.fail(f"not told: {seen}")
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assert_pods_are_sent_away()

    def test_the_failure_for_an_image_without_a_registry_advises_target_repository(self):
        process = self.start_held_back(repository=f"pipe-e2e-{self.mark}")
        result = self.finish(process)
        self.assertEqual(result.code, 1, result)
        failure = result.failure("train")
        self.assertIn("the node does not have the image", failure["message"])
        self.assertIn("`docker.target_repository: HOST/NAME`", failure["hints"][0])
        self.assert_pods_are_sent_away()


if __name__ == "__main__":
    unittest.main()
