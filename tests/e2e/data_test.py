"""Inputs from outside of the pipeline: files, folders and URLs. The tests cover changes of the data, copies, and faulty servers."""

import hashlib
import os
import unittest

from support import PipeTest
from support_http import Server


class Paths(PipeTest):
    orchestrator = "local"

    def corpus(self, where: str = "./corpus"):
        """Writes a pipeline whose step joins the files of the folder at `where`, a path or the input's keys."""
        self.pipeline({"count": {"command": "cd ${inputs.corpus}; cat $(find . -type f | sort) > ${outputs.all}", "inputs": {"corpus": where},
                                 "outputs": ["all"]},
                       "next": {"command": "cat ${inputs.all}", "inputs": {"all": "count.all"}}})

    def age(self):
        """Makes the files old. A run reads a file that has just changed each time, because its time does not prove that it is unchanged."""
        for path in [*(self.folder / "corpus").rglob("*"), self.folder / "pipeline.yaml"]:
            os.utime(path, (1_700_000_000, 1_700_000_000))

    def test_a_change_of_the_data_runs_the_step_and_plan_says_what_changed(self):
        self.write("corpus/a.txt", "a\n")
        self.write("corpus/deep/b.txt", "b\n")
        self.corpus()
        self.assertEqual(self.run_pipe().steps(), {"count": "succeeded", "next": "succeeded"})
        self.assertEqual(self.artifact("count.all"), "a\nb\n")
        self.assertEqual(self.run_pipe().steps(), {"count": "cached", "next": "cached"})
        self.write("corpus/deep/b.txt", "B\n")
        self.write("corpus/c.txt", "c\n")
        self.assertEqual(self.plan()["count"]["changes"], ["new data corpus/c.txt", "data corpus/deep/b.txt changed"])
        self.assertEqual(self.run_pipe().steps()["count"], "succeeded")
        (self.folder / "corpus/c.txt").unlink()
        self.assertIn("data corpus/c.txt removed", self.plan()["count"]["changes"])
        self.write("corpus/deep/b.txt", "b\n")
        self.assertEqual(self.run_pipe().steps()["count"], "cached", "the content is as it was")

    def test_a_new_file_is_seen_by_the_shortcut_for_unchanged_runs(self):
        self.write("corpus/a.txt", "a\n")
        self.corpus()
        self.age()
        self.run_pipe()
        self.assertEqual(set(self.run_pipe().steps().values()), {"cached"})
        self.write("corpus/new.txt", "n\n")
        self.assertEqual(self.run_pipe().steps()["count"], "succeeded")

    def test_a_file_keeps_its_extension_and_is_not_copied(self):
        self.write("numbers.csv", "1,2\n")
        self.pipeline({"a": {"command": "echo ${inputs.numbers} > ${outputs.x}; cat ${inputs.numbers} >> ${outputs.x}", "inputs": {"numbers": {"path": "numbers.csv"}},
                             "outputs": ["x"]}})
        self.run_pipe()
        path, content = self.artifact("a.x").splitlines()
        self.assertTrue(path.endswith("/numbers.csv"), path)
        self.assertEqual(content, "1,2")
        digest = hashlib.sha256(b"1,2\n").hexdigest()
        self.assertFalse((self.state / "artifacts" / digest[:2] / digest[2:]).exists())

    def test_data_that_is_removed_during_the_run_fails_the_steps_that_take_it(self):
        self.write("corpus/a.txt", "a\n")
        self.pipeline({"first": {"command": "echo begun; while [ -e $CORPUS ]; do sleep 0.02; done", "environment": {"CORPUS": str(self.folder / "corpus")}},
                       "takes": {"command": "ls ${inputs.corpus}", "inputs": {"corpus": "./corpus"}, "after": ["first"]},
                       "other": {"command": "sleep 0.5", "after": ["first"]}})
        process = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        while "begun" not in process.stdout.readline():
            self.assertIsNone(process.poll())
        (self.folder / "corpus").rename(self.folder / "gone")
        result = self.finish(process)
        self.assertEqual(result.steps(), {"first": "succeeded", "takes": "failed", "other": "succeeded"}, result)
        self.assertIn("cannot read", result.failure("takes")["message"])

    def test_data_that_changes_while_the_step_runs_fails_it(self):
        self.write("corpus/a.txt", "a\n")
        self.pipeline({"a": {"command": f"echo b > {self.folder}/corpus/b.txt; echo x > ${{outputs.x}}", "inputs": {"corpus": "./corpus"}, "outputs": ["x"]}})
        failure = self.run_pipe(code=3).failure("a")
        self.assertIn("has changed since the run began", failure["message"])

    def test_the_error_for_data_that_contains_the_state_folder_says_so(self):
        self.pipeline({"a": {"command": "true", "inputs": {"all": "."}}})
        failure = self.run_pipe(code=3).failure("a")
        self.assertIn("the state folder is in it", str(failure))

    def test_wrong_addresses_and_keys_are_errors(self):
        link = self.folder / "leads_out"
        link.mkdir()
        (link / "passwd").symlink_to("/etc/passwd")
        (self.folder / "socket").mkdir()
        os.mkfifo(self.folder / "socket/x")
        for where, code, said in (("./nowhere", 2, "the data './nowhere' does not exist"), ({"path": "x", "url": "https://a/b"}, 2, "more than one of 'path', 'url' and 'artifact'"),
                                  ({"pth": "x"}, 2, "did you mean 'path'?"), ({}, 2, "none of 'path', 'url' and 'artifact'"),
                                  ({"url": "ftp://a/b", "sha256": "0" * 64}, 2, "must be a URL that begins with https"), ("s3://bucket", 2, "or s3://BUCKET/KEY"),
                                  ({"url": "https://a/b", "version": "1"}, 2, "'version' is for an object in a bucket"),
                                  ({"url": "https://me:secret@a/b", "sha256": "0" * 64}, 2, "without a login"),
                                  ({"url": "https://a/b", "sha256": "abc"}, 2, "must be a SHA-256 in 64 hexadecimal digits"),
                                  ("./leads_out", 3, "outside of the folder"), ("./socket", 3, "socket cannot be an input: ")):
            self.corpus(where)
            refused = self.run_pipe(code=code)
            self.assertIn(said, refused.text)


class Containers(PipeTest):
    def test_a_container_reads_the_folder_itself_and_cannot_write_to_it(self):
        self.write("corpus/a.txt", "a\n")
        self.pipeline({"a": {"command": "cat ${inputs.corpus}/a.txt > ${outputs.x}; if touch ${inputs.corpus}/b.txt; then exit 7; fi", "inputs": {"corpus": "./corpus"},
                             "outputs": ["x"]}})
        self.assertEqual(self.run_pipe().steps(), {"a": "succeeded"})
        self.assertEqual(self.artifact("a.x"), "a\n")
        self.assertEqual(os.listdir(self.folder / "corpus"), ["a.txt"])


class Urls(PipeTest):
    orchestrator = "local"

    def setUp(self):
        super().setUp()
        self.content = os.urandom(1 << 20)
        self.server = Server(self.content)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)

    def fetch(self, path: str = "data.csv?signature=secret", **more):
        """Writes a pipeline with two steps that take the server's content. `more` has further keys of the second step."""
        digest = hashlib.sha256(self.content).hexdigest()
        step = {"command": "cat ${inputs.data} > ${outputs.x}", "inputs": {"data": {"url": self.server.url(path), "sha256": digest}}, "outputs": ["x"]}
        self.pipeline({"a": step, "b": step | more})

    def test_a_url_of_two_steps_is_fetched_once(self):
        self.fetch()
        run = self.run_pipe()
        self.assertEqual(set(run.steps().values()), {"succeeded"})
        self.assertEqual(len(self.server.requests), 1)
        self.assertNotIn("secret", run.text)
        self.assertEqual(set(self.run_pipe("--no-cache").steps().values()), {"succeeded"})
        self.assertEqual(len(self.server.requests), 1)
        self.assertEqual(os.listdir(self.state / "downloads"), [])

    def test_downloads_continue_after_cut_connections_and_busy_servers(self):
        self.server.cut, self.server.broken = 200_000, 1
        self.fetch()
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})
        begins = [request.begin for request in self.server.requests]
        self.assertEqual(begins, [0, 0, 200_000, 400_000, 600_000, 800_000, 1_000_000])

    def test_a_download_that_was_killed_is_continued_by_the_next_run(self):
        digest = hashlib.sha256(self.content).hexdigest()
        (self.state / "downloads").mkdir(parents=True)
        (self.state / "downloads" / digest).write_bytes(self.content[:500_000])
        self.fetch()
        self.run_pipe()
        self.assertEqual(self.server.requests[0].begin, 500_000)

    def test_a_download_begins_again_if_the_server_has_no_ranges(self):
        digest = hashlib.sha256(self.content).hexdigest()
        (self.state / "downloads").mkdir(parents=True)
        (self.state / "downloads" / digest).write_bytes(b"rubbish")
        self.server.ranges = False
        self.fetch("moved")
        self.assertEqual(set(self.run_pipe().steps().values()), {"succeeded"})

    def test_another_content_is_refused(self):
        self.fetch()
        self.server.content = b"something else"
        run = self.run_pipe(code=3)
        self.assertIn("its SHA-256 is " + hashlib.sha256(b"something else").hexdigest(), run.text)
        self.assertEqual(os.listdir(self.state / "downloads"), [])

    def test_a_missing_url_is_an_error_with_its_status(self):
        self.fetch("nowhere.csv")
        self.assertIn("the server answered 404", self.run_pipe(code=3).text)

    def test_plan_fetches_nothing(self):
        self.fetch()
        self.assertEqual(self.plan()["a"]["action"], "run")
        self.assertEqual(self.server.requests, [])


if __name__ == "__main__":
    unittest.main()
