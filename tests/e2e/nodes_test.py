"""A step with nodes: its processes, the ranks, start together, find each other, fail together and give one result."""

import json
import os
import signal
import unittest

from gpu_local_test import UUIDS, GpuTest
from support import PipeTest, docker, wait_until

# Adds the ranks up over sockets, as a framework does: rank 0 listens at MASTER_ADDR:MASTER_PORT, and the others connect to it.
SUM = """
import json, os, socket, time
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
main = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
def connect():
    for _ in range(600):
        try:
            return socket.create_connection(main)
        except OSError:
            time.sleep(0.05)
    raise SystemExit("nobody listens")
if rank == 0:
    server = socket.create_server(main)
    peers = [server.accept()[0] for _ in range(world - 1)]
    total = rank + sum(int(peer.recv(100)) for peer in peers)
    for peer in peers:
        peer.sendall(str(total).encode())
else:
    peer = connect()
    peer.sendall(str(rank).encode())
    total = int(peer.recv(100))
print("total", total, flush=True)
"""
# Besides, each node's first rank writes the model, SUM of RANK, and each rank a shard with its node.
WRITE = SUM + """
open(os.environ["PIPE_OUTPUT_MODEL"], "w").write(f"{total} of {rank}\\n") if os.environ["LOCAL_RANK"] == "0" else None
os.makedirs(os.environ["PIPE_OUTPUT_SHARDS"], exist_ok=True)
open(os.environ["PIPE_OUTPUT_SHARDS"] + f"/{rank}", "w").write(os.environ["NODE_RANK"])
"""
# Rank N fails once all ranks have met, and the others wait. They print a line at SIGTERM. A test replaces `N:`.
FAIL = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (print('told to end', flush=True), sys.exit(9)))\n" + SUM + """
if rank == N:
    print("no such batch", flush=True)
    sys.exit(3)
time.sleep(600)
"""
# A stand-in for NCCL's client ncclras, which prints what that of NCCL 2.29 would.
NCCLRAS = """#!/bin/sh
echo "a stand-in of NCCL's client, asked with $*
Errors
======

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  2 ranks have launched up to operation 7
  Rank 1 has launched up to operation 6 -- GPU 1 managed by process $$ on node here"
"""
PATH_WITH_BIN = "./bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Waits for SIGTERM, and prints a line then.
WAIT = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: (print('told to end', flush=True), sys.exit(9))); print('waits', flush=True); time.sleep(600)"


def ranks_of(test) -> list[tuple]:
    """Returns rank, node, exit code, and whether it failed first, of each process of the latest run's step `train`."""
    step = json.loads(test.pipe("show", "latest", "train", "--output", "json").out)
    return [(one["rank"], one["node_rank"], one["exit_code"], one.get("failed_first", False)) for one in step["attempts"][-1]["ranks"]]


class Local(PipeTest):
    orchestrator = "local"

    def log(self, step: str, *words) -> str:
        """Returns the lines of a step of the latest run."""
        return self.pipe("logs", "latest", step, *words).out

    def test_ranks_find_each_other_and_give_one_result(self):
        self.write("train.py", WRITE)
        self.pipeline({
            "train": {"command": "python3 train.py", "nodes": {"count": "${params.nodes}", "processes": 2}, "outputs": ["model", {"name": "shards", "from": "all"}]},
            "show": {"command": "cat ${inputs.model}; cd ${inputs.shards}; grep -r . | sort", "inputs": {"model": "train.model", "shards": "train.shards"}},
        }, parameters={"nodes": 2})
        result = self.run_pipe()
        self.assertEqual(self.log("show"), "6 of 0\n0/0:0\n0/1:0\n1/2:1\n1/3:1\n")
        lines = {(event["rank"], event["line"]) for event in result.events("step_log") if event["step"] == "train"}
        self.assertEqual(lines, {(rank, "total 6") for rank in range(4)})
        self.assertEqual(sorted(self.log("train").splitlines()), [f"[{rank}] total 6" for rank in range(4)])
        self.assertEqual(self.log("train", "--rank", "3"), "total 6\n")
        for step, rank, said in (("train", "4", "its ranks are 0 to 3"), ("show", "0", "it is one process"), ("show", "1", "it is one process")):
            refused = self.pipe("logs", "latest", step, "--rank", rank)
            self.assertEqual(refused.code, 2, refused)
            self.assertIn(f"'{step}' has no rank {rank}: {said}", refused.err)
        self.assertEqual(self.run_pipe().steps(), {"train": "cached", "show": "cached"})
        self.assertEqual(self.run_pipe("--param", "nodes=1").steps()["train"], "succeeded")
        self.assertIn("1 of 0", self.log("show"))

    def test_the_terminal_names_the_rank_of_a_line(self):
        self.pipeline({"train": {"command": "echo hello from ${node.rank} of ${node.count}", "nodes": 2}})
        shown = self.pipe("run", "pipeline.yaml", "--orchestrator", "local", "--output", "text").text
        self.assertIn("train/0", shown)
        self.assertRegex(shown, r"train/1\S* .*hello from 1 of 2")

    def test_the_first_that_fails_ends_the_others(self):
        self.write("train.py", FAIL.replace("N:", "2:"))
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 3}})
        result = self.run_pipe(code=1)
        failure = result.failure("train")
        self.assertEqual(failure["kind"], "exit_code", failure)
        self.assertEqual(failure["message"], "rank 2 of 3, on node 2, ended with exit code 3")
        self.assertEqual(failure["details"], ["total 3", "no such batch"])
        log = self.log("train").splitlines()
        for line in ("[0] told to end", "[1] told to end", "[2] no such batch"):
            self.assertIn(line, log)
        self.assertEqual(ranks_of(self), [(0, 0, 9, False), (1, 1, 9, False), (2, 2, 3, True)])
        self.assertRegex(self.pipe("show", "latest", "train").out, r"(?m)^2 +2 .* 3 .*failed first$")

    def test_a_rank_that_is_killed_is_named_and_none_outlives_it(self):
        self.write("train.py", "import os\nprint('pid', os.getpid(), flush=True)\n" + WAIT)
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": {"count": 2, "processes": 2}}})
        run = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        pids = wait_until(lambda: self.pids(4), "four processes")
        os.kill(pids[1], signal.SIGKILL)
        failure = self.finish(run).failure("train")
        self.assertEqual(failure["kind"], "signal", failure)
        self.assertIn("rank 1 of 4, on node 0, ", failure["message"])
        for pid in pids.values():
            self.assertFalse(os.path.exists(f"/proc/{pid}"), pids)

    def pids(self, number: int) -> dict[int, int]:
        """Returns the process ids by rank, once `number` processes have printed theirs; before, nothing."""
        lines = [line.split() for line in self.log("train").splitlines() if " pid " in line]
        return {int(line[0][1:-1]): int(line[2]) for line in lines} if len(lines) == number else {}

    def test_ctrl_c_ends_all_ranks(self):
        self.write("train.py", "import os\nprint('pid', os.getpid(), flush=True)\n" + WAIT)
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 3}})
        run = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        pids = wait_until(lambda: self.pids(3), "three processes")
        run.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(run).steps(), {"train": "cancelled"})
        for pid in pids.values():
            self.assertFalse(os.path.exists(f"/proc/{pid}"), pids)

    def test_a_retry_has_another_rendezvous(self):
        self.pipeline({"train": {"command": "echo id $PIPE_RENDEZVOUS_ID port $MASTER_PORT; test $PIPE_ATTEMPT = 2", "nodes": 2, "retry": {"max_retries": 1}}})
        result = self.run_pipe()
        said = {event["attempt"]: event["line"] for event in result.events("step_log") if event["line"].startswith("id ")}
        self.assertTrue(said[1].split()[1].endswith("-train-1") and said[2].split()[1].endswith("-train-2"), said)
        self.assertNotEqual(said[1].split()[3], said[2].split()[3])

    def test_all_ranks_begin_again_in_place_under_another_id(self):
        self.write("train.py", SUM + """
print("begins", os.environ["PIPE_RENDEZVOUS_ID"], os.environ["PIPE_ATTEMPT"], flush=True)
if rank == 0:
    peers[0].shutdown(socket.SHUT_WR)
if not os.environ["PIPE_RENDEZVOUS_ID"].endswith("-train-1-2"):
    if rank == 1:
        peer.recv(1)  # Waits until rank 0 has printed its line.
        os.kill(os.getpid(), 9)
    time.sleep(600)
""")
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": {"count": 2, "restarts": 2}}})
        self.run_pipe()
        begins = [line.split() for line in self.log("train").splitlines() if "begins" in line]
        self.assertEqual({(line[0], line[2].rsplit("-train-")[1], line[3]) for line in begins},
                         {(rank, number, "1") for rank in ("[0]", "[1]") for number in ("1", "1-1", "1-2")})
        self.assertRegex(self.log("train"), r"\[1\] \[nodes\] .*; all processes start again \(restart 2 of 2\)")
        self.pipeline({"train": {"command": "exit 3", "nodes": {"count": 2, "restarts": 1}}})
        self.assertEqual(self.run_pipe(code=1).failure("train")["kind"], "exit_code")
        told = [line for line in self.log("train").splitlines() if "all processes start again" in line]
        self.assertIn(len(told), (1, 2), "each agent tells of its own failing rank")
        self.assertTrue(all("(restart 1 of 1)" in line for line in told), told)

    def test_a_rank_that_is_stopped_is_named_and_all_ranks_begin_again(self):
        self.write("train.py", SUM + """
print("pid", os.getpid(), flush=True)
if os.environ["PIPE_ATTEMPT"] == "1":
    time.sleep(600)
""")
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 3, "stalled_after": "2s", "retry": {"max_retries": 1, "stalled": True}}})
        run = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        os.kill(wait_until(lambda: self.pids(3), "three processes")[1], signal.SIGSTOP)
        result = self.finish(run)
        self.assertEqual(result.steps(), {"train": "succeeded"}, result)
        self.assertIn("rank 1 is stopped", result.text)
        last_words = [event["line"] for event in result.events("step_log") if event.get("rank") == 1 and event["attempt"] == 1]
        self.assertIn("Fatal Python error: Aborted", last_words, "without py-spy, Python's own faulthandler")
        self.assertRegex("\n".join(last_words), r'File ".*/train.py", line \d+ in <module>')

    def test_a_shell_is_beside_a_rank_while_it_runs_and_like_it_afterwards(self):
        self.write("train.py", "import os, time\nopen(os.environ['PIPE_SCRATCH'] + '/of-' + os.environ['RANK'], 'w').close()\nprint('waits', flush=True)\n"
                               "while not os.path.exists(os.environ['PIPE_CHECKPOINT'] + '/gate'):\n    time.sleep(0.05)\n")
        self.pipeline({"train": {"command": "python3 train.py ${node.rank}", "nodes": {"count": 2, "processes": 2}, "checkpoint": True}})
        run = self.start("run", "pipeline.yaml", "--orchestrator", self.orchestrator, "--output", "json")
        wait_until(lambda: self.log("train").count("waits") == 4, "four ranks")
        shell = lambda rank, *words: self.pipe("shell", "latest", "train", "--rank", rank, "--", *words)
        beside = shell(3, "sh", "-c", "echo $RANK $LOCAL_RANK $NODE_RANK $WORLD_SIZE; ls $PIPE_SCRATCH/of-3 train.py; exit 5")
        self.assertEqual((beside.code, beside.out.split()[:4]), (5, ["3", "1", "1", "4"]), beside)
        self.assertTrue(beside.out.endswith("/of-3\ntrain.py\n"), beside)
        refused = shell(4, "true")
        self.assertEqual(refused.code, 2, refused)
        self.assertIn("'train' has no rank 4: its ranks are 0 to 3", refused.err)
        self.assertEqual(shell(0, "sh", "-c", "touch $PIPE_CHECKPOINT/gate").code, 0)
        self.assertEqual(self.finish(run).steps(), {"train": "succeeded"})
        like = shell(3, "sh", "-c", "echo $RANK $LOCAL_RANK $NODE_RANK $WORLD_SIZE $MASTER_ADDR; echo $PIPE_COMMAND; ls $PIPE_SCRATCH")
        self.assertEqual(like.code, 0, like)
        self.assertEqual(like.out.splitlines()[0], "3 1 1 4 127.0.0.1")
        self.assertIn("train.py 1", like.out, "the node of its rank")
        self.assertNotIn("of-3", like.out)
        self.assert_nothing_left()

    def test_the_failure_of_a_stall_has_what_nccl_reports(self):
        self.write("bin/ncclras", NCCLRAS).chmod(0o755)
        self.write("train.py", "import time\nprint('waits', flush=True)\ntime.sleep(600)\n")
        self.pipeline({"train": {"command": ["python3", "train.py"], "code": ["train.py", "bin"], "nodes": 3, "stalled_after": "1s", "retry": {"max_retries": 0, "stalled": True},
                                 "environment": {"PATH": PATH_WITH_BIN}}})
        failure = self.run_pipe(code=1).failure("train")
        self.assertIn("NCCL: rank 1 has launched AllReduce only up to operation 6, 2 ranks up to 7", failure["message"])
        self.assertIn("pipe: ncclras: #0-0 (27a079b828ff1a75) MISMATCH", self.log("train"))
        self.assertNotIn("stand-in of NCCL", self.log("train"), "only the errors that it reports")

    def test_the_failure_of_a_stall_has_the_python_stack_of_a_rank(self):
        self.write("train.py", "import time\ndef waits_for_its_peer():\n    time.sleep(600)\nprint('waits', flush=True)\nwaits_for_its_peer()\n")
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 2, "stalled_after": "1s", "retry": {"max_retries": 0, "stalled": True}}},
                      {"requirements": ["py-spy==0.4.1"]})
        failure = self.run_pipe(code=1).failure("train")
        self.assertRegex(self.log("train"), r"(?m)pipe: py-spy: Process \d+: python3 train.py$")
        self.assertIn("pipe: py-spy:     waits_for_its_peer (train.py:3)", failure["details"])
        self.assertNotIn("Fatal Python error", self.log("train"), "py-spy has told where it is")

    def test_the_success_of_rank_0_may_be_enough(self):
        self.write("train.py", f"import os\nif os.environ['RANK'] != '0':\n    {WAIT.split('; ', 1)[0]}\n    import time; time.sleep(600)\n")
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": {"count": 2, "done": "first"}}})
        self.assertEqual(self.run_pipe().steps(), {"train": "succeeded"})


class Docker(PipeTest):
    def networks(self) -> list[str]:
        """Returns the ids of the networks that carry the test's mark."""
        return docker("network", "ls", "-q", "--filter", f"label=e2e={self.mark}").split()

    def test_containers_find_each_other_and_nothing_is_left(self):
        self.write("train.py", WRITE)
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 3, "outputs": ["model", {"name": "shards", "from": "all"}]},
                       "show": {"command": "cat ${inputs.model}; cd ${inputs.shards}; grep -r . | sort", "inputs": {"model": "train.model", "shards": "train.shards"}}})
        self.run_pipe()
        self.assertEqual(self.pipe("logs", "latest", "show").out, "3 of 0\n0/0:0\n1/1:1\n2/2:2\n")
        self.assertEqual(self.containers(), [])
        self.assertEqual(self.networks(), [])

    def test_the_first_that_fails_ends_the_others(self):
        self.write("train.py", FAIL.replace("N:", "1:"))
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": 2}})
        failure = self.run_pipe(code=1).failure("train")
        self.assertIn("rank 1 of 2, on node 1, ", failure["message"])
        self.assertIn("[0] told to end", self.pipe("logs", "latest", "train").out)
        self.assertEqual((self.containers(), self.networks()), ([], []))

    def log(self, step: str, *words) -> str:
        return self.pipe("logs", "latest", step, *words).out

    test_all_ranks_begin_again_in_place_under_another_id = Local.test_all_ranks_begin_again_in_place_under_another_id
    test_a_shell_is_beside_a_rank_while_it_runs_and_like_it_afterwards = Local.test_a_shell_is_beside_a_rank_while_it_runs_and_like_it_afterwards
    test_the_failure_of_a_stall_has_what_nccl_reports = Local.test_the_failure_of_a_stall_has_what_nccl_reports
    test_the_failure_of_a_stall_has_the_python_stack_of_a_rank = Local.test_the_failure_of_a_stall_has_the_python_stack_of_a_rank

    def test_several_processes_in_each_container_find_each_other(self):
        self.write("train.py", WRITE)
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": {"count": 2, "processes": 2}, "outputs": ["model", {"name": "shards", "from": "all"}]},
                       "show": {"command": "cat ${inputs.model}; cd ${inputs.shards}; grep -r . | sort", "inputs": {"model": "train.model", "shards": "train.shards"}}})
        result = self.run_pipe()
        self.assertEqual(self.pipe("logs", "latest", "show").out, "6 of 0\n0/0:0\n0/1:0\n1/2:1\n1/3:1\n")
        lines = sorted((event["rank"], event["line"]) for event in result.events("step_log") if event["step"] == "train")
        self.assertEqual(lines, [(rank, "total 6") for rank in range(4)])

    def test_the_rank_that_fails_in_a_container_is_named(self):
        self.write("train.py", FAIL.replace("N:", "3:"))
        self.pipeline({"train": {"command": ["python3", "train.py"], "nodes": {"count": 2, "processes": 2}}})
        failure = self.run_pipe(code=1).failure("train")
        self.assertEqual(failure["message"], "rank 3 of 4, on node 1, ended with exit code 3")
        self.assertEqual(failure["details"], ["total 6", "no such batch"])
        log = self.pipe("logs", "latest", "train").out
        for rank in range(3):
            self.assertIn(f"[{rank}] told to end", log)
        self.assertEqual(ranks_of(self), [(0, 0, 9, False), (1, 0, 9, False), (2, 1, 9, False), (3, 1, 3, True)])

    def test_the_failure_names_a_program_that_the_image_lacks(self):
        self.pipeline({"train": {"command": ["trane"], "nodes": {"count": 2, "processes": 2}}})
        failure = self.run_pipe(code=1).failure("train")
        self.assertEqual(failure["kind"], "not_started", failure)
        self.assertIn("there is no program 'trane' in the image", failure["message"])


class Gpus(GpuTest):
    def test_all_nodes_of_a_step_have_their_gpus_at_the_same_time_and_a_process_for_each(self):
        """Three steps want all four GPUs: none of them ever holds GPUs while another runs."""
        self.write("hold.py", "import os, time\nbegan = time.time()\ntime.sleep(0.5)\nprint(os.environ['RANK'], began, time.time(), *os.environ['CUDA_VISIBLE_DEVICES'].split(','), flush=True)\n")
        steps = {f"train{i}": {"command": ["python3", "hold.py"], "nodes": {"count": 2, "processes": "gpus"}, "settings": {"resources": {"gpu_count": 2}}} for i in range(3)}
        self.pipeline(steps)
        result = self.run_pipe()
        held = []
        for name in steps:
            lines = {line[0]: line[1:] for line in (event["line"].split() for event in result.events("step_log") if event["step"] == name)}
            self.assertEqual(set(lines), set("0123"), lines)
            seen = {rank: line[2:] for rank, line in lines.items()}
            self.assertEqual((seen["0"], seen["2"]), (seen["1"], seen["3"]), "a process sees all GPUs of its node")
            self.assertEqual(sorted(seen["0"] + seen["2"]), UUIDS)
            held.append((min(float(line[0]) for line in lines.values()), max(float(line[1]) for line in lines.values())))
        held.sort()
        for (_, ended), (began, _) in zip(held, held[1:]):
            self.assertLess(ended, began)

    def test_each_process_may_see_only_its_own_gpu(self):
        self.pipeline({"train": {"command": "echo $RANK $CUDA_VISIBLE_DEVICES", "nodes": {"count": 2, "processes": "gpus", "visible": "own"},
                                 "settings": {"resources": {"gpu_count": 2}}}})
        lines = sorted(event["line"] for event in self.run_pipe().events("step_log"))
        self.assertEqual([line.split()[0] for line in lines], list("0123"))
        self.assertEqual(sorted(line.split()[1] for line in lines), UUIDS)

    def test_more_gpus_than_the_machine_has_are_refused(self):
        self.pipeline({"train": {"command": ["train"], "nodes": 3, "settings": {"resources": {"gpu_count": 2}}}})
        result = self.pipe("run", "pipeline.yaml", "--orchestrator", "local")
        self.assertEqual(result.code, 2, result)
        self.assertIn("it has 3 nodes with 2 GPUs each", result.text)
        valid = self.pipe("validate", "pipeline.yaml")
        self.assertIn("train has 3 nodes with 1 process each: 3 processes and 6 GPUs in all", valid.text)


if __name__ == "__main__":
    unittest.main()
