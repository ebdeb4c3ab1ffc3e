"""A step with nodes is one job of the test bed's Slurm cluster, on as many of its nodes."""

import json
import os
import re
import signal
import unittest

from nodes_test import FAIL, WAIT, WRITE, ranks_of
from support import wait_until
from support_slurm import OnSlurm, slurm


class Nodes(OnSlurm):
    def test_processes_of_all_nodes_find_each_other_and_give_one_result(self):
        self.write("train.py", WRITE)
        self.pipeline({"train": {"nodes": {"count": 2, "processes": "gpus", "visible": "own"}, "code": ["train.py"],
                                 "command": "echo on $SLURMD_NODENAME; echo GPU $RANK=$CUDA_VISIBLE_DEVICES; python train.py",
                                 "outputs": ["model", {"name": "shards", "from": "all"}], "settings": {"resources": {"gpu_count": 2, "memory": "500MiB"}}}})
        self.run_pipe(SLURM_MEM_PER_CPU="50")  # as in an allocation: srun refuses it beside a job's --mem
        self.assertEqual(self.artifact("train.model"), "6 of 0\n")
        self.pipe("artifacts", "latest", "train.shards", "--copy", "shards")
        shards = self.folder / "shards"
        self.assertEqual({str(file.relative_to(shards)): file.read_text() for file in shards.glob("*/*")}, {"0/0": "0", "0/1": "0", "1/2": "1", "1/3": "1"})
        log = self.pipe("logs", "latest", "train").out
        self.assertEqual(len(set(re.findall(r"on (node\d)", log))), 2, log)
        self.assertEqual(sorted(re.findall(r"GPU (\d=.*)", log)), ["0=0", "1=1", "2=0", "3=1"])
        self.assertEqual(ranks_of(self), [(0, 0, 0, False), (1, 0, 0, False), (2, 1, 0, False), (3, 1, 0, False)])
        self.assert_nothing_left()

    def test_a_failure_restarts_all_processes_and_ends_the_step_after_the_last_restart(self):
        self.write("train.py", FAIL.replace("N:", "2:"))
        self.pipeline({"train": {"nodes": {"count": 2, "processes": 2, "restarts": 1}, "command": ["python", "train.py"], "code": ["train.py"]}})
        result = self.run_pipe(code=1)
        self.assertEqual(result.failure("train")["message"], "rank 2 of 4, on node 1, ended with exit code 3")
        log = self.pipe("logs", "latest", "train").out
        self.assertEqual([log.count(f"[{rank}] told to end") for rank in range(4)], [2, 2, 0, 2], log)
        self.assertEqual(ranks_of(self), [(0, 0, 9, False), (1, 0, 9, False), (2, 1, 3, True), (3, 1, 9, False)])
        self.assert_nothing_left()

    def test_another_driver_joins_the_job_of_a_killed_one_and_a_stop_reaches_each_rank_once(self):
        self.write("wait.py", WAIT)
        self.pipeline({"slow": {"nodes": 2, "command": f"echo x >> {self.folder}/effects; exec python wait.py", "code": ["wait.py"]}})
        process = self.start("run", "pipeline.yaml", "-o", "slurm")
        self.wait_for_effect(2)
        shell = self.pipe("shell", "latest", "slow", "--rank", "1", "--", "sh", "-c", "echo $RANK $SLURMD_NODENAME")
        self.assertRegex(shell.out, r"^1 node\d\n$", shell)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        resumed = self.start("resume", "latest", "--output", "json")
        wait_until(lambda: json.loads(self.pipe("show", "latest", "--output", "json").out)["status"] == "running", "the other driver")
        log = lambda: self.pipe("logs", "latest", "slow").out
        wait_until(lambda: log().count("waits") == 2, "the lines that the other driver has joined")
        resumed.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(resumed).code, 130)
        self.assertEqual((self.effects(), log().count("told to end")), (2, 2), log())
        self.assertEqual(self.jobs(), [])

    def test_a_rank_that_works_in_silence_is_left_alone_until_it_is_stopped(self):
        self.write("train.py", """
import os, signal, time
print("computes", flush=True)
end = time.monotonic() + 4
while os.environ["RANK"] != "1" or time.monotonic() < end:
    sum(range(100_000))
    time.sleep(0.02)
os.kill(os.getpid(), signal.SIGSTOP)
""")
        self.pipeline({"train": {"nodes": 2, "command": ["python", "train.py"], "code": ["train.py"], "stalled_after": "2s", "retry": {"max_retries": 0, "stalled": True}}})
        failure = self.run_pipe(code=1).failure("train")
        self.assertEqual(failure["kind"], "stalled", failure)
        self.assertIn("rank 1 is stopped", failure["message"])
        log = self.pipe("logs", "latest", "train").out
        self.assertRegex(log, r"\[1\] \d+ python\S* train.py: is stopped")
        self.assertIn("[1] Fatal Python error: Aborted", log)
        self.assertIn("in <module>", log.split("Fatal Python error")[1], "where it was stopped")
        self.assert_nothing_left()

    def test_more_nodes_than_the_cluster_has_are_an_error(self):
        self.pipeline({"train": {"nodes": 9, "command": "true"}})
        result = self.run_pipe(code=2)
        self.assertIn("'train' has 9 nodes", result.text)

    def test_a_plan_says_how_long_slurm_expects_jobs_to_wait(self):
        """Slurm is asked once for steps with equal requests. If Slurm does not answer, the plan waits for seconds only."""
        others = slurm("sbatch", "--parsable", "--nodes=4", "--exclusive", "--time=90", "-o", "/dev/null", "--wrap", "sleep 300")
        self.addCleanup(slurm, "scancel", others)
        wait_until(lambda: slurm("squeue", "-h", "-j", others, "-t", "RUNNING"), "all nodes", 300)
        self.pipeline({"step": {"command": "true", "matrix": {"i": [1, 2, 3]}, "settings": {"resources": {"memory": "1GiB"}}}, "train": {"nodes": 2, "command": "true"}})
        plan = self.pipe("plan", "-o", "slurm", **self.counted("sbatch"))
        self.assertEqual(len(re.findall(r"Slurm expects it to wait 1h\d+m", plan.out)), 2, plan)  # the instances share a row
        self.assertEqual(len(self.calls("sbatch")), 2)
        plan = self.pipe("plan", "-o", "slurm", **self.replaced("sbatch", "exec sleep 900"))
        self.assertEqual((plan.code, "expects" in plan.out), (0, False), plan)


if __name__ == "__main__":
    unittest.main()
