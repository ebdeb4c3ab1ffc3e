"""A step that writes what is meant to harm the driver: the step's own business fails, nothing else."""

import sqlite3
import unittest

from support import PipeTest

DEEP = 60_000


def python(code: str, **more) -> dict:
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

    def test_a_failure_nested_60000_deep_or_without_end_is_no_message(self):
        for text in (f"'[' * {DEEP}", f"'{{\"type\":' * {DEEP // 8}"):
            self.pipeline({"bad": python(f"import os; open(os.environ['PIPE_FAILURE_FILE'], 'w').write({text}); raise SystemExit(3)")})
            self.assertEqual(self.run_pipe(code=1).steps(), {"bad": "failed"})

    def test_an_output_that_is_all_but_holes_is_refused_at_once(self):
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

    def test_what_a_failed_attempt_has_left_is_shown_as_text_and_read_where_it_lies(self):
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

    def test_a_failure_with_bytes_that_are_no_text_can_be_exported(self):
        self.pipeline({"bad": python("import os; os.mkdir('${outputs.x}'); os.mkfifo(b'${outputs.x}/\\xff')", outputs=["x"])})
        self.run_pipe(code=None)
        events = self.pipe("export", "latest", "--format", "openlineage")
        self.assertEqual(events.code, 0, events)
        self.assertIn("\ufffd: it is a socket, a pipe or a device", events.out)
        crate = self.pipe("export", "latest", "--format", "ro-crate", "-o", "crate")
        self.assertEqual(crate.code, 0, crate)

    def test_a_line_without_end_comes_in_pieces(self):
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


if __name__ == "__main__":
    unittest.main()
