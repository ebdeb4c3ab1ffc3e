"""Usage of steps in pods, as the agent (the program that starts a step's command in its pod) measures it; steps that need more memory, or hang."""

import json
import sys
import unittest

from support_cluster import ROOT, ClusterTest, kubectl, needs_cluster, needs_test_bed, test_bed

sys.path.insert(0, str(ROOT / "tests/e2e"))
from measured_test import BURN, DISK, MEBIBYTE, used_by_its_own_account  # noqa: E402

# Prints what nvidia-smi does for two GPUs, one of which is divided by MIG and has no load. It uses much CPU time itself, which must not count for the step.
NVIDIA_SMI = """#!/bin/bash
[ "$2" = --format=csv,noheader,nounits ] && [ "$3" = -lms ] || exit 2
for ((i = 0; i < 400000; ++i)); do :; done
for ((i = 0; ; ++i)); do
  ((i < 20)) || touch /tmp/sampled
  printf '0, GPU-a, Stand-in 16GB, %d, %d, 16384\\n1, GPU-b, Stand-in 16GB, [N/A], 300, 16384\\n' $((i % 2 ? 60 : 20)) $((i % 2 ? 9216 : 3072))
  sleep 0.05
done
"""
PYTHON = {"parent_image": "python:3.11-slim-bookworm"}


@needs_cluster
@needs_test_bed
class Measured(ClusterTest):
    def attempts(self, step: str) -> list[dict]:
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        return next(entry for entry in shown["steps"] if entry["step"] == step)["attempts"]

    def cpu(self, attempt: dict) -> float:
        return (attempt["usage"]["user_ms"] + attempt["usage"]["system_ms"]) / 1000

    def test_memory_cpu_and_disk_of_known_programs(self):
        self.write("few.py", BURN % (16 * MEBIBYTE, 0.5))
        self.write("many.py", BURN % (216 * MEBIBYTE, 2.5))
        # Two processes hold memory at a time, and their parent does not wait for one.
        self.write("tree.py", "import os, time\nif os.fork() == 0:\n    held = bytearray(b'x') * (100 << 20)\n    time.sleep(3)\n    os._exit(0)\n"
                              "held = bytearray(b'x') * (100 << 20)\ntime.sleep(1.5)\n")
        self.write("disk.py", DISK)
        self.pipeline({name: {"command": ["python3", name + ".py"]} for name in ("few", "many", "tree")} | {"disk": {"command": ["python3", "disk.py", "/tmp", "32", "16"]}}, PYTHON)
        self.run_pipe("--jobs", "1")
        few, many = self.attempts("few")[0], self.attempts("many")[0]
        grown = (many["usage"]["peak_memory"] - few["usage"]["peak_memory"]) / (200 * MEBIBYTE)
        own = used_by_its_own_account(self.pipe("logs", "latest", "many").out)
        tree = self.attempts("tree")[0]
        print(f"in pods: memory {grown:.4f}, CPU time {self.cpu(many) / own:.4f} of what the program knows of; tree {tree['usage']['peak_memory'] / MEBIBYTE:.1f} MiB", flush=True)
        self.assertAlmostEqual(grown, 1, delta=0.02)
        self.assertGreaterEqual(self.cpu(many), own * 0.98)
        self.assertLess(self.cpu(many), own * 1.02 + 0.02, "the program does not know the time of its own end")
        self.assertGreater(tree["usage"]["peak_memory"], 200 * MEBIBYTE)
        self.assertLess(tree["usage"]["peak_memory"], 230 * MEBIBYTE)
        for phase in ("waiting_ms", "preparing_ms", "running_ms", "storing_ms"):
            self.assertIn(phase, many["phases"])
        self.assertGreaterEqual(many["phases"]["running_ms"], 2500)
        self.assertGreater(many["phases"]["preparing_ms"], 0, "the pod's start is no part of its running")
        disk = self.attempts("disk")[0]["usage"]
        written, read = (disk["bytes_" + name] / (amount * MEBIBYTE) for name, amount in (("written", 32), ("read", 16)))
        print(f"in pods: {written:.4f} of the bytes written, {read:.4f} of those read", flush=True)
        self.assertAlmostEqual(written, 1, delta=0.02)
        self.assertAlmostEqual(read, 1, delta=0.02)
        told = self.pipe("advise", "pipeline.yaml").out
        self.assertRegex(told, r"many +1")
        self.assert_nothing_left()

    def test_gpus_are_measured_by_nvidia_smi_in_the_pod(self):
        node = json.loads(kubectl("get", "node", "node1", "-o", "json"))
        if int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) < 2:  # Otherwise the node is left as other tests see it.
            test_bed("gpus", "4")
        self.write("nvidia-smi", NVIDIA_SMI).chmod(0o755)
        variables = {"runtime_environment": {"PATH": "/pipe/code:/usr/bin:/bin"}}
        gpus = {"settings": {"resources": {"gpu_count": 2}}}
        self.pipeline({"train": {"command": "for i in $(seq 100); do [ -e /tmp/sampled ] && exit; sleep 0.2; done", "code": ["nvidia-smi"], **gpus}, "without": {"command": "sleep 1"}}, variables)
        self.run_pipe()
        train, without = self.attempts("train")[0], self.attempts("without")[0]
        self.assertNotIn("gpus", without)
        busy, divided = train["gpus"]
        print(f"GPUs in pods: mean load {busy['mean_load']}, mean memory {busy['mean_memory'] / MEBIBYTE:.0f} MiB, CPU of the step {self.cpu(train)} s", flush=True)
        self.assertEqual((busy["uuid"], busy["index"], busy["model"]), ("GPU-a", 0, "Stand-in 16GB"))
        self.assertAlmostEqual(busy["mean_load"], 0.4, delta=0.03)
        self.assertEqual((busy["peak_load"], busy["peak_memory"], busy["memory"]), (0.6, 9216 * MEBIBYTE, 16384 * MEBIBYTE))
        self.assertAlmostEqual(busy["mean_memory"] / MEBIBYTE, 6144, delta=400)
        self.assertNotIn("mean_load", divided)
        self.assertEqual(divided["peak_memory"], 300 * MEBIBYTE)
        self.assertLess(self.cpu(train), 0.3, "the usage of nvidia-smi does not count as the step's")
        self.assertRegex(self.pipe("show", "latest").out, r"train 1 +0 +Stand-in 16GB +\d+ % +60 % +9 GiB of 16 GiB +GPU-a")
        self.assert_nothing_left()

    def test_a_step_that_fails_is_measured(self):
        self.pipeline({"a": {"command": "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3", "retry": {"max_retries": 1}}})
        self.run_pipe(code=1)
        for attempt in self.attempts("a"):
            self.assertEqual(attempt["exit_code"], 3)
            self.assertGreater(self.cpu(attempt), 0.02)

    def test_a_step_killed_for_memory_gets_more(self):
        self.pipeline({"hungry": {"command": ["python3", "-c", "x = bytearray(b'x') * (150 << 20); print(len(x))"], "settings": {"resources": {"memory": "64MiB"}},
                                  "retry": {"on_oom": {"memory": "x2", "max": "1GiB"}}}}, PYTHON)
        result = self.run_pipe()
        self.assertEqual([event["memory"] >> 20 for event in result.events("step_retried")], [128, 256])
        attempts = self.attempts("hungry")
        self.assertEqual([attempt["usage"]["memory_limit"] >> 20 for attempt in attempts], [64, 128, 256])
        self.assertEqual([attempt["failure"]["kind"] for attempt in attempts[:2]], ["out_of_memory"] * 2)
        self.assertEqual(json.loads(self.pipe("advise", "pipeline.yaml", "--output", "json").out)["steps"][0]["advice"][0]["value"], "256MiB")
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"}, "the limit is no part of the key")
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()

    def test_a_step_that_hangs_is_ended_and_tried_again(self):
        """The agent says in what the step's processes wait: `cat` waits for a writer of a pipe, and the shell waits for `cat`."""
        hangs = "mkfifo /tmp/pipe; echo begun; if [ $PIPE_ATTEMPT = 1 ]; then cat /tmp/pipe; fi; echo well"
        self.pipeline({"hangs": {"command": hangs, "stalled_after": "5s", "retry": {"stalled": True}},
                       "talks": {"command": "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 1; done", "stalled_after": "5s", "retry": {"stalled": True}}})
        result = self.run_pipe()
        (retried,) = result.events("step_retried")
        self.assertEqual((retried["step"], retried["failure"]["kind"]), ("hangs", "stalled"))
        self.assertRegex(retried["failure"]["message"], r"was ended: it has printed nothing for 5\.0s; \d+ bash -e -o pipefail -c mkfifo .*: sleeps in \w+ \(1 more in its log\)$")
        log = self.pipe("logs", "latest", "hangs", "--attempt", "1")
        self.assertRegex(log.out + log.err, r"pipe: \d+ cat /tmp/pipe: sleeps in \w+")
        self.assertEqual(self.pipe("logs", "latest", "hangs").out, "begun\nwell\n")
        self.assertEqual(self.jobs(), [])
        self.assert_nothing_left()

    def test_a_notice_says_that_a_step_hangs(self):
        self.pipeline({"hangs": {"command": "echo begun; sleep 7; echo goes on", "stalled_after": "4s"}})
        (notice,) = [notice["text"] for notice in self.run_pipe().events("notice") if "stalled" in notice["text"]]
        self.assertRegex(notice, r"stalled: has printed nothing for 4\.0s; \d+ bash -e -o pipefail -c echo begun; .*: sleeps in \w+")
        self.assertIn("goes on", self.pipe("logs", "latest", "hangs").out)


if __name__ == "__main__":
    unittest.main()
