"""`pipe shell` of steps on a cluster opens a shell in a pod like the attempt's, on a terminal and on pipes."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import unittest

from support_cluster import ClusterTest, kubectl, needs_cluster, needs_test_bed, wait_until


class ShellTest(ClusterTest):
    def run_failing_step(self):
        """Runs a pipeline whose step `train` prints its secret, code, input and parameter, and fails with exit code 7."""
        self.write("lib/helper.sh", "X=1\n")
        self.write("train.sh", ". lib/helper.sh\necho $TOKEN $X $(cat $1) $2\nexit 7\n")
        self.pipeline({
            "load": {"command": "echo data > ${outputs.x}", "outputs": ["x"]},
            "train": {"command": "sh train.sh ${inputs.x} ${params.lr}", "inputs": {"x": "load.x"}, "outputs": ["model"], "parameters": {"lr": 0.5},
                      "secrets": ["TOKEN"], "environment": {"MODE": "fast"}, "timeout": "1h"},
        })
        self.run_pipe(code=1, TOKEN="hush-hush")

    def words(self, *words) -> list[str]:
        return [self.command, "shell", *words]

    def shell(self, *words, text: str = "", code: int = 0):
        done = subprocess.run(self.words(*words), cwd=self.folder, env=self.environment({"TOKEN": "hush-hush"}), input=text, capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, code, done)
        return done

    def shell_jobs(self) -> list[str]:
        """Returns the Jobs and pods of this test's shells."""
        return kubectl("get", "jobs,pods", "-l", f"pipe.shell,pipe.pipeline={self.mark}", "-o", "name").split()

    def assert_no_shell(self):
        # A kubelet takes 40 seconds to end a shell whose terminal was closed, even on an idle machine.
        wait_until(lambda: self.shell_jobs() == [], f"no shell being left: {self.shell_jobs()}")
        self.assertFalse(any((self.state / "shells").iterdir()))


@needs_cluster
@needs_test_bed
class ShellsInPods(ShellTest):
    def test_a_shell_has_the_files_and_variables_of_a_failed_attempt(self):
        self.run_failing_step()
        self.write("train.sh", "echo edited\n")
        self.assertEqual(self.shell("latest", "train", "--", "sh", "-c", 'eval "$PIPE_COMMAND"', code=7).stdout, "hush-hush 1 data 0.5\n")
        said = self.shell("latest", "train", text="echo $MODE $PIPE_PARAM_LR $PIPE_ATTEMPT; cat $PIPE_INPUT_X; ls; ls -d $PIPE_SCRATCH >&2; exit 5\n", code=5)
        self.assertEqual(said.stdout, "fast 0.5 1\ndata\nlib\ntrain.sh\n")
        self.assertTrue(said.stderr.strip())
        self.shell("latest", "train", "--", "sh", "-c", "echo x > $PIPE_OUTPUT_MODEL && test -s $PIPE_OUTPUT_MODEL")
        self.assertEqual(self.shell("latest", "train", "--", "no-such-program", code=3).stdout, "")
        self.assert_no_shell()

    def test_large_input_and_output_pass_through_pipes(self):
        self.run_failing_step()
        text = "x" * 79 + "\n"
        self.assertEqual(self.shell("latest", "train", "--", "cat", text=text * 20_000).stdout, text * 20_000)
        self.assert_no_shell()

    def terminal(self, *words) -> tuple[int, int]:
        """Starts `pipe shell` on a terminal, and returns its process id and the terminal's descriptor."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe(str(self.command), list(map(str, self.words(*words))), self.environment({"TOKEN": "hush-hush", "TERM": "xterm"}))
        self.shown = b""
        return pid, terminal

    def await_text(self, terminal: int, text: bytes):
        """Waits until the terminal has shown the text. `shown` has all that was read so far."""
        def is_there():
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(terminal, 65536)
                except OSError:
                    pass
            return text in self.shown

        wait_until(is_there, f"{text!r} on the terminal")

    def test_a_shell_on_a_terminal_has_its_size_and_its_keys(self):
        self.run_failing_step()
        pid, terminal = self.terminal("latest", "train", "--", "sh", "-c", "export PS1='ready> '; exec sh -i")
        self.await_text(terminal, b"ready> ")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 99, 0, 0))
        os.kill(pid, signal.SIGWINCH)
        os.write(terminal, b"until [ \"$(stty size)\" = \"$((40+1)) 99\" ]; do sleep 0.3; done; stty size; tty -s && echo on-$((1+1))\n")
        self.await_text(terminal, b"41 99")
        self.await_text(terminal, b"on-2")
        os.write(terminal, b"sh -c \"echo run''ning; exec sleep 1000\"\n")
        self.await_text(terminal, b"running")
        self.shown = b""
        os.write(terminal, b"\x03")
        self.await_text(terminal, b"ready> ")
        os.write(terminal, b"echo ended-$?\n")
        self.await_text(terminal, b"ended-130")
        os.write(terminal, b"exit 9\n")
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 9, self.shown)
        self.assert_no_shell()

    def test_nothing_is_left_when_the_terminal_is_closed(self):
        self.run_failing_step()
        pid, terminal = self.terminal("latest", "train", "--", "sh", "-c", "echo ready; exec sh -i")
        self.await_text(terminal, b"ready")
        os.close(terminal)
        os.waitpid(pid, 0)
        self.assert_no_shell()

    def test_a_killed_client_ends_the_shell(self):
        self.run_failing_step()
        pid, terminal = self.terminal("latest", "train", "--", "sh", "-c", "echo ready; exec sh -i")
        self.await_text(terminal, b"ready")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)

        def phase() -> str:
            pods = json.loads(kubectl("get", "pods", "-l", f"pipe.shell,pipe.pipeline={self.mark}", "-o", "json"))["items"]
            return pods[0]["status"]["phase"] if pods else "gone"

        wait_until(lambda: phase() != "Running", "the shell's end")
        for job in self.shell_jobs():
            kubectl("delete", job, "--wait=false", check=False)

    def test_a_shell_that_is_stopped_before_its_pod_runs_leaves_nothing(self):
        self.run_failing_step()
        text = (self.folder / "pipeline.yaml").read_text()
        self.write("pipeline.yaml", text.replace('"timeout": "1h"', '"timeout": "1h", "settings": {"kubernetes": {"node_selectors": {"testbed/none": "true"}}}'))
        process = self.start("shell", "latest", "train", "--", "true", TOKEN="hush-hush")
        wait_until(self.shell_jobs, "the shell's Job")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.finish(process).code, 130)
        self.assert_no_shell()

    def test_another_run_leaves_an_open_shell_alone(self):
        self.run_failing_step()
        process = subprocess.Popen(self.words("latest", "train", "--", "cat"), cwd=self.folder, env=self.environment({"TOKEN": "hush-hush"}),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdin.write("one\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "one\n")
        self.run_pipe(code=1, TOKEN="hush-hush")
        out, _ = process.communicate("two\n", timeout=300)
        self.assertEqual((out, process.returncode), ("two\n", 0))
        self.assert_no_shell()


if __name__ == "__main__":
    unittest.main()
