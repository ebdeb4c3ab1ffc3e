"""Current servers (scripts/testbed/kubernetes-newer: 1.35, a kubelet with containerd): they pass the tests of other clusters, and tests of their own."""

import json
import os
import pathlib
import signal
import subprocess
import unittest

os.environ["TEST_BED"] = "kubernetes-newer"
os.environ.pop("KUBECONFIG", None)

import failures_test  # noqa: E402
import faults_test  # noqa: E402
import node_failures_test  # noqa: E402
import settings_test  # noqa: E402
from support_cluster import NAME, ROOT, NamespaceTest, kubectl, needs_cluster, test_bed, wait_until  # noqa: E402
from support import Result  # noqa: E402


def setUpModule():
    if not getattr(OnServersOfToday, "__unittest_skip__", False):
        test_bed("load", "debian:bookworm-slim")  # This node does not share the engine's images.


class Failures(failures_test.FailuresTest):
    pass


class Nodes(node_failures_test.NodeTest):
    pass


class Faults(faults_test.FaultsTest):
    pass


class Preflight(settings_test.PreflightTest):
    pass


class Honoured(settings_test.HonouredTest):
    pass


POD_LOGS = pathlib.Path("/var/lib/pipe-testbed/kubernetes-newer/pod-logs")
EVERY_SETTING = {
    "active_deadline_seconds": 600,
    "additional_pod_spec_args": {"dnsPolicy": "Default"},
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                     {"weight": 1, "preference": {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu"]}]}}]},
                 "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                     {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"team": "ml"}}}}]}},
    "annotations": {"example.org/note": "a b"},
    "autoscaling": True,
    "container_security_context": {"runAsUser": 4321, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
                                   "appArmorProfile": {"type": "Unconfined"}},
    "env": ["TOKEN=secret/hugging-face/token", "MODE=configmap/conf/mode", {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
    "env_from": ["secret/database"],
    "gpu_resource": "amd.com/gpu",
    "host_ipc": True,
    "image_pull_secrets": ["registry"],
    "job_patch": {"spec": {"template": {"spec": {"hostname": "box"}}}},
    "labels": {"team": "ml"},
    "node_selectors": {"kubernetes.io/os": "linux"},
    "pod_security_context": {"fsGroup": 4321, "fsGroupChangePolicy": "OnRootMismatch", "supplementalGroups": [5], "supplementalGroupsPolicy": "Merge"},
    "pod_startup_timeout": "1m",
    "priority_class_name": "low",
    "queue_name": "training",
    "topology": {"preferred": "kubernetes.io/hostname"},
    "resources": {"requests": {"cpu": "10m"}, "limits": {"memory": "64Mi", "ephemeral-storage": "1Gi"}},
    "runtime_class_name": "fast",
    "scheduler_name": "default-scheduler",
    "service_account_name": "trainer",
    "tolerations": ["dedicated=ml:NoSchedule", {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
    "ttl_seconds_after_finished": 60,
    "volume_mounts": [{"name": "cache", "mountPath": "/cache", "recursiveReadOnly": "Disabled", "readOnly": True}],
    "volumes": ["pvc/datasets:/data:ro", "secret/database:/etc/db", "configmap/conf:/etc/conf", {"name": "cache", "emptyDir": {"sizeLimit": "1Mi"}}],
}


@needs_cluster
class OnServersOfToday(NamespaceTest):
    def write_step(self, command: str, resources: dict | None = None, **kubernetes) -> None:
        """Writes a pipeline with one step that has these settings and no retries."""
        settings = {"resources": resources or {}, "kubernetes": kubernetes}
        self.pipeline({"train": {"command": command, "retry": {"max_infrastructure_retries": 0}, "settings": settings}})

    def run_there(self) -> tuple[str, ...]:
        """Returns the words of a run in the test's namespace."""
        return "run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace

    def pods(self) -> list[dict]:
        return json.loads(self.in_namespace("get", "pods", "-o", "json"))["items"]

    def running_pod(self) -> dict:
        return wait_until(lambda: next((pod for pod in self.pods() if pod["status"]["phase"] == "Running"), None), "a pod that runs")

    def run_beside(self, disturb) -> Result:
        return self.finish_beside(self.start(*self.run_there(), PIPE_LOG="warn"), disturb)

    def test_the_server_is_a_current_one(self):
        server = json.loads(kubectl("version", "-o", "json"))["serverVersion"]
        self.assertGreaterEqual((int(server["major"]), int(server["minor"])), (1, 35), server)

    def test_the_server_accepts_every_setting_without_a_warning(self):
        keys = json.loads(self.pipe("schema").out)["properties"]["settings"]["properties"]["kubernetes"]["properties"]
        self.assertEqual(set(EVERY_SETTING), set(keys), "EVERY_SETTING lacks a new setting")
        self.write_step("true", {"gpu_count": 2, "memory": "128MiB", "shm_size": "64MiB", "cpu_count": 0.5}, **EVERY_SETTING)
        manifests = self.pipe("render", "pipeline.yaml", "-o", "kubernetes")
        self.assertEqual(manifests.code, 0, manifests)
        self.assert_taken_without_a_warning(manifests.out)
        with self.assertRaisesRegex(AssertionError, "unknown field"):  # The check itself finds an error.
            self.assert_taken_without_a_warning(manifests.out.replace("activeDeadlineSeconds", "activeDeadlineSecond"))

    def test_the_server_accepts_the_printed_role_without_a_warning(self):
        for subject in ("User:ann", "Group:ml", "ServiceAccount:trainer"):
            self.assert_taken_without_a_warning(self.pipe("kubernetes", "rbac", "--namespace", self.namespace, "--subject", subject).out)

    def test_queue_of_a_newer_kueue_is_found(self):
        """The test makes the definition of Kueue's queues in the only version that newer releases serve. There is no Kueue, so that the Job waits for ever."""
        any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                      "metadata": {"name": "localqueues.kueue.x-k8s.io", "annotations": {"api-approved.kubernetes.io": "unapproved, a test's"}},
                      "spec": {"group": "kueue.x-k8s.io", "scope": "Namespaced", "names": {"plural": "localqueues", "singular": "localqueue", "kind": "LocalQueue"},
                               "versions": [{"name": "v1beta2", "served": True, "storage": True, "schema": {"openAPIV3Schema": any_object}}]}}
        kubectl("create", "-f", "-", input=json.dumps(definition))
        self.addCleanup(kubectl, "delete", "crd", "localqueues.kueue.x-k8s.io")
        queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "training"}}
        wait_until(lambda: self.in_namespace("create", "-f", "-", input=json.dumps(queue), check=False), "the new kind")
        self.write_step("true", queue_name="trainin")
        self.assertIn("did you mean 'training'?", self.pipe(*self.run_there()).err)
        self.write_step("true", queue_name="training")
        run = self.start(*self.run_there())
        wait_until(lambda: json.loads(self.in_namespace("get", "jobs", "-o", "json"))["items"], "the Job that waits in the queue")
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(run).code, 130)
        self.assertEqual(self.in_namespace("get", "jobs", "-o", "name"), "")

    def assert_taken_without_a_warning(self, manifests: str):
        command = [ROOT / "scripts/testbed" / NAME, "kubectl", "-n", self.namespace, "create", "--dry-run=server", "--validate=strict", "-f", "-"]
        done = subprocess.run(command, input=manifests, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_pod_is_found_by_its_job_and_nothing_is_left_of_either_when_it_is_stopped(self):
        self.write_step("echo begun; sleep 1000")
        run = self.start(*self.run_there())
        meta = self.running_pod()["metadata"]
        self.assertIn("batch.kubernetes.io/job-tracking", meta["finalizers"])
        self.assertEqual(meta["labels"]["batch.kubernetes.io/job-name"], meta["labels"]["job-name"])
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(run).code, 130)
        wait_until(lambda: not self.pods(), "the end of the pod")
        self.assertEqual(self.in_namespace("get", "jobs,secrets", "-o", "name"), "")

    def test_the_failure_of_a_pod_that_fills_its_disk_has_the_words_of_its_kubelet(self):
        self.write_step("echo begun; head -c 60000000 /dev/zero > /var/tmp/x; sleep 1000", resources={"limits": {"ephemeral-storage": "10Mi"}},
                        container_security_context={"runAsUser": 0})
        result = self.pipe(*self.run_there())
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.text, r"the pod \S+ on node node1 was evicted by its node: .*ephemeral")
        self.assertIn("a step that says what it needs under `resources`", result.text)

    def test_the_failure_of_a_pod_that_is_evicted_says_that_its_node_may_be_drained(self):
        self.write_step("echo begun; sleep 1000")

        def disturb():
            name = self.running_pod()["metadata"]["name"]
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": self.namespace}}
            path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"
            kubectl("create", "--raw", path, "-f", "-", input=json.dumps(eviction))

        result = self.run_beside(disturb)
        self.assertEqual(result.code, 1, result)
        self.assertRegex(result.text, r"the pod \S+ on node node1 was evicted, as when a node is drained")

    def test_a_log_that_its_node_removes_before_it_is_read_is_whole_and_has_each_line_once(self):
        """A kubelet serves only the newest of a log's files; older lines cannot be read from it a second time."""
        rounds, lines = 7, 400_000
        test_bed("restart-kubelet", "0", "containerLogMaxSize: 1Mi", "containerLogMaxFiles: 2", "containerLogMonitorInterval: 3s")
        self.addCleanup(test_bed, "restart-kubelet", "0")
        self.write_step(f"for i in $(seq 0 {rounds - 1}); do seq $((i * {lines})) $((i * {lines} + {lines - 1})); sleep 1; done")

        def disturb():
            self.running_pod()
            wait_until(lambda: list(POD_LOGS.glob(f"{self.namespace}_*/step/0.log.*")), "a log that is rotated")
            for _ in range(2):
                test_bed("restart-api")

        result = self.run_beside(disturb)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.pipe("logs", "latest", "train").out, "".join(f"{i}\n" for i in range(rounds * lines)))

    def test_the_log_of_a_pod_that_was_removed_before_it_was_read_is_whole(self):
        self.write_step("seq 1000000; until [ -e $HOME/go ]; do sleep 0.1; done; seq 1000001 2000000; sleep 1000")

        def disturb():
            pod = self.running_pod()["metadata"]["name"]
            wait_until(lambda: next(self.state.rglob(".pipe-log"), None) and next(self.state.rglob(".pipe-log")).stat().st_size > 10_000_000, "the first half")
            test_bed("stop-kubelet")  # Without a kubelet, nobody can read the log.
            self.addCleanup(test_bed, "restart-kubelet", "0")
            kept = next(self.state.rglob(".pipe-log"))
            (kept.parent / "go").write_text("")
            wait_until(lambda: b"2000000" in kept.read_bytes()[-100:], "the second half")
            kubectl("-n", self.namespace, "delete", "pod", pod, "--force", "--grace-period=0")

        result = self.run_beside(disturb)
        self.assertEqual(result.code, 1, result)
        self.assertEqual([line for line in self.pipe("logs", "latest", "train").out.splitlines() if line.isdigit()], [str(i) for i in range(1, 2_000_001)])

    def test_a_warning_of_the_server_is_shown_once(self):
        kubectl("label", "namespace", self.namespace, "pod-security.kubernetes.io/warn=restricted")
        self.pipeline({name: {"command": "true", "cache": False} for name in ("one", "two")})
        result = self.pipe(*self.run_there())
        self.assertEqual(result.code, 0, result)
        self.assertEqual(result.err.count("would violate PodSecurity"), 1, result)


if __name__ == "__main__":
    unittest.main()
