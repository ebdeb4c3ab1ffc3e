"""Measured usage of steps, metrics, and comparisons of runs, as a user sees them. The steps are programs whose usage is known."""

import contextlib
import csv
import io
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import time
import unittest

from support import PipeTest, docker, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "chaos"))
from faulty_proxy import FaultyProxy  # noqa: E402

MEBIBYTE = 1 << 20
# Holds this many bytes of memory, uses this many seconds of CPU time, and prints how much it has used.
BURN = """import sys, time, threading
held = bytearray(%d)
for at in range(0, len(held), 4096):
    held[at] = 1
began = time.process_time()
while time.process_time() - began < %f:
    pass
print("used", time.process_time(), flush=True)
"""
# Arguments: the MiB that forked workers share, the MiB that each has of its own, and the number of workers.
WORKERS = """import multiprocessing, sys, time
shared, own, workers = (int(word) << 20 for word in sys.argv[1:4])
def touched(size):
    held = bytearray(size)
    for at in range(0, size, 4096):
        held[at] = 1
    return held
data = touched(shared)
ready = multiprocessing.Barrier((workers >> 20) + 1)
def work():
    held = touched(own)
    ready.wait()
    time.sleep(8)  # Longer than the longest pause between two measurements of shared memory.
all = [multiprocessing.get_context("fork").Process(target=work) for _ in range(workers >> 20)]
for worker in all: worker.start()
ready.wait()
for worker in all: worker.join()
"""
# Arguments: a folder, the MiB to write there, and the MiB to read from the disk. The kernel is told not to read ahead.
DISK = """import os, sys
path, to_write, to_read = sys.argv[1] + "/data", *(int(word) << 20 for word in sys.argv[2:])
file = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(file, os.urandom(to_write))
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
assert len(os.pread(file, to_read, 0)) == to_read
os.unlink(path)
"""
BLOCKS = pathlib.Path("/sys/fs/cgroup/blkio")  # exists with version 1 of control groups


def used_by_its_own_account(log: str) -> float:
    """Returns the seconds of CPU time that BURN has printed at its end."""
    return float(log.split("used ")[1])


class Measured(PipeTest):
    orchestrator = "local"
    short = ["true"]  # the command of a short step
    writes_are_counted = True
    until_measured = ""  # what a command appends so that its usage is measured before its end
    short_has = {"user_ms", "system_ms", "bytes_read", "bytes_written"}  # And a peak of memory, if it is above that of `pipe`.

    def attempt(self, step: str, number: int = -1) -> dict:
        """Returns an attempt of a step of the latest run, as `pipe show` has it in JSON. `number` is an index from 0; by default the last attempt's."""
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        return next(entry for entry in shown["steps"] if entry["step"] == step)["attempts"][number]

    def burn(self, mebibytes: int, seconds: float, **settings) -> dict:
        """Runs a program that holds this much memory and uses this much CPU time, and returns its attempt."""
        self.write("burn.py", BURN % (mebibytes * MEBIBYTE, seconds))
        self.pipeline({"burn": {"command": ["python3", "burn.py"], "settings": settings}} if settings else {"burn": {"command": ["python3", "burn.py"]}})
        self.run_pipe()
        return self.attempt("burn")

    def check(self, few: dict, many: dict, mebibytes: int):
        """Checks the difference of memory between two attempts of BURN, from which the memory of Python itself drops out."""
        grown = many["usage"]["peak_memory"] - few["usage"]["peak_memory"]
        self.assertAlmostEqual(grown / (mebibytes * MEBIBYTE), 1, delta=0.02)
        self.assertGreaterEqual(many["phases"]["running_ms"] + 1, 0)
        self.assertIn("waiting_ms", many["phases"])

    def cpu(self, attempt: dict) -> float:
        """Returns the seconds of CPU time that were measured."""
        return (attempt["usage"]["user_ms"] + attempt["usage"]["system_ms"]) / 1000

    def test_memory_and_cpu_of_a_known_program_are_measured_within_2_percent(self):
        attempts, known = [], []
        for burnt in ((16, 0.2), (216, 2.5)):
            attempts.append(self.burn(*burnt))
            known.append(used_by_its_own_account(self.pipe("logs", "latest", "burn").out))
        few, many = attempts
        self.check(few, many, 200)
        grown = (many["usage"]["peak_memory"] - few["usage"]["peak_memory"]) / (200 * MEBIBYTE)
        used, own = self.cpu(many) - self.cpu(few), known[1] - known[0]  # The CPU time of a container's start, which is much on a busy machine, drops out.
        print(f"{self.orchestrator}: memory {grown:.4f}, CPU time {used / own:.4f} of what the program knows of", flush=True)
        self.assertGreaterEqual(self.cpu(many), known[1] * 0.98)
        self.assertLess(used, own * 1.02 + 0.02, "the program does not know the time of its own end")

    def workers(self, shared: int, own: int, count: int) -> int:
        """Returns the peak of memory of a step of `count` forked workers, which share some MiB, and each of which holds some MiB of its own."""
        self.write("workers.py", WORKERS)
        self.pipeline({"workers": {"command": ["python3", "workers.py", str(shared), str(own), str(count)]}})
        self.run_pipe()
        return self.attempt("workers")["usage"]["peak_memory"]

    def test_memory_is_that_of_all_processes_together(self):
        base = self.workers(0, 1, 3)
        apart, shared = self.workers(0, 101, 3) - base, self.workers(100, 1, 3) - base
        print(f"{self.orchestrator}: three workers of 100 MiB each {apart / MEBIBYTE:.1f} MiB, 100 MiB that three share {shared / MEBIBYTE:.1f} MiB", flush=True)
        self.assertAlmostEqual(apart / (300 * MEBIBYTE), 1, delta=0.02)
        self.assertAlmostEqual(shared / (100 * MEBIBYTE), 1, delta=0.02)

    def test_a_short_step_has_every_value(self):
        self.pipeline({"short": {"command": self.short}})
        self.run_pipe()
        self.assertGreaterEqual(self.attempt("short")["usage"].keys(), self.short_has)

    def test_bytes_read_and_written(self):
        self.write("disk.py", DISK)
        for amounts in ((1, 1), (32, 16)):  # The first run reads Python itself from the disk, so that the second does not.
            self.pipeline({"disk": {"command": f"python3 disk.py $PIPE_SCRATCH {amounts[0]} {amounts[1]}{self.until_measured}"}})
            self.run_pipe()
        usage = self.attempt("disk")["usage"]
        for name, amount in (("bytes_written", 32), ("bytes_read", 16)):
            if name == "bytes_written" and not self.writes_are_counted:
                self.assertNotIn(name, usage)
                continue
            share = usage[name] / (amount * MEBIBYTE)
            print(f"{self.orchestrator}: {share:.4f} of {name}", flush=True)
            self.assertAlmostEqual(share, 1, delta=0.02)

    def test_the_drivers_memory_does_not_count_for_a_small_step_of_a_large_run(self):
        """The driver has 20,000 steps in memory, and the step's process begins as a copy of the driver."""
        self.pipeline({"small": {"command": "true"}, "many": {"command": "true", "matrix": {"i": list(range(20_000))}, "when": "${params.i} < 0"}})
        self.run_pipe()
        self.assertLess(self.attempt("small")["usage"].get("peak_memory", 0), 8 * MEBIBYTE)

    def test_children_count_though_their_parent_does_not_wait(self):
        self.write("burn.py", BURN % (MEBIBYTE, 1.0))
        self.pipeline({"burn": {"command": "python3 burn.py & python3 burn.py & wait", "shell": "bash"}})
        self.run_pipe()
        self.assertGreaterEqual(self.cpu(self.attempt("burn")), 2.0)

    def test_each_attempt_has_its_node_and_image(self):
        self.pipeline({"a": {"command": "exit 3", "retry": {"max_retries": 1, "delay": "0s"}}})
        self.run_pipe(code=1)
        for number in (0, 1):
            self.assertEqual(self.attempt("a", number)["node"], socket.gethostname())
            self.assertTrue(self.attempt("a", number)["image"])
        report = json.loads(self.pipe("report", "latest", "--output", "json").out)
        self.assertEqual([report["nodes"][attempt["w"]] for attempt in report["steps"][0]["a"]], [socket.gethostname()] * 2)

    def test_show_has_columns_of_times_and_usage(self):
        self.write("burn.py", BURN % (MEBIBYTE, 0.3))
        self.pipeline({"burn": {"command": ["python3", "burn.py"]}, "fails": {"command": "exit 3", "after": ["pair"], "retry": {"max_retries": 1, "delay": "0s"}},
                       "pair": {"command": "echo 1 > ${outputs.one}; echo 2 > ${outputs.two}; ln ${outputs.two} ${outputs.two}.second", "outputs": ["one", "two"]}})
        self.run_pipe(code=1)
        headings = ["WAITING", "PREPARING", "TRANSFERS", "RUNNING", "STORING", "CPU", "MEMORY", "READ", "WRITTEN", "NODE"]
        self.assertNotIn("PREPARING", self.pipe("show").out)
        wide = self.pipe("show", "--wide").out
        for heading in headings:
            self.assertIn(heading, wide)
        (row,) = [line for line in wide[wide.index("WAITING"):].splitlines() if line.startswith("burn ")]
        self.assertIn(socket.gethostname(), row)
        self.assertIn("one: moved; two: copied, because it has a second name", wide)
        one = self.pipe("show", "latest", "fails").out
        for heading in headings:
            self.assertIn(heading, one)
        phases = one[one.index("WAITING"):].splitlines()[1:3]
        self.assertEqual([line.split()[0] for line in phases], ["1", "2"], "a row for each attempt")
        self.assertEqual(json.loads(self.pipe("show", "latest", "burn", "--output", "json").out)["step"], "burn")
        wrong = self.pipe("show", "latest", "bern")
        self.assertEqual(wrong.code, 2)
        self.assertIn("burn", wrong.err)

    def test_advice_is_a_patch_that_git_takes(self):
        self.write("hold.py", f"import time\nheld = bytearray(range(256)) * {100 * MEBIBYTE // 256}\ntime.sleep(1.2)\n")
        self.write("pipeline.yaml", """name: greedy
settings: {resources: {cpu_count: 2}}
steps:
  hold:  # its values stand in one line
    command: [python3, hold.py]
    settings: {resources: {memory: 4GiB, cpu_count: 2}}
  modest:
    command: [python3, hold.py]
    settings:
      resources:
        memory: 256MiB
        cpu_count: 1
  plain:
    command: [python3, hold.py]
""")
        nothing = self.pipe("advise", "pipeline.yaml")
        self.assertEqual((nothing.code, nothing.out), (0, ""))
        self.assertIn("no run of 'greedy' has been measured", nothing.err)
        self.run_pipe()
        shown = self.pipe("advise", "pipeline.yaml").out
        self.assertRegex(shown, r"hold: memory: \d+MiB, as 4 GiB asked, 1\d\d(.\d)? MiB at most used in 1 run")
        self.assertRegex(shown, r"plain: \{settings: \{resources: \{cpu_count: 1\}\}\}")
        self.assertNotRegex(shown, "modest: (memory|cpu_count)")
        file = self.folder / "pipeline.yaml"
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
        patch = subprocess.run([self.command, "advise", "pipeline.yaml", "--patch"], cwd=self.folder, env=self.environment({}), stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=patch, cwd=self.folder, check=True)
        self.assertEqual(file.read_bytes().count(b"\r\n"), file.read_bytes().count(b"\n"))
        changed = file.read_text()
        self.assertRegex(changed, r"resources: \{memory: \d+MiB, cpu_count: 1\}\}\n")
        self.assertEqual(self.pipe("validate", "pipeline.yaml").code, 0)
        self.assertNotIn("hold: memory", self.pipe("advise", "pipeline.yaml").out)
        advised = json.loads(self.pipe("advise", "pipeline.yaml", "--output", "json").out)["steps"]
        self.assertEqual([step["step"] for step in advised], ["hold", "modest", "plain"])
        self.assertGreater(advised[0]["used"]["memory"], 100 * MEBIBYTE)

    def test_every_attempt_is_measured_also_one_that_fails(self):
        self.pipeline({"a": {"command": "exit 3", "retry": {"max_retries": 1, "delay": "0s"}}})
        self.run_pipe(code=1)
        for number in (0, 1):
            self.assertIn("user_ms", self.attempt("a", number)["usage"])
            self.assertIn("running_ms", self.attempt("a", number)["phases"])
        table = self.pipe("show", "latest").out
        self.assertIn("CPU", table)
        self.assertIn("MEMORY", table)

    def test_advice_counts_the_memory_of_workers(self):
        """Three workers, each of which holds less than the step asks for."""
        self.write("workers.py", WORKERS)
        self.pipeline({"workers": {"command": ["python3", "workers.py", "0", "100", "3"]}})
        self.run_pipe()
        self.pipeline({"workers": {"command": ["python3", "workers.py", "0", "100", "3"], "settings": {"resources": {"memory": "200MiB"}}}})
        advised, = json.loads(self.pipe("advise", "pipeline.yaml", "--output", "json").out)["steps"]
        self.assertGreater(advised["used"]["memory"], 300 * MEBIBYTE)

    def test_a_running_run_is_shown_with_its_time_so_far(self):
        self.pipeline({"a": {"command": "touch ran; sleep 600", "shell": "bash"}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local")
        running = wait_until(lambda: next((line for line in self.pipe("runs").out.splitlines() if " running " in line), None), "a running run")
        self.assertRegex(running, r"running +\d{4}-\d\d-\d\d \S+ +\d")
        self.assertRegex(self.pipe("show").out.splitlines()[0], r": running for \d")
        self.assertEqual(json.loads(self.pipe("runs", "--where", "run.seconds < 100", "--output", "json").out)["runs"], [], "a run has no time before its end")
        process.terminate()
        self.finish(process)


def kernel_counts_bytes() -> bool:
    """Returns whether the kernel counts bytes of containers. Version 1 of control groups counts once a disk has had a throttle; root sets one of 1 TB/s briefly."""
    if not BLOCKS.exists():
        return True

    def counts() -> bool:
        return " Read " in (BLOCKS / "blkio.throttle.io_service_bytes").read_text()

    if not counts() and os.geteuid() == 0:
        group = BLOCKS / f"pipe-test-{os.getpid()}"
        group.mkdir()
        for disk in pathlib.Path("/sys/block").glob("*/dev"):
            with contextlib.suppress(OSError):
                (group / "blkio.throttle.write_bps_device").write_text(f"{disk.read_text().strip()} {10**12}")
        group.rmdir()
    return counts()


class MeasuredInContainers(Measured):
    orchestrator = "docker"
    writes_are_counted = not BLOCKS.exists()  # Version 1 of control groups does not attribute delayed writes of the kernel to a group.
    until_measured = "; sleep 1"  # A container's usage is measured ten times a second, and its control group may be removed as soon as it ends.
    short = ["sleep", "0.1"]  # The control group of a container that ends before the engine has answered may be gone before it was read.
    short_has = {"user_ms", "system_ms", "peak_memory"}

    test_advice_counts_the_memory_of_workers = test_a_running_run_is_shown_with_its_time_so_far = None
    test_the_drivers_memory_does_not_count_for_a_small_step_of_a_large_run = None

    def test_bytes_read_and_written(self):
        if not kernel_counts_bytes():
            self.skipTest("the kernel counts no bytes of containers")
        super().test_bytes_read_and_written()

    def test_children_count_though_their_parent_does_not_wait(self):
        self.skipTest("the same group counts them")

    def test_every_attempt_is_measured_also_one_that_fails(self):
        self.pipeline({"a": {"command": "sleep 1; exit 3"}})
        self.run_pipe(code=1)
        self.assertIn("user_ms", self.attempt("a")["usage"])


def engine_socket() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("/var/run/docker.sock")
    return connection


class MeasuredByTheEngine(PipeTest):
    """`pipe` takes an engine at tcp:// for one on another machine, and uses the engine's own figures instead of this machine's control groups."""

    def test_memory_and_cpu_of_a_known_program_are_those_of_the_engines_last_answer(self):
        proxy = FaultyProxy(socket.create_server(("127.0.0.1", 0)), engine_socket, lambda *_: None)
        self.addCleanup(proxy.end)
        elsewhere = {"DOCKER_HOST": "tcp://%s:%d" % proxy.listener.getsockname(), "DOCKER_TLS_VERIFY": "", "DOCKER_CERT_PATH": ""}
        attempts = []
        for mebibytes, seconds in ((16, 4), (216, 6)):
            self.write("burn.py", BURN % (mebibytes * MEBIBYTE, seconds))
            self.pipeline({"burn": {"command": ["python3", "burn.py"]}})
            self.run_pipe(**elsewhere)
            attempts.append(json.loads(self.pipe("show", "latest", "burn", "--output", "json").out)["attempts"][0])
        few, many = (attempt["usage"] for attempt in attempts)
        self.assertAlmostEqual((many["peak_memory"] - few["peak_memory"]) / (200 * MEBIBYTE), 1, delta=0.02)
        own = used_by_its_own_account(self.pipe("logs", "latest", "burn").out)
        cpu = (many["user_ms"] + many["system_ms"]) / 1000
        print(f"docker elsewhere: CPU time {cpu / own:.4f} of what the program knows of, at its last answer", flush=True)
        self.assertLess(cpu, own * 1.02 + 0.1)
        self.assertGreater(cpu, own / 2)
        self.assertEqual(attempts[0]["node"], docker("info", "--format", "{{.Name}}"))


class Metrics(PipeTest):
    orchestrator = "local"

    def metrics(self, *words) -> list[dict]:
        """Returns the metrics of the latest run, as `pipe metrics` has them in JSON."""
        return json.loads(self.pipe("metrics", "latest", *words, "--output", "json").out)["metrics"]

    def points_so_far(self) -> list[int]:
        """Returns how many values each metric of the latest run has; nothing before the run has begun."""
        listed = self.pipe("metrics", "latest", "--output", "json")
        return [one["points"] for one in json.loads(listed.out)["metrics"]] if listed.code == 0 else []

    def test_lines_that_report_a_metric_become_its_series(self):
        self.write("train.py", "import json\nfor step in range(100):\n    print('@pipe', json.dumps({'metric': 'loss', 'value': 1 / (step + 1), 'step': step}))\n"
                               "for value in (float('nan'), float('-inf')):\n    print('@pipe', json.dumps({'metric': 'odd', 'value': value}))\n")
        self.pipeline({"train": {"command": ["python3", "train.py"]}, "quiet": {"command": "echo no metrics"}})
        self.run_pipe()
        loss, odd = self.metrics()
        self.assertEqual((loss["step"], loss["name"], loss["points"], loss["value"], loss["training_step"]), ("train", "loss", 100, 0.01, 99))
        self.assertEqual([point["training_step"] for point in loss["series"]], list(range(100)))
        self.assertEqual([point["value"] for point in odd["series"]], ["nan", "-inf"])
        self.assertFalse(any("training_step" in point for point in odd["series"]), "members that do not apply are left out")
        rows = list(csv.DictReader(io.StringIO(self.pipe("metrics", "latest", "--csv").out)))
        self.assertEqual(len(rows), 102)
        self.assertEqual(rows[0]["value"], "1.0")
        self.assertIn("loss", self.pipe("metrics").out)
        self.assertEqual(self.pipe("metrics", "latest", "trian").code, 2)
        self.assertIn("no metrics", self.pipe("metrics", "latest", "quiet").err)

    def test_values_of_a_step_that_is_silent_afterwards_are_stored_while_it_runs(self):
        line = lambda step: "echo '@pipe {\"metric\": \"loss\", \"value\": %d}'" % step  # noqa: E731
        self.pipeline({"train": {"command": f"{line(1)}; {line(2)}; until [ -e {self.folder}/go ]; do sleep 0.1; done"}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        wait_until(lambda: 2 in self.points_so_far(), "two values")
        self.write("go", "")
        self.assertEqual(self.finish(process).code, 0)
        self.assertEqual([point["value"] for point in self.metrics()[0]["series"]], [1, 2])

    def test_a_million_points_cost_little_more_than_as_many_lines(self):
        """Compares the CPU time with that of the same lines that report nothing."""
        self.write("train.py", "import sys\nhead = sys.argv[1]\nfor step in range(1_000_000):\n"
                               "    print(head + ' {\"metric\": \"loss\", \"value\": %r, \"step\": %d}' % (1 / (step + 1), step))\n")
        for _ in range(3):  # Other processes may disturb one of the two measurements.
            took = {}
            for head in ("#pipe", "@pipe"):
                self.pipeline({"train": {"command": ["python3", "train.py", head]}})
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                self.assertEqual(self.pipe("run", "pipeline.yaml", "-o", self.orchestrator, "--no-cache").code, 0)
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                took[head] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            if took["@pipe"] < 1.3 * took["#pipe"]:
                break
        shown = json.loads(self.pipe("show", "latest", "--output", "json").out)
        self.assertEqual([(metric["name"], metric["points"], metric["training_step"]) for metric in shown["metrics"]], [("loss", 1_000_000, 999_999)])
        began = time.monotonic()
        self.assertEqual(len(self.pipe("report", "latest", "--output", "json").out) < 3 << 20, True, "a curve has few of them")
        report = time.monotonic() - began
        size = sum(file.stat().st_size for file in self.state.glob("pipe.db*"))
        print(f"a million points: {took['@pipe']:.1f} s of CPU, as lines that report nothing {took['#pipe']:.1f} s; the database {size >> 20} MiB; the report's data {report:.2f} s", flush=True)
        self.assertLess(took["@pipe"], 1.3 * took["#pipe"])

    def test_a_reused_step_keeps_its_metrics(self):
        self.pipeline({"train": {"command": """echo '@pipe {"metric": "loss", "value": 2}' && echo > ${outputs.x}""", "outputs": ["x"]}})
        self.run_pipe()
        self.assertEqual(self.run_pipe().steps(), {"train": "cached"})
        self.assertEqual([metric["value"] for metric in self.metrics()], [2])

    def test_outputs_with_metrics_true_are_metrics(self):
        outputs = {"scores": {"file": "scores.json", "metrics": True}, "model": None}
        step = {"command": """echo '{"test": {"accuracy": 0.93}}' > ${outputs.scores}; echo > ${outputs.model}""", "outputs": outputs}
        self.pipeline({"evaluate": step})
        self.run_pipe()
        self.assertEqual([(metric["name"], metric["value"]) for metric in self.metrics()], [("test.accuracy", 0.93)])
        self.pipeline({"evaluate": step | {"command": "echo high > ${outputs.scores}; echo > ${outputs.model}"}})
        failed = self.run_pipe(code=1)
        self.assertEqual(failed.failure("evaluate")["kind"], "bad_output")
        self.assertIn("metrics: true", failed.failure("evaluate")["message"])
        outputs["scores"]["metric"] = True
        self.pipeline({"evaluate": step})
        self.assertIn("did you mean 'metrics'?", self.pipe("validate").err)

    def test_an_output_that_is_marked_later_has_its_metrics_though_it_is_reused(self):
        step = {"command": "echo '{\"accuracy\": 0.93}' > ${outputs.scores}", "outputs": {"scores": {"file": "scores.json"}}}
        self.pipeline({"evaluate": step})
        self.run_pipe()
        self.assertEqual(self.metrics(), [])
        step["outputs"]["scores"]["metrics"] = True
        self.pipeline({"evaluate": step})
        for _ in range(2):
            self.assertEqual(self.run_pipe().steps(), {"evaluate": "cached"})
            self.assertEqual([(metric["step"], metric["name"], metric["value"]) for metric in self.metrics()], [("evaluate", "accuracy", 0.93)])
        self.assertEqual(len(json.loads(self.pipe("runs", "--where", "metrics.accuracy > 0.9", "--output", "json").out)["runs"]), 2)

    def test_a_sweep_is_found_sorted_and_compared(self):
        step = {"command": """echo '@pipe {"metric": "accuracy", "value": '${params.c}'}'""", "parameters": {"c": None}}
        self.pipeline({"train": step}, parameters={"c": 0.5})
        for c in (0.5, 0.9, 0.7):
            self.run_pipe("-p", f"c={c}")
        listed = json.loads(self.pipe("runs", "--sort", "metrics.accuracy", "--columns", "params.c,metrics.accuracy", "--output", "json").out)["runs"]
        self.assertEqual([run["values"]["params.c"] for run in listed], [0.9, 0.7, 0.5])
        self.assertIn("ACCURACY", self.pipe("runs", "--columns", "metrics.accuracy").out)
        self.assertRegex(self.pipe("runs", "--columns", "usage.written").out, r"\d (B|KiB)")
        found = json.loads(self.pipe("runs", "--where", "params.c >= 0.7 and not metrics.accuracy > 0.8 and status == 'succeeded'", "--output", "json").out)["runs"]
        self.assertEqual([run["id"] for run in found], [listed[1]["id"]])
        self.assertEqual(json.loads(self.pipe("runs", "--where", "metrics.loss < 1", "--output", "json").out)["runs"], [], "no run has it")
        for expression in ("params.c >", "metric.c > 1", "params.c && params.d", "status > 3"):
            refused = self.pipe("runs", "--where", expression)
            self.assertEqual(refused.code, 2, refused)
            self.assertTrue(refused.err.strip())
        wrong = self.pipe("runs", "--sort", "metric.accuracy")
        self.assertEqual(wrong.code, 2)
        self.assertIn("metrics.accuracy", wrong.err)
        names = [run["id"] for run in listed]
        rows = json.loads(self.pipe("compare", *names, "--output", "json").out)["rows"]
        self.assertEqual([(row["group"], row["name"], row["values"]) for row in rows[:2]],
                         [("metric", "train.accuracy", [0.9, 0.7, 0.5]), ("parameter", "c", [0.9, 0.7, 0.5])], "the result first")
        self.assertTrue(all(row["differs"] for row in rows[:2]))
        self.assertIn("accuracy", self.pipe("compare", *names).out)
        self.assertEqual(self.pipe("compare", names[0]).code, 2)
        self.assertEqual(self.pipe("compare", names[0], "nowhere").code, 2)

    def test_metrics_without_a_result_have_no_table_of_results(self):
        self.pipeline({"train": {"command": """echo '@pipe {"metric": "loss", "value": NaN}'"""}})
        self.run_pipe()
        shown = self.pipe("metrics").out
        self.assertIn("loss", shown)
        self.assertNotIn("RESULT", shown)

    def test_runs_are_found_by_a_member_of_a_parameter(self):
        self.pipeline({"train": {"command": "echo ${params.model.layers.1}"}}, parameters={"model": {"layers": [8, 8], "kind": "a"}})
        for size in (8, 16):
            self.run_pipe("-p", f"model.layers=[8, {size}]")
        found = json.loads(self.pipe("runs", "--where", "params.model.layers.1 > 8 and params.model.kind == 'a'", "--columns", "params.model.layers.1", "--output", "json").out)["runs"]
        self.assertEqual([run["values"]["params.model.layers.1"] for run in found], [16])
        self.assertEqual(json.loads(self.pipe("runs", "--where", "params.model.layers.2 > 8 or params.model.kind.x == 'a'", "--output", "json").out)["runs"], [])
        refused = self.pipe("runs", "--where", "params.model.layers > 8")
        self.assertIn("`${params.model.layers.0}`", refused.err)

    def test_why_says_where_a_copied_file_comes_from(self):
        self.write("train.py", "import sys; open(sys.argv[2], 'w').write(open(sys.argv[1]).read() * 2)\n")
        self.pipeline({"load": {"command": "echo data > ${outputs.data}", "outputs": ["data"]},
                       "train": {"command": ["python3", "train.py", "${inputs.data}", "${outputs.model}"], "inputs": {"data": "load.data"}, "outputs": ["model"], "parameters": {"c": 3}}})
        self.run_pipe()
        copied = self.write("elsewhere/copy.bin", self.artifact("train.model"))
        made = json.loads(self.pipe("why", str(copied), "--output", "json").out)
        self.assertEqual((made["step"], made["output"], made["attempt"], made["parameters"]), ("train", "model", 1, {"c": 3}))
        self.assertEqual(list(made["code"]), ["train.py"])
        self.assertEqual((made["inputs"]["data"]["step"], made["inputs"]["data"]["inputs"]), ("load", {}))
        self.assertIn("train.py", self.pipe("why", made["digest"][:10]).out)
        self.write("other.bin", "made elsewhere")
        self.assertEqual(self.pipe("why", "other.bin").code, 2)
        self.assertEqual(self.pipe("why", "nowhere").code, 2)

    def test_used_says_what_was_made_with_an_artifact(self):
        self.pipeline({"load": {"command": "echo data > ${outputs.data}", "outputs": ["data"]},
                       "train": {"command": "cat ${inputs.data} > ${outputs.model}; echo ${params.c} >> ${outputs.model}", "matrix": {"c": [1, 2]},
                                 "inputs": {"data": "load.data"}, "outputs": ["model"]},
                       "best": {"command": "cat ${inputs.models}/*train* > ${outputs.model}", "inputs": {"models": "train[*].model"},
                                "outputs": ["model"], "publish": {"model": "production"}},
                       "say": {"command": "cat ${inputs.model}", "inputs": {"model": "best.model"}}})
        run = self.run_pipe().events("run_started")[0]["run"]
        used = json.loads(self.pipe("used", "load.data", "--output", "json").out)["used"]
        self.assertEqual([(use["step"], use["inputs"], use["run"]) for use in used], [("train.c-1", ["data"], run), ("train.c-2", ["data"], run)])
        best, = used[0]["outputs"][0]["used"]
        self.assertEqual((best["step"], best["inputs"]), ("best", ["models"]), "the output is one of the gathered ones")
        say, = best["outputs"][0]["used"]
        self.assertEqual((say["step"], say["outputs"]), ("say", []))
        copied = self.write("copy", self.artifact("load.data"))
        self.assertEqual(json.loads(self.pipe("used", str(copied), "--output", "json").out)["used"], used)
        table = self.pipe("used", "load.data").out
        self.assertIn("MADE WITH IT", table)
        self.assertIn("    say", table)
        nothing = self.pipe("used", self.write("unknown", "nowhere else"))
        self.assertEqual((nothing.code, nothing.out), (0, ""))
        made = json.loads(self.pipe("why", "production", "--output", "json").out)
        self.assertEqual([piece["step"] for piece in made["inputs"]["models"]], ["train.c-1", "train.c-2"])

    def test_tags_and_notes_are_added_and_removed(self):
        self.pipeline({"a": {"command": "true"}})
        self.run_pipe()
        self.assertEqual(self.pipe("tag", "latest", "best", "kept").code, 0)
        self.assertEqual(self.pipe("tag", "latest", "--remove", "kept").code, 0)
        self.assertIn("did you mean 'best'?", self.pipe("tag", "latest", "--remove", "besd").err)
        self.assertEqual(self.pipe("tag", "latest", "a\x1bb").code, 2)
        self.assertEqual(len(json.loads(self.pipe("runs", "--tag", "best", "--output", "json").out)["runs"]), 1)
        self.pipe("note", "latest", "with augmented data")
        self.assertIn("with augmented data", self.pipe("show").out)
        self.pipe("note", "latest", "")
        self.assertIn("no note", self.pipe("note", "latest").out)


if __name__ == "__main__":
    unittest.main()
