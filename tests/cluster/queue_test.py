"""Steps that have to wait for their turn on a real cluster, and those that never get one."""

import json
import time
import unittest

from settings_test import OwnNamespaceTest as _OwnNamespaceTest
from support_cluster import kubectl, needs_cluster
from support import wait_until


class Refused(_OwnNamespaceTest):
    def quota(self, hard: dict, name: str = "two"):
        self.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard}})
        wait_until(lambda: json.loads(self.in_namespace("get", "resourcequota", name, "-o", "json")).get("status", {}).get("hard"), "a quota in force")

    def sweep(self, count: int, seconds: int, **settings):
        self.write_steps({"sweep": {"matrix": {"i": list(range(count))}, "command": f"sleep {seconds}; echo ${{params.i}}", "settings": settings}})


def nodes() -> list[dict]:
    """Those that take pods: hollow ones of other tests have a taint."""
    return [node for node in json.loads(kubectl("get", "nodes", "-o", "json"))["items"] if not node["spec"].get("taints")]


@needs_cluster
class SweepTest(Refused):
    """Two steps where there is room for one. The second waits for longer than `pod_startup_timeout`, which itself is long enough for the pods of a busy machine."""

    # A startup timeout of 15 s was not: "the pod has not started within 15.0s".
    STARTUP, RUNS_FOR = 40, 50

    def start_sweep(self, name: str, **settings):
        # The one that has had to wait need not make another one wait.
        late = int(time.time()) + self.RUNS_FOR
        self.write_steps({name: {"matrix": {"i": [0, 1]}, "command": f"[ $(date +%s) -ge {late} ] || sleep {self.RUNS_FOR}; echo {name} ${{params.i}}",
                                 "settings": {"kubernetes": {"pod_startup_timeout": f"{self.STARTUP}s"}, **settings}}})
        (self.folder / "pipeline.yaml").rename(self.folder / f"{name}.yaml")
        return self.start("run", f"{name}.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--jobs", "2")

    def in_another_namespace(self):
        self.namespace += "x"
        kubectl("create", "namespace", self.namespace)
        self.addCleanup(kubectl, "delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found")
        self.in_namespace("create", "serviceaccount", "default", check=False)

    def test_sweeps_wider_than_a_quota_or_the_nodes_take_turns(self):
        cpus = max(int(float(node["status"]["allocatable"]["cpu"])) for node in nodes())
        runs = {"no node has room for it yet": self.start_sweep("nodes", resources={"cpu_count": 0.6 * cpus})}
        self.in_another_namespace()
        self.quota({"pods": "1"})
        runs["[kubernetes] waiting: the quota 'two' allows pods=1"] = self.start_sweep("pods")
        self.in_another_namespace()
        self.quota({"count/jobs.batch": "1"})
        runs["allows count/jobs.batch=1"] = self.start_sweep("jobs")
        for said, run in runs.items():
            result = self.finish(run, timeout=600)
            self.assertEqual((result.code, said in result.text), (0, True), (said, result))


@needs_cluster
class QueueTest(Refused):
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
class NeverTest(Refused):
    def refusal(self, code: int = 2) -> str:
        return self.run_there(code=code, as_json=False).text

    def test_quota_below_one_pod_is_refused_before_the_run(self):
        self.quota({"limits.cpu": "1"})
        self.sweep(2, 1, resources={"cpu_count": 2})
        self.assertIn("the cluster does not take its pod", self.refusal())

    def test_quota_and_range_that_ask_for_limits_are_told_before_the_run(self):
        self.quota({"limits.memory": "1Gi"})
        self.sweep(1, 1)
        told = self.refusal()
        self.assertIn("must specify limits.memory", told)
        self.assertIn("resources: {cpu_count: 1, memory: 2GiB}", told)
        self.sweep(1, 1, resources={"memory": "64MiB"})
        self.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "range"}, "spec": {"limits": [{"type": "Container", "min": {"memory": "128Mi"}}]}})
        self.assertIn("minimum memory usage per Container is 128Mi", self.refusal())

    def test_refusal_that_nobody_foresaw_is_a_failure_within_seconds(self):
        startup = {"kubernetes": {"pod_startup_timeout": "30m"}}  # for which nobody waits
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

    def test_driver_that_is_refused_is_told_at_once_and_a_setting_reaches_its_pod(self):
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

    def test_job_too_large_to_be_stored_is_told_before_the_run(self):
        # A program may start with them, and a cluster does not store the Job.
        self.write_steps({"large": {"command": ["true"], "parameters": {f"p{i}": "x" * 60000 for i in range(16)}}})
        result = self.run_there(code=2, as_json=False)
        self.assertIn("its Job would take", result.text)
        self.assertIn("pass what is long in a file", result.text)
        self.assertLess(len(result.text), 2000)

    def test_namespace_that_is_deleted_is_told_as_that(self):
        self.write_steps({"first": {"command": "true"}})
        self.in_namespace("delete", "namespace", self.namespace)
        result = self.run_there(code=3, as_json=False)
        self.assertIn(f'namespaces "{self.namespace}" not found', result.text)
        self.assertNotIn("rbac", result.text)


if __name__ == "__main__":
    unittest.main()
