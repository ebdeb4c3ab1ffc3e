"""A run whose step waits for the test, and `pipe` commands in namespaces that look to `pipe` like another machine with the same folders."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
from typing import Iterable

from support import PIPE, PipeTest

OTHER_BOOT = "00000000-1111-2222-3333-444444444444"
# A step that prints a line, and ends when the file that $GO names exists.
WAITS = {"command": "echo begun; while [ ! -e \"$GO\" ]; do sleep 0.02; done; echo done > ${outputs.out}", "outputs": ["out"],
         "environment": ["GO"]}


def network_folder(test: PipeTest) -> str:
    """Returns the path of a library for LD_PRELOAD. With it, `pipe` takes every folder for one on a network file system."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        test.skipTest("no C compiler")
    library = test.folder / "network_folder.so"
    source = pathlib.Path(__file__).parent.parent / "support/network_folder.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return str(library)


class MachinesTest(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.go = self.folder / "go"

    def environment(self, env):
        return super().environment({"GO": str(self.go), **env})

    def begin(self, prefix: Iterable[str] = (), **env) -> tuple[subprocess.Popen, str]:
        """Starts `pipe run`, waits for the first line that its step prints, and returns the process and the run's identifier. `prefix` has words before the
        command, such as those of elsewhere()."""
        process = subprocess.Popen([*prefix, PIPE, "run", "pipeline.yaml", "-o", "local", "--output", "json"], cwd=self.folder,
                                   env=self.environment(env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)

        def end():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(end)
        run = ""
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "run_started":
                run = event["run"]
            if event["event"] == "step_log":
                return process, run
        raise AssertionError(process.stderr.read())

    def elsewhere(self) -> list[str]:
        """Returns the words before a command that give it process identifiers, a boot identifier and a host name of its own, as on another machine."""
        boot = self.write("boot_id", OTHER_BOOT + "\n")
        words = ["unshare", "--mount", "--pid", "--uts", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                 f"hostname elsewhere && mount --bind {boot} /proc/sys/kernel/random/boot_id && exec \"$@\"", "sh"]
        if subprocess.run([*words, "true"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no PID and mount namespaces to be had")
        return words

    def pipe_on(self, machine: Iterable[str], *words) -> tuple[int, str]:
        """Returns the exit code and the output of a `pipe` command on a machine: that of elsewhere(), or (), which is this machine."""
        done = subprocess.run([*machine, PIPE, *map(str, words)], cwd=self.folder, env=self.environment({}), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        return done.returncode, done.stdout
