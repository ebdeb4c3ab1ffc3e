"""Messages of failures of nodes, in golden files as in failures_test.py. These tests disturb the whole cluster."""

import json
import unittest

from failures_test import Failures
from support_cluster import kubectl, needs_cluster, needs_test_bed, test_bed, wait_until


@needs_cluster
@needs_test_bed
class NodeTest(Failures):
    def setUp(self):
        super().setUp()
        wait_until(self.is_well, "node1 to take pods, after what the last test did to it")

    @staticmethod
    def is_well() -> bool:
        """Returns whether node1 is ready and takes pods."""
        node = json.loads(kubectl("get", "node", "node1", "-o", "json"))
        return not node["spec"].get("taints") and any(said["type"] == "Ready" and said["status"] == "True" for said in node["status"]["conditions"])

    def expect_but_for_the_wait(self, name: str, told: str) -> None:
        """Compares as expect() does, without lines about waiting for a node: whether there are any depends on the machine's load."""
        self.expect(name, "".join(line for line in told.splitlines(keepends=True) if "no node takes it" not in line))

    def test_evicted_by_a_taint(self):
        self.step("echo begun; if [ $PIPE_ATTEMPT = 1 ]; then sleep 100; fi")
        self.addCleanup(kubectl, "taint", "nodes", "node1", "broken-", check=False)

        def disturb():
            self.running_pod()
            kubectl("taint", "nodes", "node1", "broken=yes:NoExecute")
            wait_until(lambda: len(self.pods()) == 0 or all(pod["status"].get("phase") == "Pending" for pod in self.pods()), "the eviction")
            kubectl("taint", "nodes", "node1", "broken-")

        self.expect_but_for_the_wait("evicted", self.run_beside(disturb))

    def test_preempted(self):
        room = json.loads(kubectl("get", "node", "node1", "-o", "json"))["status"]["allocatable"]["cpu"]
        high = f"high-{self.mark}"
        kubectl("create", "priorityclass", high, "--value=1000")
        self.addCleanup(kubectl, "delete", "priorityclass", high)
        self.addCleanup(kubectl, "delete", "pod", high, "--ignore-not-found", "--grace-period=1")
        self.step("echo begun; if [ $PIPE_ATTEMPT = 1 ]; then sleep 100; fi", {"cpu_count": 1})

        def disturb():
            self.running_pod()
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": high},
                   "spec": {"priorityClassName": high, "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "nodeSelector": {"kubernetes.io/hostname": "node1"},
                            "containers": [{"name": "c", "image": "debian:bookworm-slim", "imagePullPolicy": "Never", "command": ["sleep", "15"],
                                            "resources": {"requests": {"cpu": str(int(room) - 0.5)}}}]}}
            kubectl("create", "-f", "-", input=json.dumps(pod))

        self.expect_but_for_the_wait("preempted", self.run_beside(disturb))

    def test_node_that_stays_away(self):
        away = [{"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3} for key in ("unreachable", "not-ready")]
        self.step("echo begun; if [ $PIPE_ATTEMPT = 1 ]; then sleep 1000; fi", kubernetes={"tolerations": away})
        # A second node, a stand-in, stays ready: if all nodes are away, the controllers assume that they themselves are cut off, and give up no node.
        test_bed("hollow", "1")
        self.addCleanup(test_bed, "unhollow")
        # Controllers of 1.20 wait for ever for a lost node that has been deleted since, such as another test's stand-in, and then handle no other node.
        test_bed("restart-controllers")

        def disturb():
            self.running_pod()
            self.addCleanup(test_bed, "restart-kubelet", "0")
            test_bed("stop-kubelet")
            wait_until(lambda: any("deletionTimestamp" in pod["metadata"] for pod in self.pods()), "the cluster to give the node up")
            test_bed("restart-kubelet", "0")

        self.expect_but_for_the_wait("node_lost", self.run_beside(disturb))

    def test_timeout_of_a_step_whose_node_is_away_by_then(self):
        self.step("echo begun; sleep 1000", timeout="15s")

        def disturb():
            self.running_pod()
            self.addCleanup(test_bed, "restart-kubelet", "0")
            test_bed("stop-kubelet")

        self.assertIn("failed: was stopped: it ran longer than its timeout of 15", self.run_beside(disturb))

    def test_a_kubelet_that_restarts_does_not_fail_the_step(self):
        self.step("echo begun; sleep 8; echo ended")

        def disturb():
            self.running_pod()
            test_bed("restart-kubelet", "4")

        self.expect("kubelet_restarted", self.run_beside(disturb))

    def test_a_log_that_its_node_removes_before_it_was_read_is_whole_and_has_each_line_once(self):
        lines = 300_000
        self.step(f"seq {lines}; until [ -e $HOME/go ]; do sleep 0.1; done; seq {lines + 1} {2 * lines}; until [ -e $HOME/end ]; do sleep 0.1; done; echo ended")

        def disturb():
            pod = self.running_pod()
            kept = wait_until(lambda: next(self.state.rglob(".pipe-log"), None), "what the agent keeps")
            wait_until(lambda: b" 300000\n" in kept.read_bytes()[-30:], "the first half")
            self.addCleanup(test_bed, "restart-kubelet", "0")
            test_bed("stop-kubelet")  # Without a kubelet, nobody can read the log.
            (kept.parent / "go").touch()
            wait_until(lambda: b" 600000\n" in kept.read_bytes()[-30:], "the second half")
            test_bed("forget-log", pod)
            test_bed("restart-kubelet", "0")
            (kept.parent / "end").touch()

        told = self.run_beside(disturb)
        self.assertIn("succeeded", told)
        log = [line for line in self.pipe("logs", "latest", self.name).out.splitlines() if not line.startswith("[kubernetes] waiting")]
        self.assertEqual(log, [*(str(i) for i in range(1, 2 * lines + 1)), "ended"])


if __name__ == "__main__":
    unittest.main()
