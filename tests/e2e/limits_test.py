"""Each limit of the machine in turn, lowered until nothing works: a run waits, or fails with a reason, and never hangs, crashes or has an internal error."""

import contextlib
import os
import pathlib
import re
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from support import PIPE, PipeTest, wait_until

NOBODY = 65534  # the user of this number has no rights
STEPS = 60  # 200 descriptors are not enough for so many steps at the same time
FEW = 20  # none of the low limits lets so many steps run at the same time


def hears_interrupts(process: subprocess.Popen) -> bool:
    """Returns whether the process handles or blocks SIGINT, instead of being killed by the signal."""
    with contextlib.suppress(OSError):
        masks = re.findall(r"^Sig(?:Cgt|Blk):\s+(\w+)", pathlib.Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        return any(int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in masks)
    return False


class Limited(PipeTest):
    orchestrator = "local"
    few = (8, 12, 16, 20, 24, 28, 32, 40, 48, 56)  # numbers of descriptors

    def steps(self, command: str = "echo out > ${outputs.o}; sleep 0.1", count: int = FEW) -> dict:
        return {"wide": {"matrix": {"i": list(range(count))}, "command": command, "outputs": ["o"]}}

    def begin(self, *limits: tuple, jobs: int = 40, user: int | None = None, home: pathlib.Path | None = None) -> subprocess.Popen:
        """Starts a run under these limits, each a kind of `resource`, a soft and a hard limit."""
        def lower():
            for kind, soft, hard in limits:
                resource.setrlimit(kind, (soft, hard))

        return subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", self.orchestrator, "--jobs", str(jobs)], cwd=self.folder, preexec_fn=lower, user=user,
                                env=self.environment({"HOME": str(home or self.folder)}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def assert_ends(self, process: subprocess.Popen, *codes: int):
        """Fails unless the run ends with one of these exit codes and with a message that a user understands. Returns its Result."""
        result = self.finish(process, 240)
        self.assertIn(result.code, codes, result)
        for riddle in ("internal error", "terminate called", "watches over the steps was killed"):
            self.assertNotIn(riddle, result.text)
        self.assertTrue(result.code == 0 or "error:" in result.text or "FAILED" in result.text.upper() or result.code == 130, result)
        return result

    def under(self, kind: int, limits, first_user: int | None = None):
        """Checks a run under each limit of a kind. All run at the same time: a limit holds for one process, or for one user, who is then `first_user` or one of
        the numbers behind it."""
        begun = []
        for number, limit in enumerate(limits):
            self.state = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            os.chmod(self.state, 0o777)
            user = first_user + number if first_user else None
            begun.append((limit, self.begin((kind, limit, limit), user=user, home=self.state)))
        for limit, process in begun:
            with self.subTest(kind=kind, limit=limit):
                self.assert_ends(process, 0, 1, 3)

    def test_few_descriptors_make_steps_wait_and_fewer_end_the_run_with_a_reason(self):
        self.pipeline(self.steps())
        self.under(resource.RLIMIT_NOFILE, self.few)
        self.pipeline(self.steps(count=STEPS))
        begun = []
        for limit in (96, 128, 200):
            self.state = self.folder / f"state-{limit}"
            begun.append(self.begin((resource.RLIMIT_NOFILE, limit, limit)))
        for process in begun:
            self.assertIn("open files", self.assert_ends(process, 0).text)

    def test_a_low_soft_limit_of_descriptors_is_raised_for_the_driver_and_not_for_steps(self):
        self.pipeline(self.steps("test $(ulimit -S -n) = 64; test $(ulimit -H -n) = 4000; echo > ${outputs.o}; sleep 0.1", STEPS))
        result = self.assert_ends(self.begin((resource.RLIMIT_NOFILE, 64, 4000), jobs=STEPS), 0)
        self.assertNotIn("open files", result.text)

    def test_few_processes_make_the_run_wait_or_fail_with_a_reason(self):
        if os.geteuid() != 0:
            self.skipTest("the limit does not hold for the user's other processes alone")
        self.pipeline(self.steps())
        os.chmod(self.folder, 0o777)
        self.under(resource.RLIMIT_NPROC, [1, 2, 3, 4, 5, 6, 8, 12], first_user=34567)

    def test_little_memory_makes_the_run_fail_with_a_reason(self):
        self.pipeline(self.steps())
        self.under(resource.RLIMIT_AS, [mib << 20 for mib in (48, 64, 80, 96, 128, 160, 192, 256, 320)])

    def test_a_limit_of_file_sizes_makes_the_run_fail_with_a_reason(self):
        self.pipeline(self.steps())
        self.under(resource.RLIMIT_FSIZE, [0, 1, 4096, 20_000, 60_000, 200_000])

    def test_a_small_stack_is_raised_or_named(self):
        if os.geteuid() != 0:
            self.skipTest("only root can run a command as another user")
        deep = 1
        for _ in range(300):
            deep = {"a": deep}
        self.pipeline({"one": {"command": "true"}}, parameters={"deep": deep})
        os.chmod(self.folder, 0o777)
        kib = 1 << 10
        for hard, code in ((8 << 20, 2), (64 * kib, 3), (512 * kib, 3)):
            with self.subTest(hard=hard):
                result = self.assert_ends(self.begin((resource.RLIMIT_STACK, 64 * kib, hard), user=NOBODY), code)
                self.assertIn("nested" if code == 2 else "the stack may have only", result.text)
        self.pipeline({"one": {"command": "test $(ulimit -S -s) -ge 1024; echo $(" * 50 + "true" + ")" * 50}})
        self.assert_ends(self.begin((resource.RLIMIT_STACK, 64 * kib, 8 << 20), user=NOBODY), 0, 1, 3)

    def test_a_full_disk_makes_the_run_fail_with_a_reason(self):
        disk = self.folder / "disk"
        disk.mkdir()
        self.pipeline(self.steps("head -c 20000 /dev/zero > ${outputs.o}"))
        for size in ("4k", "40k", "200k", "600k", "1m"):
            for inodes in ("20", "0"):
                if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes}", "none", disk], stderr=subprocess.DEVNULL).returncode != 0:
                    self.skipTest("this user cannot mount a small disk")
                self.addCleanup(subprocess.run, ["umount", "-l", disk], stderr=subprocess.DEVNULL)
                with self.subTest(size=size, inodes=inodes):
                    self.state = disk / "state"
                    self.assert_ends(self.begin(), 0, 1, 3)
                subprocess.run(["umount", "-l", disk], check=True)

    def test_a_control_group_of_few_processes_makes_the_run_fail_with_a_reason_and_is_left_empty(self):
        above = pathlib.Path("/sys/fs/cgroup/pids") if os.path.isdir("/sys/fs/cgroup/pids") else pathlib.Path("/sys/fs/cgroup")
        groups = {most: above / f"pipe-e2e-{self.mark}-{most}" for most in (1, 2, 4, 6, 8, 12)}
        self.addCleanup(lambda: [group.rmdir() for group in groups.values() if group.exists()])
        try:
            for most, group in groups.items():
                group.mkdir()
                (group / "pids.max").write_text(str(most))
        except OSError:
            self.skipTest("this user cannot make a control group here")
        self.pipeline(self.steps())
        begun = []
        for most, group in groups.items():
            self.state = self.folder / f"state-{most}"
            join = lambda group=group: (group / "cgroup.procs").write_text("0")  # noqa: E731
            begun.append((most, subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", "local", "--jobs", "40"], cwd=self.folder, env=self.environment({}),
                                                 preexec_fn=join, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)))
        for most, process in begun:
            with self.subTest(most=most):
                self.assert_ends(process, 0, 1, 3)
                wait_until(lambda: not (groups[most] / "cgroup.procs").read_text(), "an end of all processes")
                groups[most].rmdir()

    def test_logs_are_followed_without_inotify(self):
        self.pipeline({"one": {"command": f"echo begun; until [ -e {self.folder}/go ]; do sleep 0.1; done; echo ended"}})
        run = self.start("run", "pipeline.yaml", "-o", "local")
        wait_until(lambda: "begun" in self.pipe("logs", "latest").out or run.poll() is not None, "the step")
        if subprocess.run(["unshare", "-Ur", "sh", "-c", "echo 0 > /proc/sys/user/max_inotify_instances"], stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("this user cannot make a user namespace")
        follower = subprocess.Popen(["unshare", "-Ur", "sh", "-c", 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$0" logs latest one -f', PIPE],
                                    cwd=self.folder, env=self.environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.write("go", "")
        self.assertEqual(self.finish(follower).out, "begun\nended\n")
        self.assertEqual(self.finish(run).code, 0)

    def test_ctrl_c_ends_a_run_that_lacks_descriptors(self):
        self.pipeline(self.steps("sleep 1000", STEPS))
        begun = []
        for limit in (40, 64, 128):
            self.state = self.folder / f"state-{limit}"
            begun.append((limit, self.begin((resource.RLIMIT_NOFILE, limit, limit))))
        for _, process in begun:
            wait_until(lambda: process.poll() is not None or hears_interrupts(process), "the driver")
        for _ in range(3):
            time.sleep(1)
            for _, process in begun:
                if process.poll() is None:
                    process.send_signal(signal.SIGINT)
        for limit, process in begun:
            with self.subTest(limit=limit):
                self.assert_ends(process, 130, 1, 3)

    def test_ctrl_c_ends_a_driver_whose_loop_is_stuck(self):
        self.pipeline(self.steps("sleep 1000"))
        os.mkfifo(self.folder / "read-by-nobody")
        with open(self.folder / "read-by-nobody", "r+b", buffering=0) as full:
            os.set_blocking(full.fileno(), False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(full.fileno(), b"x" * 4096)
            os.set_blocking(full.fileno(), True)
            process = subprocess.Popen([PIPE, "run", "pipeline.yaml", "-o", "local"], cwd=self.folder, env=self.environment({}), stdin=subprocess.DEVNULL,
                                       stdout=full, stderr=full, start_new_session=True)
            wait_until(lambda: hears_interrupts(process), "the driver")
            time.sleep(1.5)
            for _ in range(3):
                process.send_signal(signal.SIGINT)
                time.sleep(0.3)
            self.assertEqual(process.wait(120), 130)

    def test_closed_standard_streams_are_not_written_to_as_files(self):
        self.pipeline({"one": {"command": "echo hello; echo x > ${outputs.o}", "outputs": ["o"]}})
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            with self.subTest(closed=closed):
                self.state = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                done = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", PIPE, "run", "pipeline.yaml", "-o", "local"], env=self.environment({}), cwd=self.folder,
                                      capture_output=True, text=True, timeout=300)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.pipe("verify").code, 0)
                self.assertEqual(self.pipe("logs", "latest", "one").out, "hello\n")


class LimitedContainers(Limited):
    orchestrator = "docker"
    few = (12, 40)  # with numbers between these, calls of the engine wait for one another, which takes long

    def steps(self, command: str = "echo out > ${outputs.o}", count: int = 12) -> dict:
        return {"wide": {"matrix": {"i": list(range(12))}, "command": command, "outputs": ["o"]}}

    # These tests are about the driver alone, which is the same program.
    test_a_low_soft_limit_of_descriptors_is_raised_for_the_driver_and_not_for_steps = None
    test_few_processes_make_the_run_wait_or_fail_with_a_reason = None
    test_little_memory_makes_the_run_fail_with_a_reason = None
    test_a_limit_of_file_sizes_makes_the_run_fail_with_a_reason = None
    test_a_full_disk_makes_the_run_fail_with_a_reason = None
    test_a_control_group_of_few_processes_makes_the_run_fail_with_a_reason_and_is_left_empty = None
    test_ctrl_c_ends_a_driver_whose_loop_is_stuck = None
    test_closed_standard_streams_are_not_written_to_as_files = None
    test_logs_are_followed_without_inotify = None

    def pipeline(self, steps: dict, *more, **top):
        return super().pipeline(steps, {"parent_image": "debian:bookworm-slim", "skip_build": True}, **top)


if __name__ == "__main__":
    unittest.main()
