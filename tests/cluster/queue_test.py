"""Steps that have to wait for a quota or a node of a real cluster, and steps whose pods the cluster never accepts."""

import json
import time
import unittest

from settings_test import OwnNamespaceTest as _OwnNamespaceTest
from support_cluster import kubectl, needs_cluster
from support import wait_until


class OwnQuotaTest(_OwnNamespaceTest):
    def quota(self, hard: dict, name: str = "two"):
        """Gives the test's namespace a quota, and returns once it is in force."""
        self.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}})
        wait_until(lambda: json.loads(self.in_namespace("get", "resourcequota", name, "-o", "json")).get("status", {}).get("hard"), "a quota in force")

    def sweep(self, count: int, seconds: int, **settings):
        """Writes a pipeline with `count` instances that sleep for some seconds."""
        self.write_steps({"sweep": {"matrix": {"i": list(range(count))}, "command": f"sleep {seconds}; echo ${{params.i}}", "settings": settings}})


def nodes() -> list[dict]:
    """Returns the nodes that take pods. Stand-ins for nodes, which other tests make, have a taint."""
    return [node for node in json.loads(kubectl("get", "nodes", "-o", "json"))["items"] if not node["spec"].get("taints")]


@needs_cluster
class SweepTest(OwnQuotaTest):
    """Two steps where there is room for one. The second waits for longer than `pod_startup_timeout`, which is long enough for the pods of a busy machine: 15 s
    were too short."""

    STARTUP, RUNS_FOR = 40, 50  # seconds: pod_startup_timeout, and how long the first step runs

    def start_sweep(self, name: str, **settings):
        """Starts a run of two steps that print `name`, and returns its process."""
        # Only the first step runs until this time; the second, which waits for it, ends at once.
        late = int(time.time()) + self.RUNS_FOR
        self.write_steps({name: {"matrix": {"i": [0, 1]}, "command": f"[ $(date +%s) -ge {late} ] || sleep {self.RUNS_FOR}; echo {name} ${{params.i}}",
                                 "settings": {"kubernetes": {"pod_startup_timeout": f"{self.STARTUP}s"}, **settings}}})
        (self.folder / "pipeline.yaml").rename(self.folder / f"{name}.yaml")
        return self.start("run", f"{name}.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--jobs", "2")

    def use_another_namespace(self):
        self.namespace += "x"
        kubectl("create", "namespace", self.namespace)
        self.addCleanup(kubectl, "delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found")
        self.in_namespace("create", "serviceaccount", "default", check=False)

    def test_sweeps_wider_than_a_quota_or_the_nodes_take_turns(self):
        cpus = max(int(float(node["status"]["allocatable"]["cpu"])) for node in nodes())
        runs = {"no node has room for it yet": self.start_sweep("nodes", resources={"cpu_count": 0.6 * cpus})}
        self.use_another_namespace()
        self.quota({"pods": "1"})
        runs["[kubernetes] waiting: the quota 'two' allows pods=1"] = self.start_sweep("pods")
        self.use_another_namespace()
        self.quota({"count/jobs.batch": "1"})
        runs["allows count/jobs.batch=1"] = self.start_sweep("jobs")
        for said, run in runs.items():
            result = self.finish(run, timeout=600)
            self.assertEqual((result.code, said in result.text), (0, True), (said, result))


@needs_cluster
class QueueTest(OwnQuotaTest):
    def test_timeout_counts_from_the_begin_of_the_command(self):
        node = nodes()[0]["metadata"]["name"]
        label = f"test-{self.mark}"
        self.write_steps({"wait": {"command": "sleep 1", "timeout": "8s", "settings": {
            "kubernetes": {"node_selectors": {label: "yes"}, "autoscaling": True}}}})
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace)
        self.addCleanup(kubectl, "label", "node", node, f"{label}-")

        def label_late():
            wait_until(lambda: self.in_namespace("get", "pods", "-o", "name"), "a pod")
            time.sleep(10)  # longer than the timeout
            kubectl("label", "node", node, f"{label}=yes")

        self.assertEqual(self.finish_beside(run, label_late).code, 0)


@needs_cluster
class NeverTest(OwnQuotaTest):
    def refusal(self, code: int = 2) -> str:
        """Returns the output of a run that is refused with this exit code."""
        return self.run_there(code=code, as_json=False).text

    def test_quota_below_one_pod_is_refused_before_the_run(self):
        self.quota({"limits.cpu": "1"})
        self.sweep(2, 1, resources={"cpu_count": 2})
        self.assertIn("the cluster does not take its pod", self.refusal())

    def test_missing_limits_that_a_quota_or_a_range_requires_are_an_error_before_the_run(self):
        self.quota({"limits.memory": "1Gi"})
        self.sweep(1, 1)
        told = self.refusal()
        self.assertIn("must specify limits.memory", told)
        self.assertIn("resources: {cpu_count: 1, memory: 2GiB}", told)
        self.sweep(1, 1, resources={"memory": "64MiB"})
        self.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range"}, "spec": {"limits": [{"type": "Container", "min": {"memory": "128Mi"}}]}})
        self.assertIn("minimum memory usage per Container is 128Mi", self.refusal())

    def test_a_pod_that_is_refused_during_the_run_fails_its_step_within_seconds(self):
        startup = {"kubernetes": {"pod_startup_timeout": "30m"}}  # The failure does not wait for this time.
        self.write_steps({"first": {"command": "until [ -e $HOME/go ]; do sleep 0.2; done"}, "second": {"command": "true", "after": ["first"], "settings": startup}})
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace)

        def forbid():
            wait_until(lambda: self.in_namespace("get", "pods", "-o", "name"), "the first step's pod")
            self.quota({"limits.memory": "1Gi"})
            (scratch,) = self.state.glob("work/*/first.1/scratch")
            (scratch / "go").touch()

        result = self.finish_beside(run, forbid)
        self.assertEqual(result.code, 1, result)
        self.assertIn("could not start: Error creating: pods", result.text)

    def test_a_refused_pod_of_a_driver_is_an_error_and_driver_job_patch_changes_the_pod(self):
        self.quota({"limits.memory": "4Gi"})
        self.sweep(1, 1, resources={"memory": "64MiB"})
        self.in_namespace("apply", "-f", "-", input=self.pipe("kubernetes", "rbac", "--namespace", self.namespace, "--subject", "ServiceAccount:pipe").out)
        result = self.run_there("--detach", code=3, as_json=False)
        self.assertIn("the cluster does not take the pod of the run's driver", result.text)
        self.assertIn("`driver_job_patch` of a profile", result.text)
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "step", "resources": {"limits": {"memory": "512Mi"}}}]}}}}
        self.write("profiles.yaml", json.dumps({"lab": {"driver_job_patch": patch}}))
        self.run_there("--detach", "--profile", "lab", as_json=False)
        self.assertEqual(self.pipe("attach", "latest").code, 0)

    def test_a_job_that_is_too_large_for_the_cluster_is_an_error_before_the_run(self):
        # A process could start with these parameters, but a cluster does not store such a large Job.
        self.write_steps({"large": {"command": ["true"], "parameters": {f"p{i}": "x" * 60000 for i in range(16)}}})
        result = self.run_there(code=2, as_json=False)
        self.assertIn("its Job would take", result.text)
        self.assertIn("pass what is long in a file", result.text)
        self.assertLess(len(result.text), 2000)

    def test_the_error_for_a_deleted_namespace_names_the_namespace(self):
        self.write_steps({"first": {"command": "true"}})
        self.in_namespace("delete", "namespace", self.namespace)
        result = self.run_there(code=3, as_json=False)
        self.assertIn(f'namespaces "{self.namespace}" not found', result.text)
        self.assertNotIn("rbac", result.text)


if __name__ == "__main__":
    unittest.main()
