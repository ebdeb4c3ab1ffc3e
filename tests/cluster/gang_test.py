"""A step with nodes as pods of a cluster. The driver gives the pods one another's addresses, so that no name has to be looked up."""

import json
import random
import signal
import time
import unittest

from settings_test import OwnNamespaceTest as _OwnNamespaceTest
from support_cluster import ClusterTest, kubectl, needs_cluster
from nodes_test import FAIL, NCCLRAS, PATH_WITH_BIN, WRITE
from support import wait_until

PYTHON = {"parent_image": "python:3.11-slim-bookworm"}
# Connects to the other ranks, prints a line, and waits while a condition holds, which a test puts in the place of WHILE.
STAY = WRITE + """
print("here", os.environ["PIPE_RENDEZVOUS_ID"], flush=True)
while WHILE:
    time.sleep(0.1)
"""


@needs_cluster
class NodesTest(ClusterTest):
    def write_steps(self, script: str, nodes, **more):
        self.write("train.py", script)
        self.pipeline({
            self.mark: {"command": ["python3", "train.py"], "nodes": nodes, "outputs": ["model", {"name": "shards", "from": "all"}], **more},
            f"{self.mark}show": {"command": "cat ${inputs.model}; cd ${inputs.shards}; grep -r . | sort", "inputs": {"model": f"{self.mark}.model", "shards": f"{self.mark}.shards"}},
        }, PYTHON)

    def log(self, step: str = "") -> str:
        return self.pipe("logs", "latest", self.mark + step).out

    def pods(self) -> list[dict]:
        return json.loads(kubectl("get", "pods", "-l", f"pipe.pipeline={self.mark}", "-o", "json"))["items"]

    def test_pods_with_several_processes_find_each_other_and_give_one_result(self):
        self.write_steps(WRITE, {"count": 2, "processes": 2})
        result = self.run_pipe()
        self.assertEqual(self.log("show"), "6 of 0\n0/0:0\n0/1:0\n1/2:1\n1/3:1\n")
        lines = sorted((event["rank"], event["line"]) for event in result.events("step_log") if event["step"] == self.mark and event["line"].startswith("total"))
        self.assertEqual(lines, [(rank, "total 6") for rank in range(4)])
        self.assertNotIn("!met", self.log())
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()

    def test_the_rank_that_fails_first_is_named_and_ends_the_others(self):
        self.write_steps(FAIL.replace("N:", "3:"), {"count": 2, "processes": 2})
        failure = self.run_pipe(code=1).failure(self.mark)
        self.assertEqual(failure["message"], "rank 3 of 4, on node 1, ended with exit code 3")
        self.assertIn("no such batch", failure["details"])
        for rank in range(3):
            self.assertIn(f"[{rank}] told to end", self.log())
        self.assertEqual(self.jobs(), [])

    def test_after_the_removal_of_a_pod_all_ranks_begin_again_in_another_attempt(self):
        self.write_steps(STAY.replace("WHILE", "os.environ['PIPE_ATTEMPT'] == '1'"), 2)
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")

        def remove_one():
            wait_until(lambda: self.log().count("here") == 2, "both ranks")
            one = random.choice(self.pods())["metadata"]["name"]
            kubectl("delete", "pod", one, "--grace-period=0", "--force")

        result = self.finish_beside(run, remove_one)
        self.assertEqual(result.steps()[self.mark], "succeeded", result)
        self.assertEqual(result.events("step_failed")[0]["failure"]["kind"] if result.events("step_failed") else "infrastructure", "infrastructure")
        self.assertIn("1 of 0", self.log("show"))
        self.assertEqual(self.jobs(), [])

    def test_another_driver_joins_the_ranks_of_a_killed_one(self):
        self.write_steps(STAY.replace("WHILE", "not os.path.exists('/tmp/go')"), 2)
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        wait_until(lambda: self.log().count("here") == 2, "both ranks")
        run.send_signal(signal.SIGKILL)
        run.communicate()
        pods = [pod["metadata"]["name"] for pod in self.pods()]
        self.assertEqual(len(pods), 2)
        resumed = self.start("resume", "--output", "json")
        wait_until(lambda: json.loads(self.pipe("show", "latest", "--output", "json").out)["status"] == "running", "the other driver")
        for pod in pods:
            self.release_pod("pod/" + pod)
        result = self.finish(resumed)
        self.assertEqual(result.code, 0, result)
        self.assertEqual(sum(self.pods_made().values()), 3, "no pod was made again")  # Two pods of the step, and that of the step that prints.
        self.assertIn("1 of 0", self.log("show"))
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()

    def test_a_silent_rank_counts_as_stalled_only_once_it_does_nothing(self):
        """All ranks compute in silence for longer than stalled_after, and then rank 1 stops. The failure names it, and has what NCCL reports. While the ranks
        compute, a shell runs beside one of them."""
        self.write("bin/ncclras", NCCLRAS).chmod(0o755)
        self.write_steps("""
import os, time
print("computes", flush=True)
end = time.monotonic() + 10
nowhere = open("/dev/null", "wb")
while os.environ["RANK"] != "1" or time.monotonic() < end:
    sum(range(100000))
    nowhere.write(bytes(1 << 17))  # This counts as progress even if a pod gets only a hundredth of a CPU.
    time.sleep(0.02)
time.sleep(600)
""", 3, code=["train.py", "bin"], stalled_after="4s", retry={"max_retries": 0, "stalled": True}, environment={"PATH": PATH_WITH_BIN})
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        began = 0

        def open_shells():
            nonlocal began
            wait_until(lambda: self.log().count("computes") == 3, "three ranks")
            began = time.monotonic()
            shell = self.pipe("shell", "latest", self.mark, "--rank", "2", "--", "sh", "-c", "echo $RANK $WORLD_SIZE $PIPE_STEP_NAME; ls; exit 5")
            self.assertEqual((shell.code, shell.out), (5, f"2 3 {self.mark}\nbin\ntrain.py\n"), shell)
            self.assertEqual(self.pipe("shell", "latest", self.mark, "--rank", "0", "--", "no-such-program").code, 127)

        failure = self.finish_beside(run, open_shells).failure(self.mark)
        self.assertGreater(time.monotonic() - began, 10, "the process was ended while it computed")
        self.assertEqual(failure["kind"], "stalled")
        self.assertIn("rank 1 waits for something else than the 2 others", failure["message"])
        # Once, by itself or in the log's last lines, which begin with `pipe: `
        behind = "NCCL: rank 1 has launched AllReduce only up to operation 6, 2 ranks up to 7"
        self.assertEqual([line.removeprefix("pipe: ") for line in failure["details"]].count(behind), 1, failure)
        self.assertTrue(any("Fatal Python error: Aborted" in line for line in failure["details"]), failure)
        self.assertEqual(self.jobs(), [])

    def test_ctrl_c_ends_all_pods(self):
        self.write_steps(STAY.replace("WHILE", "True"), 2)
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--output", "json")
        wait_until(lambda: self.log().count("here") == 2, "both ranks")
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(run).steps()[self.mark], "cancelled")
        self.assertEqual(self.jobs(), [])
        wait_until(lambda: not self.pods(), "the end of the pods")


@needs_cluster
class RoomTest(_OwnNamespaceTest):
    def node(self) -> dict:
        """Returns the first node that takes pods."""
        return next(node for node in json.loads(kubectl("get", "nodes", "-o", "json"))["items"] if not node["spec"].get("taints"))

    def gang(self, cpus: float, count: int, seconds: int, timeout: str = "600s"):
        """Returns a step with `count` nodes of this many CPUs each, which runs for some seconds. `timeout` is its pod_startup_timeout."""
        return {"command": f"echo begins ${{node.rank}}; sleep {seconds}; echo ends", "nodes": count,
                "settings": {"resources": {"cpu_count": cpus}, "kubernetes": {"pod_startup_timeout": timeout}}}

    def test_more_nodes_than_there_is_room_for_are_refused_before_anything_is_built(self):
        cpus = float(self.node()["status"]["allocatable"]["cpu"])
        self.write_steps({"train": self.gang(cpus * 0.4, 3, 1)})
        result = self.run_there(code=2)
        self.assert_nothing_was_made(result)
        self.assertIn("has 3 nodes, and all of the cluster's together take 2 at the same time", self.run_there(code=2, as_json=False).err)

    def check_a_gang_without_room(self):
        """Fails unless the step, whose pods do not all have a node, gives back the node that one has after pod_startup_timeout."""
        wait_until(lambda: "the step releases all nodes" in self.output_of("train"), "giving back")
        self.assertRegex(self.output_of("train"), r"\[\d\] \[nodes\] rank \d of 2, on node \d, has no node 10 s after another pod of the step had one: the step releases all nodes")

    def test_a_gang_that_has_not_all_nodes_runs_once_there_is_room(self):
        """A gang is the pods of a step with nodes. Two of them do not fit while another pod has half of the machine."""
        cpus = float(self.node()["status"]["allocatable"]["cpu"])
        hold = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hold"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [
            {"name": "hold", "image": "debian:bookworm-slim", "imagePullPolicy": "Never", "command": ["sleep", "1000"], "resources": {"requests": {"cpu": str(0.4 * cpus)}}}]}}
        self.apply(hold)
        wait_until(lambda: "Running" in self.in_namespace("get", "pod", "hold", "--no-headers"), "the pod")
        self.write_steps({"train": self.gang(0.35 * cpus, 2, 1, "10s")})
        run = self.start("run", "pipeline.yaml", "-o", "kubernetes", "--namespace", self.namespace, "--output", "json")

        def make_room():
            self.check_a_gang_without_room()
            self.assertNotIn("begins", self.output_of("train"))
            self.in_namespace("delete", "pod", "hold")

        result = self.finish_beside(run, make_room)
        self.assertEqual(result.steps(), {"train": "succeeded"}, result)
        self.assertEqual(self.output_of("train").count("ends"), 2)


if __name__ == "__main__":
    unittest.main()
