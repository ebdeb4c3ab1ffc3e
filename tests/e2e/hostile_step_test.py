"""Steps whose outputs or lines are made to harm the driver (`pipe run`): at most the step fails, and nothing else."""

import contextlib
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import unittest

from support import PipeTest, files_below, wait_until

DEEP = 60_000  # levels of JSON; a parser that recurses would overflow its stack


def python(code: str, **more) -> dict:
    """Returns a step that executes this Python code."""
    return {"command": ["python3", "-c", code], **more}


class HostileSteps(PipeTest):
    orchestrator = "local"

    def test_lines_nested_60000_deep_are_lines_like_any_other(self):
        self.pipeline({"deep": python(f"print('@pipe {{\"metric\":' + '[' * {DEEP}); print('@pipe {{\"metric\":' + '[' * 30000 + ']' * 30000 + '}}')")})
        self.assertEqual(self.run_pipe().steps(), {"deep": "succeeded"})
        for words in ([], ["--output", "json"]):
            logs = self.pipe("logs", "latest", "deep", *words)
            self.assertEqual(logs.code, 0, logs.err)
            self.assertIn("[" * 1000, logs.out)

    def test_a_failure_file_nested_60000_deep_fails_only_the_step(self):
        for text in (f"'[' * {DEEP}", f"'{{\"type\":' * {DEEP // 8}"):
            self.pipeline({"bad": python(f"import os; open(os.environ['PIPE_FAILURE_FILE'], 'w').write({text}); raise SystemExit(3)")})
            self.assertEqual(self.run_pipe(code=1).steps(), {"bad": "failed"})

    def test_a_sparse_output_of_15_tebibytes_is_refused_at_once(self):
        self.pipeline({"sparse": python("import os; open('${outputs.big}', 'wb').truncate(15 << 40)", outputs=["big"])})
        result = self.run_pipe(code=1)
        self.assertEqual(result.steps(), {"sparse": "failed"})
        self.assertEqual(result.failure("sparse")["kind"], "bad_output")
        self.assertIn("it is sparse", result.failure("sparse")["message"])

    def test_a_step_whose_outputs_cannot_be_looked_at_fails_alone(self):
        hide = "import os\nfolder = os.path.dirname('${outputs.x}')\nos.rmdir(folder)\nos.symlink(folder, folder)"  # a link to itself
        self.pipeline({"hides": python(hide, outputs=["x"]), "other": python("import time; time.sleep(1)"), "next": python("pass", after=["other"])})
        self.assertEqual(self.run_pipe(code=None).steps(), {"hides": "failed", "other": "succeeded", "next": "succeeded"})
        self.assert_nothing_left()

    def test_files_of_a_failed_attempt_are_listed_without_steering_and_copied_without_following_links(self):
        self.write("private", "private")
        self.pipeline({"bad": python(f"""
import os
folder = os.path.dirname('${{outputs.x}}')
os.symlink('{self.folder}/private', folder + '/link')
open(folder + '/\\x1b]0;title\\x07', 'w').close()
os.mkfifo(folder + '/fifo')
os.mkdir(folder + '/tree')
os.mkfifo(folder + '/tree/fifo')
open(folder + '/tree/file', 'w').write('kept')
os.chmod(folder + '/tree/file', 0o4755)
raise SystemExit(1)""", outputs=["x"])})
        self.run_pipe(code=1)
        listed = self.pipe("artifacts")
        self.assertIn("bad.\\x1b]0;title\\x07", listed.out)
        self.assertNotIn("\x1b", listed.out)
        through = self.pipe("artifacts", "latest", "bad.link", "--copy", "-")
        self.assertEqual((through.code, through.out), (2, ""), through)
        copied = self.pipe("artifacts", "latest", "bad", "--copy", self.folder / "copies")
        self.assertEqual(copied.code, 0, copied)
        self.assertNotIn("\x1b", copied.out + copied.err)
        self.assertEqual(copied.err.count("left out: it is a socket, a pipe or a device"), 2, copied)
        copies = self.folder / "copies"
        self.assertEqual(sorted(path.name for path in copies.iterdir()), ["bad.\x1b]0;title\x07", "bad.link", "bad.tree"])
        self.assertTrue((copies / "bad.link").is_symlink())
        self.assertEqual([path.name for path in (copies / "bad.tree").iterdir()], ["file"])
        self.assertEqual((copies / "bad.tree/file").stat().st_mode & 0o7000, 0)

    def test_a_failure_message_with_bytes_that_are_not_utf8_can_be_exported(self):
        self.pipeline({"bad": python("import os; os.mkdir('${outputs.x}'); os.mkfifo(b'${outputs.x}/\\xff')", outputs=["x"])})
        self.run_pipe(code=None)
        events = self.pipe("export", "latest", "--format", "openlineage")
        self.assertEqual(events.code, 0, events)
        self.assertIn("\ufffd: it is a socket, a pipe or a device", events.out)
        crate = self.pipe("export", "latest", "--format", "ro-crate", "-o", "crate")
        self.assertEqual(crate.code, 0, crate)

    def test_a_line_without_end_arrives_in_pieces(self):
        self.pipeline({"endless": python("import sys\nfor _ in range(32): sys.stdout.write('x' * (1 << 20))")})
        result = self.run_pipe()
        self.assertLessEqual(max(len(event["line"]) for event in result.events("step_log")), 128 * 1024)
        self.assertEqual(self.pipe("logs", "latest", "endless").out.count("x"), 32 << 20)

    def test_a_record_whose_file_name_leads_elsewhere_is_not_followed(self):
        self.pipeline({"make": python("open('${outputs.data}', 'w').write('x')", outputs=["data"])})
        self.run_pipe()
        with sqlite3.connect(self.state / "pipe.db") as database:
            database.execute("UPDATE steps SET outputs = replace(outputs, '[[\"data\",\"data\"', '[[\"data\",\"../../escaped\"')")
        database.close()
        target = self.folder / "a" / "b"
        copied = self.pipe("artifacts", "latest", "make.data", "--copy", f"{target}/")
        self.assertEqual(copied.code, 3, copied)
        self.assertIn("../../escaped", copied.err)
        self.assertFalse((self.folder / "escaped").exists())


class HostileStates(PipeTest):
    orchestrator = "local"

    def test_no_file_is_made_where_a_link_in_the_state_folder_leads(self):
        self.pipeline({"one": {"command": "true"}})
        for name in ("locks", "pipe.db"):
            with self.subTest(name=name):
                self.state = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
                (self.state / name).symlink_to(self.folder / "victim")
                self.assertIn(str(self.state / name), self.run_pipe(code=3).text)
                self.assertFalse((self.folder / "victim").exists())

    def test_folders_that_killed_drivers_left_in_tmp_are_removed(self):
        self.state = self.folder / ("long-" * 30)
        self.pipeline({"one": {"command": "true"}})
        dead = subprocess.Popen(["true"])
        dead.wait()
        left = [pathlib.Path(tempfile.mkdtemp(prefix=f"pipe-local-{pid}-")) for pid in (dead.pid, os.getpid())]
        os.utime(left[1], (1, 1))  # The folder is older than the process of its number, so that its driver was another process.
        self.run_pipe()
        self.assertEqual([folder for folder in left if folder.exists()], [])


class HostileContainers(PipeTest):
    # Prints 1 if the process cannot gain rights, `device` if it can make a device, and `other` if it can become another user.
    RIGHTS = "grep -c 'NoNewPrivs:.*1' /proc/self/status || true; mknod /tmp/device c 1 3 && echo device; chown 12:12 /tmp && su -s /bin/sh nobody -c 'echo other'; true"

    def test_a_container_gives_nobody_the_rights_of_root(self):
        self.pipeline({"plain": {"command": self.RIGHTS}, "asks": {"command": self.RIGHTS, "settings": {"docker": {"run_args": {
            "security_opt": ["no-new-privileges=false"], "cap_add": ["MKNOD"]}}}}}, {"parent_image": "debian:bookworm-slim", "skip_build": True, "user": "0:0"})
        self.run_pipe()
        self.assertEqual(self.pipe("logs", "latest", "plain").out.split("\n")[0], "1")
        self.assertIn("other", self.pipe("logs", "latest", "plain").out)
        self.assertNotIn("device\n", self.pipe("logs", "latest", "plain").out)
        self.assertEqual(self.pipe("logs", "latest", "asks").out.split(), ["0", "device", "other"])

    def test_no_setuid_program_of_a_step_is_reached_or_kept(self):
        self.pipeline({"set": {"command": "mkdir ${outputs.d}; for f in ${outputs.o} ${outputs.d}/p ${checkpoint}/p; do cp /bin/true $f; chmod 6755 $f; done; sleep 3; test ! -e ${checkpoint}/fails",
                               "outputs": ["o", "d"], "checkpoint": True},
                       "fails": {"command": "cp /bin/true ${outputs.o}; chmod 6755 ${outputs.o}; exit 1", "outputs": ["o"]}},
                      {"parent_image": "debian:bookworm-slim", "skip_build": True, "user": "0:0"})
        process = self.start("run", "pipeline.yaml", "-o", "docker", "--output", "json")

        def setuid_files() -> list[pathlib.Path]:
            found = []
            for path in files_below(self.state):
                with contextlib.suppress(FileNotFoundError):
                    found += [path] * bool(path.lstat().st_mode & 0o6000)
            return found

        # A folder that only its owner can enter must be above each file.
        for path in wait_until(setuid_files, "a file with the setuid bit"):
            with contextlib.suppress(FileNotFoundError):  # The file may have been moved meanwhile.
                closed = [folder for folder in path.parents if folder != self.folder.parent and folder.is_relative_to(self.state) and not folder.stat().st_mode & 0o077]
                self.assertNotEqual(closed, [], path)
        self.finish(process)
        for path in setuid_files():
            self.assertIn("failed", path.parts)
            self.assertTrue(any(not folder.stat().st_mode & 0o077 for folder in path.parents if folder.is_relative_to(self.state)), path)


if __name__ == "__main__":
    unittest.main()
