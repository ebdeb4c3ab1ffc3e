"""pipe code: lists and copies the code that an attempt ran."""

import json
import subprocess
import unittest

from support import PipeTest


class Code(PipeTest):
    orchestrator = "local"

    def copied(self, *words) -> dict[str, str]:
        """Returns the files that `pipe code` copies, by their paths."""
        target = self.folder / f"copy-{len(list(self.folder.glob('copy-*')))}"
        done = self.pipe("code", *words, "-o", target)
        self.assertEqual(done.code, 0, done)
        return {path.relative_to(target).as_posix(): path.read_text() for path in target.rglob("*") if path.is_file()}

    def test_the_code_that_ran_is_copied_also_of_failed_and_reused_steps(self):
        self.write("lib/helper.py", "X = 1\n")
        self.write("train.py", "from lib import helper\nprint(helper.X)\n")
        self.pipeline({"train": {"command": ["python3", "train.py"]}, "other": {"command": ["python3", "-c", "1"]}})
        self.run_pipe()
        first = self.pipe("runs", "--output", "json").out
        run = json.loads(first)["runs"][0]["id"]
        before = {"train.py": "from lib import helper\nprint(helper.X)\n", "lib/helper.py": "X = 1\n"}
        self.assertEqual(self.copied(run, "train"), before)
        self.run_pipe()
        self.assertEqual(self.copied("latest", "train"), before, "the code of a reused step is that of the run that made it")
        self.write("train.py", "from lib import helper\nraise SystemExit(3)\n")
        self.run_pipe(code=1)
        self.assertIn("SystemExit(3)", self.copied("latest", "train")["train.py"])
        self.assertEqual(self.copied(run, "train"), before)
        self.assertEqual(self.copied("latest", "other"), {})
        self.assertEqual(self.pipe("code", "latest", "other").out, "'other' ran no code files: its command names none\n")
        listed = self.pipe("code", run, "train")
        self.assertRegex(listed.out, r"lib/helper.py +6 B")
        document = json.loads(self.pipe("code", run, "train", "--output", "json").out)
        self.assertEqual([file["file"] for file in document["files"]], ["lib/helper.py", "train.py"])

    def test_submodules_are_code_and_a_file_of_git_lfs_that_was_not_fetched_is_named(self):
        def git(folder, *words):
            subprocess.run(["git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "-c", "protocol.file.allow=always", "-C", folder, *words],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.write("lib/models/net.py", "x = 1\n")
        self.write("repo/.gitignore", "models/\n")
        for folder in ("lib", "repo"):
            git(self.folder, "init", "-q", folder)
        git(self.folder / "lib", "add", "-A")
        git(self.folder / "lib", "commit", "-qm", "first")
        repo = self.folder / "repo"
        git(repo, "submodule", "add", "../lib", "external")
        (repo / "pipeline.yaml").write_text(json.dumps({"name": "sub", "steps": {"s": {"command": "cat external/models/net.py", "code": ["external"]}}}))
        (repo / "external/weights").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
        ran = self.pipe("run", "repo/pipeline.yaml", "-o", "local")
        self.assertEqual(ran.code, 0, ran)
        self.assertIn("x = 1", ran.text)
        self.assertIn("'weights' is a pointer of Git LFS or git-annex", ran.text)
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "first")
        (repo / "external/models/net.py").write_text("x = 2\n")
        self.pipe("run", "repo/pipeline.yaml", "-o", "local")
        self.assertIn("changes that are not committed", self.pipe("show", "latest").out)
        git(self.folder, "clone", "-q", "repo", "clone")
        self.assertIn("git submodule update --init --recursive", self.pipe("run", "clone/pipeline.yaml", "-o", "local").err)

    def test_code_that_a_sparse_checkout_leaves_out_is_named(self):
        def git(*words):
            subprocess.run(["git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.com", *words], cwd=self.folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.write("src/train.py", "print('trains')\n")
        self.write("lib/x.py", "\n")
        self.pipeline({"train": {"command": ["python3", "src/train.py"]}})
        git("init", "-q")
        git("add", "src", "lib", "pipeline.yaml")
        git("commit", "-qm", "first")
        self.assertIn("trains", self.run_pipe().text)
        git("sparse-checkout", "set", "--cone", "lib")
        refused = self.run_pipe(code=2)
        self.assertIn("'src/train.py' is left out of this sparse checkout", refused.err)
        self.assertIn("git sparse-checkout add src", refused.err)
        self.pipeline({"train": {"command": ["ls"], "code": ["src"]}})
        self.assertIn("git sparse-checkout add src", self.run_pipe(code=2).err)
        git("sparse-checkout", "add", "src")
        self.run_pipe()

    def test_the_code_of_a_notebook_is_its_code_cells_and_what_they_import(self):
        def save(source, output):
            self.write("nb.ipynb", json.dumps({"cells": [{"cell_type": "code", "source": source.splitlines(True), "outputs": [output], "execution_count": len(output),
                                                          "metadata": {}}], "metadata": {"when": output}, "nbformat": 4, "nbformat_minor": 5}))
        self.write("helper.py", "X = 1\n")
        self.write("setup.py", "Y = 1\n")
        self.pipeline({"nb": {"command": ["ls", "nb.ipynb"]}})
        save("%matplotlib inline\n%run setup.py\nimport helper\n!ls\nprint(helper.X)\n", "a")
        self.run_pipe()
        self.assertEqual(set(self.copied("latest", "nb")), {"nb.ipynb", "helper.py", "setup.py"})
        save("%matplotlib inline\n%run setup.py\nimport helper\n!ls\nprint(helper.X)\n", "other")
        self.assertEqual(self.plan()["nb"]["action"], "reuse")
        self.assertEqual(self.run_pipe().steps(), {"nb": "cached"})
        save("import helper\nprint(helper.X + 1)\n", "other")
        self.assertIn("code nb.ipynb changed", self.plan()["nb"]["changes"])
        self.write("helper.py", "X = 2\n")
        self.assertIn("code helper.py changed", self.plan()["nb"]["changes"])

    def test_code_is_kept_as_long_as_its_run(self):
        self.write("train.py", "print(1)\n")
        self.pipeline({"train": {"command": ["python3", "train.py"]}})
        self.run_pipe()
        self.write("train.py", "print(2)\n")
        self.run_pipe()
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "1").code, 0)
        self.assertEqual(self.copied("latest", "train"), {"train.py": "print(2)\n"})
        trees = [path for path in (self.state / "artifacts").glob("??/*") if path.is_dir()]
        self.assertEqual(len(trees), 1, "the code of the removed run is removed")
        self.assertEqual(self.pipe("verify").code, 0)

    def test_the_option_attempt_chooses_an_attempt(self):
        self.write("train.py", "import os\nraise SystemExit(os.environ['PIPE_ATTEMPT'] == '1')\n")
        self.pipeline({"train": {"command": ["python3", "train.py"], "retry": {"max_retries": 1}}})
        self.run_pipe()
        self.assertIn("train.py", self.copied("latest", "train", "--attempt", "1"))
        self.assertIn("no attempt 3", self.pipe("code", "latest", "train", "--attempt", "3").err)

    def test_the_error_for_code_that_was_removed_names_its_commit(self):
        self.write("train.py", "print(1)\n")
        self.pipeline({"train": {"command": ["python3", "train.py"]}})
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["add", "train.py"], ["commit", "-qm", "one"]):
            subprocess.run([*git, *words], cwd=self.folder, check=True)
        self.run_pipe()
        for tree in (self.state / "artifacts").glob("??/*"):
            subprocess.run(["rm", "-rf", tree], check=True)
        refused = self.pipe("code", "latest", "train")
        self.assertEqual(refused.code, 2)
        self.assertRegex(refused.err, r"is not stored on this machine\n.*began at git commit [0-9a-f]{40}")


if __name__ == "__main__":
    unittest.main()
