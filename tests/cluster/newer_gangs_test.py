"""Steps with nodes on servers of today (scripts/testbed/kubernetes-newer): the real controllers of Indexed Jobs and of Kueue."""

import json
import os
import signal
import subprocess
import unittest

os.environ["TEST_BED"] = "kubernetes-newer"
os.environ.pop("KUBECONFIG", None)

import gang_test  # noqa: E402
from settings_test import OwnNamespaceTest as _OwnNamespaceTest  # noqa: E402
from support_cluster import ROOT, kubectl, needs_cluster, test_bed  # noqa: E402
from support import wait_until  # noqa: E402


def setUpModule():
    if getattr(Queued, "__unittest_skip__", False):
        return
    started = subprocess.run([ROOT / "scripts/testbed/kubernetes-newer", "kueue", "start"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if started.returncode == 77:
        raise unittest.SkipTest(started.stdout)
    if started.returncode:
        raise AssertionError(started.stdout)
    test_bed("load", "debian:bookworm-slim", "python:3.11-slim-bookworm")  # this node has an image store of its own


class Nodes(gang_test.NodesTest):
    """A Job for each node."""


class Room(gang_test.RoomTest):
    def check_a_gang_without_room(self):
        """A server with PodGroups (KUBERNETES=1.37.2) gives a node to none of them."""
        if "podgroups" not in kubectl("api-resources", "--api-group=scheduling.k8s.io", "-o", "name"):
            super().check_a_gang_without_room()
            return
        wait_until(lambda: "pod group is unschedulable" in self.output_of("train"), "the scheduler's words")
        pods = json.loads(self.in_namespace("get", "pods", "-l", "pipe.step=train", "-o", "json"))["items"]
        self.assertEqual([pod["spec"].get("nodeName") for pod in pods], [None, None])


class Queue:
    """A queue `training` of Kueue in a namespace, which admits this many pods at the same time."""

    def __init__(self, test: unittest.TestCase, namespace: str, pods: int, topology: str = "", **more):
        self.name = test.mark
        flavor = {"nodeLabels": {"kubernetes.io/os": "linux"}, "topologyName": self.name} if topology else {}
        objects = [self.object("Topology", {"levels": [{"nodeLabel": topology}]})] if topology else []
        objects += [self.object("ResourceFlavor", flavor), self.object("ClusterQueue", {**self.quota(pods), "namespaceSelector": {}, **more}),
                    self.object("WorkloadPriorityClass", value=1000),
                    self.object("LocalQueue", {"clusterQueue": self.name}, {"name": "training", "namespace": namespace})]
        for each in objects:
            kind = f"{each['kind'].lower()}.kueue.x-k8s.io"
            test.addCleanup(kubectl, "delete", kind, each["metadata"]["name"], "-n", namespace, "--wait=false", "--ignore-not-found")
        kubectl("create", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        wait_until(lambda: "True" in kubectl("get", "clusterqueue", self.name, "-o", "jsonpath={.status.conditions[?(@.type=='Active')].status}"), "an active queue")

    def object(self, kind: str, spec: dict | None = None, metadata: dict | None = None, **more) -> dict:
        return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata or {"name": self.name}, **({"spec": spec} if spec is not None else {}), **more}

    def quota(self, pods: int) -> dict:
        return {"resourceGroups": [{"coveredResources": ["pods"], "flavors": [{"name": self.name, "resources": [{"name": "pods", "nominalQuota": pods}]}]}]}

    def widen(self, pods: int):
        kubectl("patch", "clusterqueue", self.name, "--type=merge", "-p", json.dumps({"spec": self.quota(pods)}))


@needs_cluster
class Queued(gang_test.NodesTest):
    """A step with nodes is one Indexed Job, which Kueue admits."""

    def setUp(self):
        super().setUp()
        Queue(self, "default", 4)

    def pipeline(self, steps: dict, docker_settings: dict | None = None, **top):
        for step in steps.values():
            if "nodes" in step:
                step["settings"] = {"kubernetes": {"queue_name": "training"}}
        return super().pipeline(steps, docker_settings, **top)

    def tearDown(self):
        wait_until(lambda: not kubectl("get", "workloads.kueue.x-k8s.io", "-n", "default", "-o", "name"), "the end of the Workloads")
        self.assertGreaterEqual(max(self.pods_made().values()), 2, "each pod had a Job of its own")
        super().tearDown()


@needs_cluster
class Kueue(_OwnNamespaceTest):
    def write_gang(self, command: str, **kubernetes):
        self.write_steps({"train": {"command": command, "nodes": 2, "settings": {"kubernetes": {"queue_name": "training", **kubernetes}}}})

    def start_there(self):
        return self.start("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--output", "json")

    def objects(self, kind: str) -> list[dict]:
        return json.loads(self.in_namespace("get", kind, "-o", "json"))["items"]

    def assert_nothing_is_left(self):
        wait_until(lambda: not self.objects("jobs,secrets,workloads.kueue.x-k8s.io,pods"), "the end of all objects")

    def test_a_gang_waits_for_the_quota_of_all_its_pods(self):
        queue = Queue(self, self.namespace, 1)
        self.write_gang("echo begins ${node.rank}; sleep 1; echo ends")
        run = self.start_there()

        def widen():
            wait_until(lambda: "Kueue does not admit its Job yet: couldn't assign flavors" in self.output_of("train"), "Kueue's words")
            (job,) = self.objects("jobs")
            self.assertEqual([job["spec"][field] for field in ("completionMode", "completions", "parallelism", "suspend")], ["Indexed", 2, 2, True])
            self.assertEqual(self.objects("pods"), [])
            queue.widen(2)

        result = self.finish_beside(run, widen)
        self.assertEqual(result.steps(), {"train": "succeeded"}, result)
        self.assertEqual(self.output_of("train").count("ends"), 2)
        self.assert_nothing_is_left()

    def test_a_gang_that_is_stopped_while_it_waits_leaves_nothing(self):
        Queue(self, self.namespace, 1)
        self.write_gang("true")
        run = self.start_there()
        wait_until(lambda: self.objects("jobs"), "the Job")
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(run).steps(), {"train": "cancelled"})
        self.assert_nothing_is_left()

    def test_a_gang_that_kueue_preempts_waits_in_the_queue_again(self):
        queue = Queue(self, self.namespace, 2, preemption={"withinClusterQueue": "LowerPriority"})
        self.write_gang("echo begins ${node.rank}; sleep 20; echo ends")
        run = self.start_there()
        pod = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
               "containers": [{"name": "other", "image": "debian:bookworm-slim", "imagePullPolicy": "Never", "command": ["sleep", "3"]}]}
        other = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"suspend": True, "completions": 2, "parallelism": 2, "template": {"spec": pod}},
                 "metadata": {"name": "other", "labels": {"kueue.x-k8s.io/queue-name": "training", "kueue.x-k8s.io/priority-class": queue.name}}}

        def preempt():
            wait_until(lambda: self.output_of("train").count("begins") == 2, "both ranks")
            self.apply(other)
            self.in_namespace("wait", "--for=condition=Complete", "--timeout=120s", "job/other")
            self.in_namespace("delete", "job", "other")

        result = self.finish_beside(run, preempt)
        self.assertEqual(result.steps(), {"train": "succeeded"}, result)
        shown = json.loads(self.pipe("show", "latest", "train", "--output", "json").out)
        self.assertEqual(len(shown["attempts"]), 2, shown)
        failure = shown["attempts"][0]["failure"]
        self.assertEqual(failure["kind"], "infrastructure", failure)
        self.assertIn("was ended because its Job was suspended: Kueue has evicted it: Preempted to accommodate a workload", failure["message"])
        self.assert_nothing_is_left()

    def test_kueue_chooses_nodes_of_one_topology(self):
        Queue(self, self.namespace, 2, topology="kubernetes.io/hostname")
        self.write_gang("echo begins ${node.rank}; sleep 8", topology={"required": "kubernetes.io/hostname"})
        run = self.start_there()

        def look():
            wait_until(lambda: self.output_of("train").count("begins") == 2, "both ranks")
            (workload,) = self.objects("workloads.kueue.x-k8s.io")
            self.assertIn("node1", json.dumps(workload["status"]["admission"]["podSetAssignments"][0]["topologyAssignment"]))

        self.assertEqual(self.finish_beside(run, look).steps(), {"train": "succeeded"})
        self.assert_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
