"""One state folder and several machines, containers and commands: nobody's run is touched, and what a dead driver has left is found."""

import fcntl
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

from support import PIPE, PipeTest, wait_until
from support_machines import OTHER_BOOT, WAITS, MachinesTest


class SharedState(MachinesTest):
    def waiting_pipeline(self):
        self.pipeline({"slow": WAITS})

    def status(self, run: str) -> str:
        return json.loads(self.pipe("show", run, "--output", "json").out)["status"]

    def test_another_machine_leaves_a_live_run_alone(self):
        self.waiting_pipeline()
        process, run = self.begin()
        other = self.elsewhere()
        work = self.state / "work" / run
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "true"}}}))
        code, said = self.pipe_on(other, "run", "quick.yaml", "-o", "local")
        self.assertEqual(code, 0, said)
        code, said = self.pipe_on(other, "clean", "--runs")
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

    def test_a_driver_that_died_on_another_machine_is_dead(self):
        self.waiting_pipeline()
        process, run = self.begin(self.elsewhere())
        self.assertEqual(self.status(run), "running")
        refused = self.pipe("cancel", run)
        self.assertEqual(refused.code, 2, refused)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: "died" in self.pipe("show", run).out, "a dead driver")
        self.go.touch()
        resumed = self.pipe("resume", run)
        self.assertEqual(resumed.code, 0, resumed)
        self.assertEqual(self.status(run), "succeeded")

    def test_a_run_of_which_nothing_is_known_waits_for_the_user(self):
        self.waiting_pipeline()
        process, run = self.begin()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # As a version without locks has recorded it, on a machine that nobody here knows.
        with sqlite3.connect(self.state / "pipe.db") as database:
            database.execute("UPDATE runs SET driver_started = ?", (f"{OTHER_BOOT}:pid:[4026531836]:77",))
        database.close()
        work = self.state / "work" / run
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "true"}}}))
        self.assertEqual(self.pipe("run", "quick.yaml", "-o", "local").code, 0)
        cleaned = self.pipe("clean", "--runs", "--output", "json")
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

    def test_a_network_file_system_has_no_write_ahead_log_and_its_drivers_a_heartbeat(self):
        library = self.folder / "network_folder.so"
        source = pathlib.Path(__file__).parent.parent / "support/network_folder.c"
        compiler = shutil.which("cc") or shutil.which("gcc")
        if not compiler:
            self.skipTest("no C compiler")
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.write("quick.yaml", json.dumps({"name": "quick", "steps": {"one": {"command": "true"}}}))
        self.assertEqual(self.pipe("run", "quick.yaml", "-o", "local").code, 0)
        self.assertEqual((self.state / "pipe.db").read_bytes()[18], 2, "a write-ahead log on a local one")
        self.waiting_pipeline()
        process, run = self.begin(LD_PRELOAD=str(library))
        self.assertEqual((self.state / "pipe.db").read_bytes()[18], 1)
        self.assertFalse((self.state / "pipe.db-wal").exists())
        self.assertTrue((self.state / "drivers" / run).exists())
        self.go.touch()
        self.assertEqual(self.finish(process).code, 0)
        self.assertFalse((self.state / "drivers" / run).exists())

    def test_a_run_waits_for_what_removes_artifacts(self):
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
        if pathlib.Path("/dev/shm").is_dir():  # a disk may take many seconds to remove a deep folder
            self.state = pathlib.Path(tempfile.mkdtemp(prefix="pipe-e2e-", dir="/dev/shm"))
            self.addCleanup(subprocess.run, ["rm", "-rf", self.state])

    def test_a_step_may_leave_a_folder_deeper_than_there_are_descriptors(self):
        self.write("deep.py", "import os\nos.chdir('..')\nfor _ in range(1900):\n  os.mkdir('d')\n  os.chdir('d')\n")
        self.pipeline({"deep": {"command": [sys.executable, "deep.py"], "code": ["deep.py"]}})
        limited = subprocess.run(["sh", "-c", 'ulimit -n 200; exec "$@"', "sh", PIPE, "run", "pipeline.yaml", "-o", "local"], cwd=self.folder,
                                 env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(limited.returncode, 0, limited.stdout)
        self.assert_nothing_left()

    def test_files_of_the_step_s_user_become_the_caller_s(self):
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

    def test_files_of_another_owner_are_a_notice_and_no_failure(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make files of another owner")
        nobody = 65534
        os.chown(self.folder, nobody, nobody)
        os.chown(self.state, nobody, nobody)
        if subprocess.run([PIPE, "--version"], user=nobody, stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("another user cannot execute pipe here")
        self.pipeline({"one": {"command": "echo begun; while [ ! -e \"$GO\" ]; do sleep 0.02; done", "environment": ["GO"]}})
        go = self.folder / "go"
        env = self.environment({"GO": str(go), "HOME": str(self.folder), "TMPDIR": str(self.folder)})
        process = subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", "local", "--output", "json"], cwd=self.folder, env=env, user=nobody, group=nobody,
                                   extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        work = wait_until(lambda: next(self.state.glob("work/*/one.1/scratch"), None), "the step's folder")
        theirs = work / "theirs"
        theirs.mkdir()
        (theirs / "file").write_text("x")
        go.touch()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        notices = [json.loads(line) for line in out.splitlines() if '"notice"' in line]
        self.assertTrue(any("cannot remove" in json.dumps(notice) for notice in notices), out)
        cleaned = subprocess.run([PIPE, "clean", "--runs", "--output", "json"], cwd=self.folder, env=env, user=nobody, group=nobody, extra_groups=[],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(cleaned.returncode, 0, cleaned.stdout + cleaned.stderr)
        self.assertIn("cannot remove", " ".join(json.loads(cleaned.stdout)["kept"]))
        shutil.rmtree(theirs)
        self.assertEqual(self.pipe("clean", "--runs").code, 0)
        self.assert_nothing_left()

    def test_a_retry_succeeds_though_the_failed_attempt_has_left_files_of_another_owner(self):
        if os.geteuid() != 0:
            self.skipTest("only root can make files of another owner")
        nobody = 65534
        os.chown(self.folder, nobody, nobody)
        os.chown(self.state, nobody, nobody)
        if subprocess.run([PIPE, "--version"], user=nobody, stdout=subprocess.DEVNULL).returncode != 0:
            self.skipTest("another user cannot execute pipe here")
        self.pipeline({"one": {"command": "mkdir ${outputs.made}; [ $PIPE_ATTEMPT = 2 ] || { while [ ! -e \"$GO\" ]; do sleep 0.02; done; exit 1; }",
                               "outputs": ["made"], "environment": ["GO"], "retry": {"max_retries": 1}}})
        go = self.folder / "go"
        env = self.environment({"GO": str(go), "HOME": str(self.folder), "TMPDIR": str(self.folder)})
        process = subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", "local", "--output", "json"], cwd=self.folder, env=env, user=nobody, group=nobody,
                                   extra_groups=[], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        made = wait_until(lambda: next(self.state.glob("work/*/one.1/outputs/made"), None), "the step's output")
        (made / "theirs").mkdir()
        (made / "theirs/file").write_text("x")
        go.touch()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(self.pipe("clean", "--runs").code, 0)
        self.assertEqual(list((self.state / "failed").iterdir()), [])


class Verify(PipeTest):
    orchestrator = "local"

    def flip(self, path: str):
        """One bit, with the old times."""
        before = os.stat(path)
        os.chmod(path, 0o644)
        with open(path, "r+b") as file:
            byte = file.read(1)[0]
            file.seek(0)
            file.write(bytes([byte ^ 1]))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        os.chmod(path, 0o444)

    def path_of(self, name: str) -> str:
        outputs = json.loads(self.pipe("artifacts", "latest", "--output", "json").out)
        outputs = outputs["artifacts"] if isinstance(outputs, dict) else outputs
        return next(output["path"] for output in outputs if output["output"] == name)

    def make(self, size: int):
        self.write("make.sh", f"head -c {size} /dev/zero > \"$1\"\n")
        self.pipeline({"make": {"command": "sh make.sh ${outputs.out}", "code": ["make.sh"], "outputs": ["out"]},
                       "use": {"command": "cksum < ${inputs.out}", "inputs": {"out": "make.out"}, "parameters": {"n": 0}}})

    def test_a_flipped_bit_in_a_small_input_is_noticed_before_it_is_used(self):
        self.make(1000)
        self.run_pipe()
        self.flip(self.path_of("make.out"))
        result = self.run_pipe("-p", "use.n=1", code=None)
        self.assertEqual(result.steps()["use"], "failed", result)
        self.assertIn("is damaged", result.failure("use")["message"])
        again = self.run_pipe("-p", "use.n=1")
        self.assertEqual(again.steps(), {"make": "succeeded", "use": "succeeded"})

    def test_verify_finds_a_flipped_bit_wherever_it_is(self):
        self.make(5_000_000)
        self.run_pipe()
        fine = self.pipe("verify")
        self.assertEqual(fine.code, 0, fine)
        self.assertIn("all whole", fine.out)
        self.flip(self.path_of("make.out"))
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
            file.seek(4096)  # the second page: it says what kind it is
            file.write(b"\xff")
        found = self.pipe("verify", "--output", "json")
        self.assertEqual(found.code, 3, found)
        self.assertRegex(found.text, "damaged|checksum")


if __name__ == "__main__":
    unittest.main()
