"""One state folder that several machines, containers and commands use: a live run is not disturbed, and what a dead driver (`pipe run`) has left is found."""

import fcntl
import json
import os
import pathlib
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

from support import PIPE, PipeTest, wait_until
from support_machines import OTHER_BOOT, WAITS, MachinesTest, network_folder


class SharedState(MachinesTest):
    def waiting_pipeline(self):
        """Writes a pipeline whose step waits until the test makes the file `go`."""
        self.pipeline({"slow": WAITS})

    def status(self, run: str) -> str:
        """Returns the status of a run."""
        return json.loads(self.pipe("show", run, "--output", "json").out)["status"]

    def test_another_machine_leaves_a_live_run_alone(self):
        self.waiting_pipeline()
        process, run = self.begin()
        other = self.elsewhere()
        work = self.state / "work" / run
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "true"}}}))
        code, said = self.pipe_on(other, "run", "quick.yaml", "-o", "local")
        self.assertEqual(code, 0, said)
        code, said = self.pipe_on(other, "clean", "--runs", "--keep", "0")
        self.assertEqual(code, 0, said)
        self.assertIn(f"run {run}, which is running", said)
        code, said = self.pipe_on(other, "cancel", run)
        self.assertEqual(code, 2, said)
        self.assertIn("cannot be stopped from here", said)
        code, said = self.pipe_on(other, "cancel", run, "--force")
        self.assertEqual(code, 2, said)
        code, said = self.pipe_on(other, "resume", run)
        self.assertEqual(code, 2, said)
        self.assertIn("is still running", said)
        self.assertTrue(work.is_dir())
        self.go.touch()
        self.assertEqual(self.finish(process).code, 0)
        self.assertEqual(self.status(run), "succeeded")
        self.assert_nothing_left()

    def test_a_driver_that_died_on_another_machine_is_known_to_be_dead(self):
        self.waiting_pipeline()
        process, run = self.begin(self.elsewhere())
        self.assertEqual(self.status(run), "running")
        refused = self.pipe("cancel", run)
        self.assertEqual(refused.code, 2, refused)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: "died" in self.pipe("show", run).out, "a dead driver")
        self.assertEqual(self.status(run), "died")
        self.assertEqual([each["status"] for each in json.loads(self.pipe("runs", "--output", "json").out)["runs"]], ["died"])
        self.go.touch()
        resumed = self.pipe("resume", run)
        self.assertEqual(resumed.code, 0, resumed)
        self.assertEqual(self.status(run), "succeeded")

    def test_a_run_whose_driver_may_be_alive_is_left_alone_until_the_user_forces_its_end(self):
        self.waiting_pipeline()
        process, run = self.begin()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # Records the driver as a version without locks would, on a machine with another boot identifier.
        with sqlite3.connect(self.state / "pipe.db") as database:
            database.execute("UPDATE runs SET driver_started = ?", (f"{OTHER_BOOT}:pid:[4026531836]:77",))
        database.close()
        work = self.state / "work" / run
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "true"}}}))
        self.assertEqual(self.pipe("run", "quick.yaml", "-o", "local").code, 0)
        cleaned = self.pipe("clean", "--runs", "--keep", "0", "--output", "json")
        self.assertEqual(cleaned.code, 0, cleaned)
        self.assertIn("it is not known whether the driver", " ".join(json.loads(cleaned.out)["kept"]))
        for command in ("cancel", "resume"):
            refused = self.pipe(command, run)
            self.assertEqual(refused.code, 3, refused)
            self.assertIn("it is not known whether the driver", refused.err)
            self.assertIn(f"pipe cancel {run} --force", refused.err)
        self.assertTrue(work.is_dir())
        self.assertIn("unknown", self.pipe("show", run).out)
        forced = self.pipe("cancel", run, "--force")
        self.assertEqual(forced.code, 0, forced)
        self.assertEqual(self.status(run), "interrupted")
        self.assertFalse(work.exists())
        self.go.touch()
        self.assertEqual(self.pipe("resume", run).code, 0)

    def test_on_a_network_file_system_there_is_no_write_ahead_log_and_drivers_have_a_heartbeat(self):
        library = network_folder(self)
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "true"}}}))
        self.assertEqual(self.pipe("run", "quick.yaml", "-o", "local").code, 0)
        # Byte 18 of the header of SQLite's file format: 2 with a write-ahead log, 1 without.
        self.assertEqual((self.state / "pipe.db").read_bytes()[18], 2, "a write-ahead log on a local file system")
        self.waiting_pipeline()
        process, run = self.begin(LD_PRELOAD=library)
        self.assertEqual((self.state / "pipe.db").read_bytes()[18], 1)
        self.assertFalse((self.state / "pipe.db-wal").exists())
        self.assertTrue((self.state / "drivers" / run).exists())
        self.go.touch()
        self.assertEqual(self.finish(process).code, 0)
        self.assertFalse((self.state / "drivers" / run).exists())

    def test_a_run_waits_while_another_process_removes_artifacts(self):
        self.pipeline({"one": {"command": "echo x > ${outputs.out}", "outputs": ["out"]}})
        self.run_pipe()
        with open(self.state / "locks", "r+b") as locks:
            fcntl.fcntl(locks, fcntl.F_OFD_SETLKW, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0))
            process = self.start("run", "pipeline.yaml", "-o", "local")
            self.assertIn("waiting for `pipe clean`", process.stderr.readline())
            self.assertIsNone(process.poll())
        result = self.finish(process)
        self.assertEqual(result.code, 0, result)


class LeftFolders(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        if pathlib.Path("/dev/shm").is_dir():  # On a disk, removing a deep folder may take many seconds.
            self.state = pathlib.Path(tempfile.mkdtemp(prefix="pipe-e2e-", dir="/dev/shm"))
            self.addCleanup(subprocess.run, ["rm", "-rf", self.state])

    def test_a_step_may_leave_a_folder_deeper_than_there_are_descriptors(self):
        self.write("deep.py", "import os\nos.chdir('..')\nfor _ in range(1900):\n  os.mkdir('d')\n  os.chdir('d')\n")
        self.pipeline({"deep": {"command": [sys.executable, "deep.py"], "code": ["deep.py"]}})
        limited = subprocess.run(["sh", "-c", 'ulimit -n 200; exec "$@"', "sh", PIPE, "run", "pipeline.yaml", "-o", "local"], cwd=self.folder,
                                 env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(limited.returncode, 0, limited.stdout)
        self.assert_nothing_left()

    def test_files_of_the_user_of_a_step_become_those_of_the_caller(self):
        socket = pathlib.Path(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
        if os.geteuid() != 0 or not socket.exists():
            self.skipTest("only root can become another user, who may use the engine")
        nobody = 65534
        os.chown(self.folder, nobody, nobody)
        os.chown(self.state, nobody, nobody)
        if subprocess.run([PIPE, "--version"], user=nobody, stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("another user cannot execute pipe here")
        self.pipeline({"one": {"command": "umask 077; mkdir -p $HOME/cache/deep ${outputs.model}; echo x > ${outputs.model}/weights", "outputs": ["model"]}},
                      {"parent_image": "debian:bookworm-slim", "skip_build": True, "user": "12345:12345"})
        env = self.environment({"HOME": str(self.folder), "TMPDIR": str(self.folder)})
        done = subprocess.run([PIPE, "run", "pipeline.yaml", "--output", "json"], cwd=self.folder, env=env, user=nobody, group=nobody,
                              extra_groups=[socket.stat().st_gid], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("cannot remove", done.stdout + done.stderr)
        self.assertEqual(list((self.state / "work").glob("*")), [])


@unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
class StateOfAnotherOwner(PipeTest):
    """The names of the tests go on from "a state folder of another owner"."""

    orchestrator = "local"
    reader = 65534

    def setUp(self):
        super().setUp()
        if subprocess.run([PIPE, "--version"], user=self.reader, stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("another user cannot execute pipe here")
        self.pipeline({"one": {"command": "echo said; echo '@pipe {\"metric\": \"loss\", \"value\": 0.5}'; echo x > ${outputs.out}", "outputs": ["out"]}})
        self.run_pipe()

    def as_reader(self, *words: str) -> subprocess.CompletedProcess:
        """Runs `pipe` as a user who can only read the state folder."""
        env = self.environment({"HOME": "/nonexistent", "TMPDIR": "/tmp"})
        return subprocess.run([PIPE, *words], cwd=self.folder, env=env, user=self.reader, group=self.reader, extra_groups=[], capture_output=True, text=True)

    def test_can_be_read(self):
        os.chmod(self.folder, 0o755)
        before = sorted((path, path.lstat().st_mtime_ns) for path in self.state.rglob("*") if path.is_file())
        for words, expected in ((["runs"], "succeeded"), (["show"], "one"), (["logs", "latest"], "said"), (["metrics"], "loss"), (["artifacts"], "out"), (["why", "one.out"], "one"),
                                (["report", "-o", "-"], "<html"), (["verify"], ""), (["plan", "pipeline.yaml", "-o", "local"], "1 to reuse")):
            done = self.as_reader(*words)
            self.assertEqual(done.returncode, 0, (words, done))
            self.assertIn(expected, done.stdout, words)
        self.assertEqual(sorted((path, path.lstat().st_mtime_ns) for path in self.state.rglob("*") if path.is_file()), before)

    def test_shows_a_running_run_to_a_reader_who_cannot_take_locks(self):
        os.chmod(self.folder, 0o755)
        self.pipeline({"one": {"command": "while [ ! -e \"$GO\" ]; do sleep 0.02; done"}})
        go = self.folder / "go"
        process = self.start("run", "pipeline.yaml", "-o", "local", GO=str(go))
        wait_until(lambda: "running" in self.pipe("runs").out, "a running run")
        self.assertEqual((self.state / "locks").stat().st_mode & 0o077, 0)
        self.assertIn("running", self.as_reader("show", "latest", "--output", "json").stdout)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: '"died"' in self.as_reader("show", "latest", "--output", "json").stdout, "a dead driver")

    def test_gets_no_run_and_the_error_says_why(self):
        os.chmod(self.folder, 0o755)
        for words in (["run", "pipeline.yaml", "-o", "local"], ["tag", "latest", "mine"], ["clean", "--runs", "--keep", "0"]):
            done = self.as_reader(*words)
            self.assertEqual(done.returncode, 3, (words, done))
            self.assertRegex(done.stderr, "cannot write the run store .*pipe.db: Permission denied", words)


@unittest.skipUnless(os.geteuid() == 0, "only root can make files of another owner")
class FilesOfAnotherOwner(PipeTest):
    """`pipe` is run by a user who cannot remove the folder `theirs` of another owner in a step's folders. The names of the tests go on from "such files"."""
    orchestrator = "local"
    waits = "while [ ! -e \"$GO\" ]; do sleep 0.02; done"

    def setUp(self):
        super().setUp()
        self.caller = 65534
        os.chown(self.folder, self.caller, self.caller)
        if subprocess.run([PIPE, "--version"], user=self.caller, stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("another user cannot execute pipe here")

    def as_caller(self, *words: str) -> subprocess.Popen:
        """Starts `pipe` as this user."""
        env = self.environment({"GO": str(self.folder / "go"), "HOME": str(self.folder), "TMPDIR": str(self.folder)})
        return subprocess.Popen([PIPE, *words, "--output", "json"], cwd=self.folder, env=env, user=self.caller, group=self.caller,
                                extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run_with_theirs(self, place: str) -> tuple[int, str]:
        """Starts a run, and makes the folder `theirs` in this folder of its first attempt. Returns the run's exit code and output."""
        process = self.as_caller("run", "pipeline.yaml", "-o", "local")
        folder = wait_until(lambda: next(self.state.glob(f"work/*/one.1/{place}"), None), "the step's folder")
        (folder / "theirs").mkdir()
        (folder / "theirs/file").write_text("x")
        (self.folder / "go").touch()
        out, err = process.communicate(timeout=60)
        return process.returncode, out + err

    def kept_by_clean(self) -> str:
        """Returns what `pipe clean` says that it has kept, and why."""
        cleaned = self.as_caller("clean", "--runs", "--keep", "0")
        out, err = cleaned.communicate(timeout=60)
        self.assertEqual(cleaned.returncode, 0, out + err)
        return " ".join(json.loads(out)["kept"])

    def test_are_reported_by_a_notice_and_do_not_fail_the_run(self):
        self.pipeline({"one": {"command": "echo begun; " + self.waits, "environment": ["GO"]}})
        code, out = self.run_with_theirs("scratch")
        self.assertEqual(code, 0, out)
        notices = [line for line in out.splitlines() if '"notice"' in line]
        self.assertTrue(any("cannot remove" in notice for notice in notices), out)
        self.assertIn("cannot remove", self.kept_by_clean())
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assert_nothing_left()

    def test_of_a_failed_attempt_do_not_fail_the_next_attempt(self):
        self.pipeline({"one": {"command": "mkdir ${outputs.made}; [ $PIPE_ATTEMPT = 2 ] || { " + self.waits + "; exit 1; }",
                               "outputs": ["made"], "environment": ["GO"], "retry": {"max_retries": 1}}})
        code, out = self.run_with_theirs("outputs/made")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assertEqual(list((self.state / "failed").iterdir()), [])

    def test_of_a_failed_run_are_removed_by_a_later_clean_of_another_user(self):
        self.pipeline({"one": {"command": "mkdir ${outputs.made}; " + self.waits + "; exit 1", "outputs": ["made"], "environment": ["GO"]}})
        code, out = self.run_with_theirs("outputs/made")
        self.assertEqual(code, 1, out)
        self.assertIn("cannot remove", self.kept_by_clean())
        self.assertEqual(json.loads(self.pipe("runs", "--output", "json").out)["runs"], [])
        self.assertIn("cannot remove", self.kept_by_clean())
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "0").code, 0)
        self.assertEqual(list((self.state / "failed").iterdir()), [])


class Verify(PipeTest):
    orchestrator = "local"

    def flip(self, path: str):
        """Changes one bit of a file, and keeps its times."""
        before = os.stat(path)
        os.chmod(path, 0o644)
        with open(path, "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 1]))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.chmod(path, 0o444)

    def path_of(self, name: str) -> str:
        """Returns the path of an artifact, STEP.OUTPUT, of the latest run."""
        outputs = json.loads(self.pipe("artifacts", "latest", "--output", "json").out)
        outputs = outputs["artifacts"] if isinstance(outputs, dict) else outputs
        return next(output["path"] for output in outputs if output["output"] == name)

    def make(self, size: int):
        """Writes a pipeline with an artifact of this many bytes, and a step that uses it."""
        self.write("make.sh", f"head -c {size} /dev/zero > \"$1\"\n")
        self.pipeline({"make": {"command": "sh make.sh ${outputs.out}", "code": ["make.sh"], "outputs": ["out"]},
                       "use": {"command": "cksum < ${inputs.out}", "inputs": {"out": "make.out"}, "parameters": {"n": 0}}})

    def test_a_small_input_with_a_flipped_bit_is_made_again_before_it_is_used(self):
        self.make(1000)
        self.run_pipe()
        path = pathlib.Path(self.path_of("make.out"))
        self.flip(str(path))
        result = self.run_pipe("-p", "use.n=1")
        self.assertEqual(result.steps(), {"make": "succeeded", "use": "succeeded"}, result)
        self.assertIn("runs again, because its output is damaged", result.text)
        self.assertEqual(path.read_bytes(), bytes(1000))

    def test_verify_finds_a_flipped_bit_wherever_it_is(self):
        self.make(5_000_000)
        self.run_pipe()
        fine = self.pipe("verify")
        self.assertEqual(fine.code, 0, fine)
        self.assertIn("no problems", fine.out)
        self.flip(self.path_of("make.out"))
        refused = self.pipe("artifacts", "latest", "make.out", "--copy", "copy")
        self.assertEqual(refused.code, 3, refused)
        self.assertIn("`pipe verify` moves it aside", refused.err)
        for words in (("verify", "latest"), ("verify",)):
            found = self.pipe(*words, "--output", "json")
            self.assertEqual(found.code, 3, found)
            findings = json.loads(found.out)["findings"]
            self.assertEqual([finding["output"] for finding in findings], ["make.out"])
            self.assertEqual(findings[0]["state"], "damaged" if words[-1] == "latest" else "missing")
        self.assertIn("make.out", self.pipe("verify").out)
        self.assertEqual(self.run_pipe().steps()["make"], "succeeded")
        self.assertEqual(self.pipe("verify").code, 0)

    def test_verify_reads_the_database_too(self):
        self.make(10)
        self.run_pipe()
        with sqlite3.connect(self.state / "pipe.db") as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        with open(self.state / "pipe.db", "r+b") as file:
            file.seek(4096)  # The second page; its first byte says which kind of page it is.
            file.write(b"\xff")
        found = self.pipe("verify", "--output", "json")
        self.assertEqual(found.code, 3, found)
        self.assertRegex(found.text, "damaged|checksum")


if __name__ == "__main__":
    unittest.main()
