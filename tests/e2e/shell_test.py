"""`pipe shell` opens a shell in the environment of a step's attempt, on a terminal or on pipes."""

import json
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from support import NOWHERE, PARENT, PipeTest, docker


class ShellsLocally(PipeTest):
    orchestrator = "local"

    def run_failing_step(self, **docker_settings):
        """Runs a pipeline whose step `train` prints its secret, code, input and parameter, and fails with exit code 7."""
        self.write("lib/helper.py", "X = 1\n")
        self.write("train.py", "import os, sys\nfrom lib import helper\nprint(os.environ['TOKEN'], helper.X, open(sys.argv[1]).read().strip(), sys.argv[2])\n"
                               "raise SystemExit(7)\n")
        self.pipeline({
            "load": {"command": "echo data > ${outputs.x}", "outputs": ["x"]},
            "train": {"command": "python3 train.py ${inputs.x} ${params.lr}", "inputs": {"x": "load.x"}, "outputs": ["model"], "parameters": {"lr": 0.5},
                      "secrets": ["TOKEN"], "environment": {"MODE": "fast"}},
        }, docker_settings)
        self.run_pipe(code=1, TOKEN="hush-hush")

    def shell(self, *words, text: str = "", code: int = 0, **env):
        """Executes `pipe shell` with `text` on its stdin, and returns the completed process. `code` is the expected exit code."""
        done = subprocess.run([self.command, "shell", *words], cwd=self.folder, env=self.environment({"TOKEN": "hush-hush", **env}), input=text,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done)
        return done

    def test_a_shell_has_the_files_and_variables_of_a_failed_attempt(self):
        self.run_failing_step()
        self.write("train.py", "print('edited')\n")
        self.assertEqual(self.shell("latest", "train", "--", "sh", "-c", 'eval "$PIPE_COMMAND"', code=7).stdout, "hush-hush 1 data 0.5\n")
        said = self.shell("latest", "train", text="echo $MODE $PIPE_PARAM_LR $PIPE_ATTEMPT; cat $PIPE_INPUT_X; ls; ls -d $PIPE_SCRATCH >&2; exit 5\n", code=5)
        self.assertEqual(said.stdout, "fast 0.5 1\ndata\nlib\ntrain.py\n")
        self.assertTrue(said.stderr.strip())
        self.shell("latest", "train", "--", "sh", "-c", "echo x > $PIPE_OUTPUT_MODEL && test -s $PIPE_OUTPUT_MODEL")
        self.assertEqual(json.loads(self.pipe("artifacts", "latest", "--output", "json").out)["artifacts"][-1]["output"], "load.x", "the output of a shell is not kept")
        self.assertFalse(any((self.state / "shells").iterdir()))
        self.assert_nothing_left()

    def test_a_step_that_has_changed_since_the_run_is_named(self):
        self.run_failing_step()
        self.assertEqual(self.shell("latest", "train", "--", "true").stderr, "")
        text = (self.folder / "pipeline.yaml").read_text()
        self.write("pipeline.yaml", text.replace("fast", "slow"))
        changed = self.shell("latest", "train", "--", "sh", "-c", "echo $MODE")
        self.assertIn("'train' has changed since run", changed.stderr)
        self.assertEqual(changed.stdout, "slow\n")
        self.write("pipeline.yaml", text.replace("0.5", "0.75"))
        self.assertEqual(self.pipe("shell", "latest", "load", "--", "true").code, 0)

    def test_a_reused_step_has_the_shell_of_the_run_that_made_it(self):
        self.run_failing_step()
        self.run_pipe(code=1, TOKEN="hush-hush")
        self.assertEqual(self.shell("latest", "load", "--", "sh", "-c", "echo $PIPE_STEP_NAME").stdout, "load\n")

    def test_steps_of_a_matrix_made_during_the_run_have_shells(self):
        self.pipeline({
            "split": {"command": "mkdir ${outputs.files}; echo one > ${outputs.files}/a; echo two > ${outputs.files}/b", "outputs": ["files"]},
            "work": {"matrix": {"file": "${split.files[*]}"}, "command": "cat ${inputs.file} > ${outputs.x}", "outputs": ["x"]},
            "after": {"matrix": "work", "command": "cat ${inputs.x}", "inputs": {"x": "work[=].x"}},
            "all": {"command": "ls ${inputs.all}", "inputs": {"all": "work[*].x"}},
        })
        self.run_pipe()
        self.assertEqual(self.shell("latest", "work.file-b", "--", "sh", "-c", "cat $PIPE_INPUT_FILE; echo $PIPE_PARAM_FILE").stdout, "two\nb\n")
        self.assertEqual(self.shell("latest", "after[file=a]", "--", "sh", "-c", "cat $PIPE_INPUT_X").stdout, "one\n")
        self.assertEqual(self.shell("latest", "all", "--", "sh", "-c", "cat $PIPE_INPUT_ALL/[0-9]*").stdout, "one\ntwo\n")

    def test_missing_secrets_and_steps_are_errors(self):
        self.run_failing_step()
        environment = {name: value for name, value in self.environment({}).items() if name != "TOKEN"}
        refused = subprocess.run([self.command, "shell", "latest", "train", "--", "true"], cwd=self.folder, env=environment, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 3, refused)
        self.assertIn("needs the secret TOKEN", refused.stderr)
        self.assertIn("did you mean 'train'?", self.shell("latest", "trian", code=2).stderr)

    def on_terminal(self, words: list[str], typed: list[tuple[str, bytes]]) -> tuple[bytes, int]:
        """Runs the command on a terminal, and returns all that the terminal has shown and the exit code.

        Each pair of `typed` is a text to wait for and the bytes to type then. A text is searched only in what was shown since the last typing.
        """
        transcript = shown = b""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.folder)
            os.execvpe(self.command, [self.command, *words], self.environment({"TOKEN": "hush-hush", "TERM": "xterm"}))
        end = time.monotonic() + 180
        typed = list(typed)
        while time.monotonic() < end:
            if typed and typed[0][0].encode() in shown:
                os.write(terminal, typed.pop(0)[1])
                transcript += shown
                shown = b""
            if select.select([terminal], [], [], 0.1)[0]:
                try:
                    shown += os.read(terminal, 4096)
                except OSError:  # The command has ended.
                    break
        else:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        return transcript + shown, os.waitstatus_to_exitcode(status)

    def test_a_shell_on_a_terminal_has_a_terminal_and_ends_with_its_own_code(self):
        self.run_failing_step()
        prompt = "code"  # The start-up files of bash set a prompt with the name of the folder.
        shown, code = self.on_terminal(["shell", "latest", "train"],
                                       [(prompt, b"tty -s && echo on-$((1+1)) $TERM\n"), (prompt, b"exit 9\n")])
        self.assertEqual(code, 9, shown)
        self.assertIn(b"on-2 xterm", shown)
        self.assert_nothing_left()

    def test_ctrl_c_is_for_the_program_in_the_foreground(self):
        """Ctrl-C is typed only after the program has printed "running": before, the shell would receive it, and would not start the program."""
        self.run_failing_step()
        prompt = "code"
        waits = ("python3 -c 'import signal, sys, time; signal.signal(2, lambda *_: sys.exit(3)); print(\"run\" + \"ning\", flush=True); time.sleep(1000)'"
                 "; echo after-$?\n").encode()
        shown, code = self.on_terminal(["shell", "latest", "train"], [(prompt, waits), ("running", b"\x03"), ("after-3", b"echo still-$((1+1))\n"), ("still-2", b"exit 9\n")])
        self.assertEqual(code, 9, shown)
        self.assertIn(b"still-2", shown)
        self.assert_nothing_left()


class ShellsInContainers(ShellsLocally):
    orchestrator = "docker"

    def left(self) -> list[str]:
        """Returns the ids of the containers of shells."""
        return docker("ps", "-aq", "--filter", "label=pipe.shell", "--filter", f"label=e2e={self.mark}").split()

    def test_a_shell_has_the_image_of_the_attempt(self):
        self.run_failing_step()
        text = (self.folder / "pipeline.yaml").read_text()
        self.write("pipeline.yaml", text.replace(PARENT, "debian:bookworm-slim"))
        self.assertIn("Python 3.11", self.shell("latest", "train", "--", "python3", "--version").stdout)
        self.assertEqual(self.left(), [])

    def test_large_input_and_output_pass_through_pipes(self):
        self.run_failing_step()
        text = "x" * 79 + "\n"
        self.assertEqual(self.shell("latest", "train", "--", "cat", text=text * 50_000).stdout, text * 50_000)

    def test_an_engine_that_cannot_be_reached_is_an_error(self):
        self.run_failing_step()
        self.assertNotEqual(self.pipe("shell", "latest", "train", "--", "true", TOKEN="x", DOCKER_HOST=NOWHERE).code, 0)

    def test_another_run_leaves_an_open_shell_alone(self):
        self.run_failing_step()
        process = subprocess.Popen([self.command, "shell", "latest", "train", "--", "cat"], cwd=self.folder, env=self.environment({"TOKEN": "hush-hush"}),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        process.stdin.write("one\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "one\n")
        self.run_pipe(code=1, TOKEN="hush-hush")
        self.pipe("clean", "--containers")
        out, _ = process.communicate("two\n", timeout=300)
        self.assertEqual((out, process.returncode), ("two\n", 0))


if __name__ == "__main__":
    unittest.main()
