"""Commands that look into a state folder that somebody else has made."""

import http.server
import json
import pathlib
import sqlite3
import subprocess
import threading
import unittest

from support import PipeTest

STEER = "\x1b]0;title\x07\x1b[2J\x9bA\rover\u202e"  # Sets the title, clears the screen, moves the cursor, overwrites, reverses.


class ForeignState(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.pipeline({"one": {"command": "echo hello; echo '{\"a\": 1}' > ${outputs.o}", "outputs": {"o": {"metrics": True}}}})
        self.run_pipe()
        self.run = self.database("SELECT id FROM runs")[0][0]

    def database(self, *statements: str) -> list:
        """Executes statements on the store's database, and returns the rows of the last one."""
        with sqlite3.connect(self.state / "pipe.db") as opened:
            for statement in statements:
                rows = opened.execute(statement).fetchall()
        opened.close()
        return rows

    def columns(self, table: str) -> list[str]:
        """Returns the table's columns of text."""
        return [row[1] for row in self.database(f"PRAGMA table_info({table})") if row[2] == "TEXT"]

    def test_no_text_of_a_state_folder_steers_the_terminal(self):
        looks = (["runs"], ["runs", "--pipeline", "e2e"], ["show"], ["show", self.run, "--wide"], ["show", "latest", "one"], ["tag", self.run], ["note", self.run], ["metrics", self.run],
                 ["compare", self.run, self.run, "--all"], ["artifacts", self.run], ["why", self.run, "one"], ["logs", self.run], ["used", "pipeline.yaml"], ["verify"], ["cancel", self.run],
                 ["attach", self.run], ["resume", self.run], ["clean", "--runs", "--keep", "0", "--dry-run"], ["advise", self.run], ["code", self.run, "one"], ["report", self.run])
        pristine = (self.state / "pipe.db").read_bytes()
        for table in ("runs", "steps", "attempts", "cache", "metrics"):
            for column in self.columns(table):
                (self.state / "pipe.db").write_bytes(pristine)
                try:
                    # Tags and parameters are JSON: a list stays a list, with the characters escaped in it.
                    value = f"coalesce(nullif({column}, ''), '[]')"
                    text = f"'a{STEER}b'"
                    steering = f"CASE WHEN {value} LIKE '[%' THEN '[\"a' || {self.steer_as_json()} || '\"]' ELSE {text} END" if column in ("tags", "parameters") else text
                    self.database("PRAGMA foreign_keys = OFF", f"UPDATE {table} SET {column} = {steering}")
                except sqlite3.IntegrityError:
                    continue
                for words in looks:
                    with self.subTest((table, column, words)):
                        done = self.pipe(*words)
                        for character in ("\x1b", "\x07", "\x9b", "\r", "\u202e"):
                            self.assertNotIn(character, done.out + done.err)

    @staticmethod
    def steer_as_json() -> str:
        """Returns an SQL literal of STEER as JSON escapes it."""
        return "'" + "".join(f"\\u{ord(character):04x}" for character in STEER) + "'"

    def test_cancel_stops_no_process_that_is_not_its_driver(self):
        theirs = subprocess.Popen(["sleep", "900"])
        self.addCleanup(theirs.wait)
        self.addCleanup(theirs.kill)
        # The last part of a process's start is its start time, field 22 of its stat.
        parts = self.database("SELECT driver_started FROM runs")[0][0].split(":")
        parts[3:] = [pathlib.Path(f"/proc/{theirs.pid}/stat").read_text().rpartition(")")[2].split()[19]]
        self.database(f"UPDATE runs SET status = 0, driver_pid = {theirs.pid}, driver_started = '{':'.join(parts)}'")
        done = self.pipe("cancel", self.run)
        self.assertEqual(done.code, 2, done)
        self.assertIn("nothing was stopped", done.err)
        self.assertIsNone(theirs.poll(), done)

    def test_cancel_touches_no_job_that_is_not_its_driver(self):
        changes = []

        class Cluster(http.server.BaseHTTPRequestHandler):
            def answer(self):
                if self.command != "GET":
                    changes.append((self.command, self.path))
                body = json.dumps({"metadata": {"name": "nightly", "uid": "1"}, "status": {}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_PATCH = do_DELETE = do_POST = answer

            def log_message(self, *words):
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Cluster) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
            config = {"clusters": [cluster], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}
            kubeconfig = self.write("kubeconfig", json.dumps(config))
            self.database("UPDATE runs SET status = 0, driver_started = '[\"c\", \"prod\", \"nightly\"]'")
            done = self.pipe("cancel", self.run, KUBECONFIG=str(kubeconfig))
            server.shutdown()
        self.assertEqual(done.code, 2, done)
        self.assertIn("nothing was changed", done.err)
        self.assertEqual(changes, [])

    def test_clean_removes_nothing_where_links_of_a_state_folder_lead(self):
        theirs = self.folder / "theirs"
        for place in ("logs", "failed", "detached", "drivers", "work"):
            (theirs / place / self.run).mkdir(parents=True)
            (theirs / place / self.run / "file").write_text("theirs")
            if (self.state / place).exists():
                (self.state / place).rename(self.state / f"away-{place}")
            (self.state / place).symlink_to(theirs / place, target_is_directory=True)
        for keep in ("1", "0"):
            self.pipe("clean", "--keep", keep)
            self.assertEqual(len(list(theirs.glob("**/file"))), 5)

    def test_no_file_outside_the_project_that_a_state_folder_names_is_exported(self):
        secret = self.write("home/id_rsa", "hidden\n")
        self.database(f"UPDATE runs SET file = '{secret}'")
        project = self.folder / "project"
        project.mkdir()
        done = subprocess.run([self.command, "export", self.run, "--format", "ro-crate", "-o", "crate", "--state", self.state], cwd=project, env=self.environment({}),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("outside of the project", done.stderr)
        self.assertFalse(any(file.read_bytes() == b"hidden\n" for file in (project / "crate").rglob("*") if file.is_file()))

    def test_logs_follow_no_link_in_a_state_folder(self):
        secret = self.write("secret", "hidden\n")
        logs = self.state / "logs" / self.run
        log = next(logs.glob("*one*"))
        self.assertIn("hello", self.pipe("logs", self.run).out)
        log.rename(logs / "away")
        log.symlink_to(secret)
        (self.folder / "theirs").mkdir()
        (self.folder / "theirs" / log.name).write_text("hidden\n")
        for again in range(2):
            for words in (["logs", self.run], ["logs", self.run, "one"], ["logs", self.run, "one", "--follow"], ["logs", self.run, "--tail", "1"]):
                with self.subTest((again, words)):
                    done = self.pipe(*words)
                    self.assertNotIn("hidden", done.out + done.err)
                    self.assertIn(done.code, (2, 3), done)
            if not again:
                logs.rename(self.state / "logs" / "away")
                logs.symlink_to(self.folder / "theirs", target_is_directory=True)


if __name__ == "__main__":
    unittest.main()
