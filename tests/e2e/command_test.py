"""Commands that have no suite of their own: what they print for people and for programs, and their exit codes."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from support import NOWHERE, PIPE, PipeTest, wait_until


class Commands(PipeTest):
    orchestrator = "local"

    def environment(self, env):
        return super().environment({"DOCKER_HOST": NOWHERE, **env})

    def setUp(self):
        super().setUp()
        self.pipeline({
            "make": {"command": "echo hello > ${outputs.text}; mkdir ${outputs.tree}; echo in > ${outputs.tree}/file; echo from make",
                     "outputs": ["text", "tree"]},
        })

    def test_version_and_help_are_printed(self):
        self.assertRegex(self.pipe("--version").out, r"^pipe \d+\.\d+\.\d+")
        self.assertIn("run", self.pipe("--help").out)
        self.assertIn("--no-cache", self.pipe("run", "--help").out)

    def test_a_run_is_shown_by_its_name_its_beginning_and_latest(self):
        run = self.run_pipe().events("run_started")[0]["run"]
        self.assertIn(run, self.pipe("runs").out)
        for name in (run, run[:-2], "latest"):
            shown = self.pipe("show", name)
            self.assertEqual(shown.code, 0, shown)
            self.assertIn("make", shown.out)
        self.assertIn("from make", self.pipe("logs", run, "make").out)
        self.assertRegex(self.pipe("artifacts", run).out, r"make\.text")
        self.assertEqual(self.artifact("make.text"), "hello\n")

    def test_a_log_is_followed_from_before_its_first_line(self):
        self.pipeline({"late": {"command": f"until [ -e {self.folder}/go ]; do sleep 0.02; done; echo one; echo two"}})
        run = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        wait_until(lambda: "running" in self.pipe("show", "latest").out or run.poll() is not None, "the step's start")
        follower = self.start("logs", "latest", "late", "-f")

        def is_waiting() -> bool:
            for file in pathlib.Path(f"/proc/{follower.pid}/fd").iterdir():
                with contextlib.suppress(FileNotFoundError):  # The file was closed after it had been listed.
                    if "inotify" in os.readlink(file):
                        return True
            return False

        wait_until(lambda: follower.poll() is not None or is_waiting(), "the follower")
        self.write("go", "")
        self.assertEqual(self.finish(follower).out, "one\ntwo\n")
        self.assertEqual(self.finish(run).code, 0)

    def test_the_logs_of_all_steps_are_printed_and_followed(self):
        waits = f"echo begun; until [ -e {self.folder}/go ]; do sleep 0.02; done; printf half"
        self.pipeline({"a": {"command": "echo one; echo two >&2"}, "b": {"command": waits, "after": ["a"]}, "c": {"command": "false", "after": ["b"]}})
        run = self.start("run", "pipeline.yaml", "--orchestrator", "local", "--output", "json")
        wait_until(lambda: "begun" in self.pipe("logs", "latest").out or run.poll() is not None, "the second step")
        self.assertEqual(self.pipe("logs", "latest").out, "[a] one\n[a] two\n[b] begun\n")
        follower = self.start("logs", "latest", "-f")
        self.write("go", "")
        self.assertEqual(self.finish(follower).out, "[a] one\n[a] two\n[b] begun\n[b] half\n[c] pipe: line 1 ended with exit code 1: false\n")
        self.assertEqual(self.finish(run).code, 1)
        lines = [json.loads(line) for line in self.pipe("logs", "latest", "--output", "json").out.splitlines()]
        self.assertEqual([(line["step"], line["line"]) for line in lines], [("a", "one"), ("a", "two"), ("b", "begun"), ("b", "half"), ("c", "pipe: line 1 ended with exit code 1: false")])
        again = self.pipe("run", "pipeline.yaml", "--orchestrator", "local")
        self.assertEqual(again.code, 1, again)
        reused = self.pipe("logs", "latest")
        self.assertEqual(reused.out, "[c] pipe: line 1 ended with exit code 1: false\n")
        self.assertIn("2 steps were reused", reused.err)

    def test_an_output_can_be_copied_to_standard_output(self):
        self.run_pipe()
        for words in (["make"], ["make.tree"], ["make.text", "--output", "json"]):  # Two outputs, a folder, and text where JSON was asked for.
            refused = self.pipe("artifacts", "latest", *words, "--copy", "-")
            self.assertEqual(refused.code, 2, words)
            self.assertIn("--copy -", refused.err + refused.out)
            self.assertNotIn("hello", refused.out)
        self.assertEqual(self.pipe("artifacts", "latest", "make.text", "--copy", "-").out, "hello\n")
        self.assertFalse((self.folder / "-").exists())
        tree = self.folder / "tree-copy"
        self.assertEqual(self.pipe("artifacts", "latest", "make.tree", "--copy", tree).code, 0)
        self.assertEqual((tree / "file").read_text(), "in\n")
        (tree / "file").write_text("mine now")
        again = self.pipe("artifacts", "latest", "make.text", "--copy", tree / "file")
        self.assertEqual(again.code, 2, "an existing file is not overwritten")
        self.assertEqual((tree / "file").read_text(), "mine now")

    def test_results_have_paths_with_the_names_of_their_files(self):
        self.pipeline({"plot": {"command": "printf picture > ${outputs.plot}; mkdir ${outputs.all}; printf x > ${outputs.all}/1", "outputs": {"plot": "plot.png", "all": "all"}}})
        links = self.state / "outputs"
        for _ in ("made", "reused"):
            shown = {row["output"]: row["path"] for row in self.run_pipe().events("summary")[0]["results"]}
            self.assertEqual((self.folder / shown["plot.plot"]).name, "plot.png")
            self.assertEqual((self.folder / shown["plot.plot"]).read_text(), "picture")
            self.assertEqual((self.folder / shown["plot.all"] / "1").read_text(), "x")
            self.assertTrue((self.folder / shown["plot.plot"]).is_relative_to(links))
        self.assertIn(shown["plot.plot"], self.pipe("artifacts", "latest").out)
        shutil.rmtree(links)
        self.assertIn(shown["plot.plot"], self.pipe("artifacts", "latest").out)
        self.assertTrue((self.folder / shown["plot.plot"]).exists(), "the output is made again")
        self.pipeline({"plot": {"command": "printf other > ${outputs.plot}", "outputs": {"plot": "plot.png"}}})
        other = self.run_pipe().events("summary")[0]["results"][0]["path"]
        self.assertEqual([(self.folder / shown["plot.plot"]).read_text(), (self.folder / other).read_text()], ["picture", "other"], "a path never changes its meaning")
        self.assertEqual(self.pipe("clean", "--keep", "1").code, 0)
        self.assertEqual([link.is_symlink() and link.read_text() for link in links.rglob("*.png")], ["other"], "a link goes with its artifact")

    def test_output_json_of_each_command_is_json(self):
        self.run_pipe()
        for words in (["validate", "pipeline.yaml"], ["plan", "pipeline.yaml"], ["render", "pipeline.yaml"], ["runs"], ["show", "latest"], ["advise", "pipeline.yaml"],
                      ["artifacts", "latest"], ["clean", "--dry-run", "--runs"], ["schema"], ["doctor"]):
            result = self.pipe(*words, "--output", "json")
            self.assertTrue([json.loads(line) for line in result.out.splitlines()] if words == ["doctor"] else json.loads(result.out), words)

    def test_wrong_input_ends_with_exit_code_2(self):
        for words in (["run", "nowhere.yaml"], ["rnu"], ["run", "pipeline.yaml", "--jbos", "2"], ["show", "no-such-run"], ["logs", "latest", "nobody"], ["logs", "latest", "--attempt", "1"],
                      ["run", "pipeline.yaml", "--param", "nothing"], ["run", "pipeline.yaml", "--orchestrator", "mainframe"]):
            result = self.pipe(*words)
            self.assertEqual(result.code, 2, (words, result))
            self.assertTrue(result.err.strip(), words)
        self.assertIn("run", self.pipe("rnu").err)
        self.assertIn("--jobs", self.pipe("run", "pipeline.yaml", "--jbos", "2").err)

    def test_the_error_for_an_unknown_step_names_the_existing_ones(self):
        self.pipeline({"load": {"command": "true"}, "fit": {"matrix": {"c": [1, 2]}, "command": "true"}})
        self.run_pipe()
        for words in (["plan", "--step"], ["run", "-o", "local", "--force"], ["logs", "latest"], ["show", "latest"], ["artifacts", "latest"]):
            self.assertIn("its steps: load, fit\n", self.pipe(*words, "nobody").err, words)
            self.assertIn("did you mean 'load'?", self.pipe(*words, "laod").err, words)
            self.assertIn("the steps of 'fit': fit.c-1, fit.c-2\n", self.pipe(*words, "fit[c=3]").err, words)

    def test_output_that_cannot_be_written_is_an_error_with_a_reason(self):
        self.pipeline({"a": {"command": "true"}})
        for words in (["help"], ["--version"], ["run", "--help"], ["validate"], ["schema", "--output", "json"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([self.command, *words], cwd=self.folder, stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual((done.returncode, "cannot write the output: No space left on device" in done.stderr), (3, True), (words, done.stderr))

    def test_lock_writes_no_file_if_there_is_nothing_to_lock(self):
        self.pipeline({"a": {"command": "true"}})
        done = self.pipe("lock", "-o", "local")
        self.assertEqual((done.code, done.out), (0, "no step has packages or data to lock\n"))
        self.assertFalse((self.folder / "pipeline.lock").exists())

    def test_a_broken_file_shows_every_error_in_its_place(self):
        self.write("pipeline.yaml", "name: broken\nsteps:\n  one:\n    comand: [python3, -c, '']\n    timeout: soon\n")
        result = self.pipe("validate", "pipeline.yaml")
        self.assertEqual(result.code, 2, result)
        self.assertRegex(result.err, r"pipeline\.yaml:4:5: error: .*comand")
        self.assertIn("did you mean 'command'?", result.err)
        self.assertRegex(result.err, r"pipeline\.yaml:5:\d+: error: ")
        self.assertIn("    comand: [python3, -c, '']\n", result.err)
        for words in (["run", "pipeline.yaml"], ["run", "nowhere.yaml"], ["plan", "pipeline.yaml"]):
            self.assertEqual(self.pipe(*words).code, 2, words)
            self.assertFalse(self.state.exists(), f"{words} left a state folder")

    def test_init_writes_a_pipeline_that_runs(self):
        done = self.pipe("init", "starter")
        self.assertEqual(done.code, 0, done)
        run = self.pipe("run", "starter/pipeline.yaml", "-o", "local")
        self.assertEqual(run.code, 0, run)
        self.assertIn("rmse", self.pipe("metrics", "latest").out)
        first, schema = (self.folder / "starter/pipeline.yaml").read_text().split("\n")[0].split("$schema=")
        self.assertEqual(first, "# yaml-language-server: ", "editors look for this line")
        self.assertEqual(json.loads((self.folder / "starter" / schema).read_text()), json.loads(self.pipe("schema").out))
        self.assertNotEqual(self.pipe("init", "starter").code, 0, "nothing that exists is overwritten")

    def test_a_printed_command_takes_no_path_for_an_option(self):
        self.assertIn("pipe run ./-lead/pipeline.yaml", self.pipe("init", "./-lead").out)
        self.write("task.json", '{"family": "made", "containerDefinitions": [{"name": "a", "image": "debian", "command": ["true"]}]}')
        self.assertIn("pipe run ./-made.yaml", self.pipe("import", "task.json", "--out=-made.yaml").out)
        self.assertIn("pipe run made.yaml", self.pipe("import", "task.json", "--out", "made.yaml").out)

    def test_an_imported_file_has_each_character_of_the_task_definition(self):
        environment = [{"name": "MARK", "value": "a\u200eb"}]
        task = {"family": "made", "containerDefinitions": [{"name": "a", "image": "debian", "command": ["true"], "environment": environment}]}
        self.write("task.json", json.dumps(task))
        self.assertIn("a\u200eb", self.pipe("import", "task.json").out)

    def test_schema_describes_every_key(self):
        schema = json.loads(self.pipe("schema").out)

        def walk(node, path):
            if isinstance(node, dict):
                for key, child in node.get("properties", {}).items():
                    target = child
                    while "$ref" in target and "description" not in target:
                        target = schema
                        for part in child["$ref"].removeprefix("#/").split("/"):
                            target = target[part]
                    self.assertTrue(target.get("description"), f"{path}.{key} has no description")
                for key, child in node.items():
                    walk(child, f"{path}.{key}")

        walk(schema, "")
        self.assertIn("steps", schema["properties"])

    def test_completion_scripts_are_shell(self):
        for shell in ("bash", "zsh", "fish"):
            script = self.pipe("completion", shell)
            self.assertEqual(script.code, 0)
            self.assertIn("pipe", script.out)
        bash = self.pipe("completion", "bash").out
        subprocess.run(["bash", "-n"], input=bash, text=True, check=True)
        for command, formats in (("graph", "mermaid dot svg"), ("sbom", "cyclonedx spdx provenance"), ("export", "ro-crate openlineage slsa")):
            asked = bash + f'COMP_WORDS=(pipe {command} --format ""); COMP_CWORD=3; _pipe; echo "${{COMPREPLY[*]}}"'
            self.assertEqual(subprocess.run(["bash"], input=asked, text=True, stdout=subprocess.PIPE, check=True).stdout, formats + "\n")
        for words, offered in (("run -o", "kubernetes"), ("report -o", "pipeline.yaml"), ("code latest make -o", "pipeline.yaml"),
                               ("advise", "pipeline.yaml"), ("why", "pipeline.yaml")):
            asked = bash + f'COMP_WORDS=(pipe {words} ""); COMP_CWORD={len(words.split()) + 1}; _pipe; echo "${{COMPREPLY[*]}}"'
            found = subprocess.run(["bash"], input=asked, cwd=self.folder, text=True, stdout=subprocess.PIPE, check=True).stdout
            self.assertIn(offered, found.split(), words)

    def test_clean_removes_old_runs_and_what_only_they_use(self):
        self.run_pipe()
        self.run_pipe("--no-cache")
        self.assertEqual(len(json.loads(self.pipe("runs", "--output", "json").out)["runs"]), 2)
        dry = self.pipe("clean", "--runs", "--keep", "1", "--dry-run")
        self.assertEqual(dry.code, 0, dry)
        self.assertEqual(len(json.loads(self.pipe("runs", "--output", "json").out)["runs"]), 2)
        self.assertEqual(self.pipe("clean", "--runs", "--keep", "1").code, 0)
        self.assertEqual(len(json.loads(self.pipe("runs", "--output", "json").out)["runs"]), 1)
        self.assertEqual(self.artifact("make.text"), "hello\n")

    def test_the_git_commit_is_recorded(self):
        git = ["git", "-c", "user.name=e2e", "-c", "user.email=e2e@example.com"]
        for words in (["init", "-q"], ["add", "pipeline.yaml"], ["commit", "-qm", "first"]):
            subprocess.run([*git, *words], cwd=self.folder, check=True)
        commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=self.folder, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        self.run_pipe()
        self.assertIn(commit[:7], self.pipe("show", "latest").out)

    def test_names_and_values_that_are_not_utf8_are_refused(self):
        byte = os.fsdecode(b"\xff")
        text = (self.folder / "pipeline.yaml").read_text()
        copy = self.write(f"{byte}/pipeline.yaml", text)
        for words in (["pipeline.yaml", "-p", f"x={byte}"], ["pipeline.yaml", "--step", byte], ["pipeline.yaml", "--force", byte], [copy]):
            refused = self.pipe("run", "-o", "local", *words)
            self.assertEqual(refused.code, 2, refused)
            self.assertIn("is not UTF-8", refused.err)
        self.assertEqual(self.pipe("plan", "-o", "local", "-p", f"x={byte}").code, 2)

    def test_a_run_warns_of_a_missing_script_before_it_begins(self):
        self.write("train.py", "")
        self.pipeline({"a": {"command": ["python3", "trian.py"]}})
        result = self.pipe("run", "-o", "local")
        self.assertEqual(result.code, 1, result)
        self.assertIn("there is no file 'trian.py' in the pipeline's folder", result.out)
        self.assertIn("did you mean 'train.py'?", result.out)
        events = [json.loads(line) for line in self.pipe("run", "-o", "local", "--output", "json").out.splitlines()]
        warnings = [each["warning"] for each in events if each["event"] == "warning"]
        self.assertEqual([(each["code"], each["file"]) for each in warnings], [("missing-file", str(self.folder / "pipeline.yaml"))])

    def test_settings_of_a_dockerfiles_build_are_reported_where_there_is_no_dockerfile(self):
        self.write("Dockerfile", "FROM debian:bookworm-slim\n")
        self.pipeline({"a": {"command": "true"}, "b": {"command": "true"}}, {"build_context_root": "."})
        told = self.pipe("validate", "pipeline.yaml")
        self.assertEqual(told.code, 0, told)
        self.assertIn("steps 'a', 'b': have `build_context_root`, which only the build of a `dockerfile` uses", told.err.replace(" has `", " have `"))
        own = {"docker": {"dockerfile": "Dockerfile"}}
        self.pipeline({"a": {"command": "true", "settings": own}, "b": {"command": "true"}}, {"build_context_root": "."})
        self.assertNotIn("build_context_root", self.pipe("validate", "pipeline.yaml").err)

    def test_advice_of_a_run_with_a_state_of_its_own_names_it(self):
        self.pipeline({"a": {"command": "echo x > ${outputs.x}", "outputs": ["x"]}, "b": {"command": "echo said; exit 3"}})
        run = self.pipe("run", "-o", "local", "--state", "other")
        self.assertEqual(run.code, 1, run)
        for hint in ("its whole output: ", "Copy one out: ", "Report: "):
            line = next(line for line in (run.out + run.err).splitlines() if hint in line)
            words = line.split(hint)[1].replace("DEST", "copied").split()
            self.assertEqual(words[-2:], ["--state", "other"], line)
            self.assertEqual(self.pipe(*words[1:]).code, 0, f"{line}: the command works as it stands")

    def test_advice_leaves_out_a_state_that_is_found_without_the_option(self):
        """PIPE_HOME names the same folder as the option."""
        self.pipeline({"a": {"command": "echo x > ${outputs.x}", "outputs": ["x"]}})
        run = self.pipe("run", "-o", "local", "--state", self.state)
        self.assertIn("Copy one out: ", run.out)
        self.assertNotIn("--state", run.out)

    def test_an_empty_environment_is_enough(self):
        self.pipeline({"a": {"command": [sys.executable, "-c", "print('ran')"]}})
        for words in (["run", "-o", "local"], ["run", "-o", "local"], ["show"], ["doctor"]):
            done = subprocess.run([self.command, *words], cwd=self.folder, env={}, capture_output=True, text=True)
            self.assertIn(done.returncode, (0, 3) if words == ["doctor"] else (0,), (words, done.stdout, done.stderr))

    def test_paths_with_special_characters_are_words_in_the_scripts_of_lists_too(self):
        self.folder = self.folder / "it's $(a) place"
        self.folder.mkdir()
        self.state = self.folder / ".pipe"
        self.pipeline({"a": {"command": ["sh", "-c", "echo '${params.x}' > ${outputs.x}; cat ${outputs.x}"], "outputs": ["x"], "parameters": {"x": "`id`'"}}})
        result = self.pipe("run", "-o", "local")
        self.assertEqual(result.code, 0, result)
        self.assertEqual(self.pipe("logs", "latest", "a").out, "`id`'\n")

    def test_a_closed_pipe_ends_a_command_without_a_message(self):
        done = subprocess.run(["sh", "-c", f"'{PIPE}' schema | head -c 10"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.stderr, "")

    def test_a_file_in_another_folder_is_the_same_pipeline(self):
        self.run_pipe()
        done = subprocess.run([PIPE, "run", self.folder / "pipeline.yaml", "-o", "local", "--output", "json"], cwd="/", env=self.environment({}),
                              stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn('"cached"', done.stdout)


if __name__ == "__main__":
    unittest.main()
