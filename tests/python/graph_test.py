"""Graphs in Python: mapped steps, conditions, rounds, commands, data from outside."""

import json
import unittest

from python_support import PythonTest


class Graphs(PythonTest):
    def ending(self, *words, code=0):
        return self.digits("run", *words, code=code).steps()

    def test_a_condition_in_the_declaration_is_refused(self):
        self.program("""
            import pipe_ml as pl

            @pl.step
            def score() -> float:
                return 0.95

            @pl.pipeline
            def digits():
                if score() > 0.9:
                    score()

            if __name__ == "__main__":
                digits.main()
        """)
        self.assertEqual(self.digits("run", code=2).err, "digits.py:9: error: '${score.result} > 0.9' is known only when the run has come to it\n    if score() > 0.9:\n"
                         "  write `with pl.when(...):` around the steps, and &, | and ~ in place of `and`, `or` and `not`\n")

    def test_conditions_decide_in_the_run(self):
        self.program("""
            import pipe_ml as pl

            @pl.step
            def score(value: float = 0.95) -> dict:
                return {"accuracy": value, "name": "it's"}

            @pl.step
            def deploy(target: str = "here") -> str:
                return target

            @pl.pipeline
            def digits(value: float = 0.95, enabled: bool = True):
                scores = score(value)
                with pl.when(scores["accuracy"] > 0.9):
                    deploy()
                    with pl.when((scores["name"] == "it's") & enabled):
                        deploy("there")
                    deploy.with_options(name="never", when=~(scores["accuracy"] > 0.5) | (scores["accuracy"] == value))("nowhere")

            if __name__ == "__main__":
                digits.main()
        """)
        self.assertEqual(self.ending(), {"score": "succeeded", "deploy": "succeeded", "deploy_2": "succeeded", "never": "succeeded"})
        self.assertEqual(self.ending("-p", "value=0.5"), {"score": "succeeded", "deploy": "skipped", "deploy_2": "skipped", "never": "skipped"})
        self.assertEqual(self.ending("-p", "enabled=false"), {"score": "cached", "deploy": "cached", "deploy_2": "skipped", "never": "cached"})

    def test_steps_are_mapped_over_values_results_and_parameters(self):
        self.program("""
            from dataclasses import dataclass
            import pipe_ml as pl

            @dataclass
            class Trial:
                rate: float
                depth: int

            @pl.step
            def propose(count: int = 3) -> list[Trial]:
                return [Trial(0.5 * i, i) for i in range(count)]

            @pl.step
            def words() -> list[str]:
                return ["one", "two words", "$(three)", "4"]

            @pl.step
            def loss(trial: Trial) -> float:
                return abs(trial.rate - 1.0) + trial.depth

            @pl.step
            def length(word: str) -> int:
                return len(word)

            @pl.step
            def smallest(losses: list[float], words: list[int]) -> tuple[float, int]:
                return min(losses), sum(words)

            @pl.step
            def fit(kind: str, rate: float, layers: list[int]) -> dict:
                return {"kind": kind, "rate": rate, "layers": layers}

            @pl.step
            def check(model: dict) -> str:
                return f"{model['kind']}{model['rate']}{model['layers']}"

            @pl.step
            def join(checks: list[str]) -> str:
                return " ".join(checks)

            @pl.pipeline
            def digits(kinds: list[str] = ["a", "b"]):
                best, letters = smallest(loss.map(propose(4)), length.map(words()))
                models = fit.map(kinds, rate=[0.1, 2], layers=[8, 8])
                join(check.map(models))
                some = fit.with_options(name="some", matrix={"exclude": [{"kind": "b", "rate": 1.0}]}).map(["a", "b"], rate=[1.0, 2.0], layers=pl.each([[1], [2, 3]]))
                join.with_options(name="joined")(check.with_options(name="checks").map(some).at_least(2))

            if __name__ == "__main__":
                digits.main()
        """)
        self.ending()
        self.assertEqual((self.json_of("smallest.result1"), self.json_of("smallest.result2")), (1.0, 3 + 9 + 8 + 1))
        self.assertEqual(self.json_of("join.result"), "a0.1[8, 8] a2.0[8, 8] b0.1[8, 8] b2.0[8, 8]")
        self.assertEqual(self.json_of("joined.result"), "a1.0[1] a1.0[2, 3] a2.0[1] a2.0[2, 3] b2.0[1] b2.0[2, 3]")
        self.ending("-p", 'kinds=["c"]')
        self.assertEqual(self.json_of("join.result"), "c0.1[8, 8] c2.0[8, 8]")

    def test_steps_are_repeated_in_rounds(self):
        self.program("""
            from typing import NamedTuple
            import pipe_ml as pl

            class State(NamedTuple):
                value: float
                done: bool

            @pl.step
            def start() -> float:
                return 16.0

            @pl.step
            def halve(value: float, round: int) -> State:
                return State(value / 2, value / 2 <= 2)

            @pl.step
            def report(value: float) -> str:
                return f"ended at {value}"

            @pl.pipeline
            def digits():
                def body(value):
                    state = halve(value, pl.round_number())
                    return state.value, state.done
                report(pl.repeat(body, start(), max=20))

            if __name__ == "__main__":
                digits.main()
        """)
        self.assertEqual([name for name in self.ending() if name.startswith("halve")], ["halve.round-0", "halve.round-1", "halve.round-2"])
        self.assertEqual(self.json_of("report.result"), "ended at 2.0")

    def test_commands_and_data_are_in_the_same_graph_as_functions(self):
        self.write("data/a.txt", "one\ntwo\n")
        self.program("""
            from pathlib import Path
            from typing import Annotated
            import pipe_ml as pl

            @pl.step(code="data/a.txt")
            def lines(file: Path, folder: Path) -> Annotated[int, "count"]:
                assert Path(__file__).parent.joinpath("data/a.txt").read_text() == (folder / "a.txt").read_text()
                return len(file.read_text().splitlines())

            @pl.step
            def page(count: int) -> Annotated[Path, pl.FileName("page.html")]:
                path = Path(__import__("os").environ["PIPE_SCRATCH"], "x.html")
                path.write_text(f"<p>{count}</p>")
                return path

            @pl.pipeline(environment={"GREETING": "hello"})
            def digits(name: str = "you"):
                count = lines("data/a.txt", Path("./data"))
                said = pl.command("say", ["sh", "-c", 'echo "$GREETING $1 $(cat "$2")" > "$3"', "-", name, "${inputs.count}", "${outputs.text}"], inputs={"count": count})
                shout = pl.command("shout", "tr a-z A-Z < ${inputs.text} > ${outputs.loud}", {"text": said["text"]}, {"loud": "loud.txt"})
                lines.with_options(name="again", after=[shout])(shout.loud, pl.data("./data"))
                page(count)

            if __name__ == "__main__":
                digits.main()
        """)
        self.ending()
        self.assertEqual(self.artifact("shout.loud"), "HELLO YOU 2\n")
        self.assertEqual(self.artifact("page.result"), "<p>2</p>")
        self.write("data/a.txt", "one\ntwo\nthree\n")
        self.assertEqual(self.ending()["lines"], "succeeded")
        self.assertEqual(self.json_of("lines.count"), 3)

    def test_options_of_steps_and_pipelines_are_written_to_yaml(self):
        self.program("""
            import datetime
            import pipe_ml as pl

            @pl.step(
                docker=pl.DockerSettings(requirements=["tomli==2.0.1"], environment={"A": 1}), memory="1GiB", cpu_count=0.5, kubernetes={"node_selectors": {"disk": "ssd"}},
                retry=pl.Retry(max_retries=2, delay="1s", on_oom={"memory": "x2", "max": "4GiB"}), timeout=datetime.timedelta(minutes=1.5), stalled_after="30s",
                cache={"max_age": "24h"}, secrets=["TOKEN"], environment={"B": None}, publish={"result": "production"}, publish_to="./results", allow_failure=True,
                uses={"license": 1}, run_on="always", orchestrator="local", checkpoint=True, version="3", code=["x.py"], description="Does it.")
            def one() -> int:
                return 1

            @pl.pipeline(name="digits", tags=["nightly"], execution_mode="fail_fast", notify={"url": {"env": "HOOK"}, "on": ["failed"]}, secrets=["TOKEN"], enable_cache=False,
                         settings={"docker": {"parent_image": "debian:bookworm-slim"}, "resources": {"gpu_count": 0}}, description="All of it.")
            def whole():
                one()

            if __name__ == "__main__":
                whole.main()
        """)
        self.write("x.py", "")
        exported = self.digits("export").out
        self.write("whole.yaml", exported)
        self.assertEqual(self.pipe("validate", "whole.yaml", TOKEN="t", B="b", HOOK="https://example.org").code, 0, exported)
        for line in ("tags: [nightly]", "execution_mode: fail_fast", "cache: false", "timeout: \"90000ms\"", "max_age: \"24h\"", "allow_failure: true", "run_on: always",
                     "max: \"4GiB\"", "checkpoint: true", "description: \"Does it.\"", "publish_to: \"./results\"", "parent_image: \"debian:bookworm-slim\"",
                     "code: [x.py, __pipe__/digits.one.py, __pipe__/pipe_step.py, __pipe__/pipe_types.py, __pipe__/pipe_records.py, __pipe__/pipe_values.py, __pipe__/pipe_runtime.py]"):
            self.assertIn(line, exported)

    def test_a_pipeline_in_a_package_can_use_steps_of_other_modules(self):
        self.write("project/__init__.py", "")
        self.write("project/limits.py", "LIMIT = 3\n")
        self.program("""
            import pipe_ml as pl
            from .limits import LIMIT
            from . import limits

            @pl.step
            def load() -> list[int]:
                return list(range(LIMIT)) + [limits.LIMIT]
        """, "project/steps.py")
        self.program("""
            import pipe_ml as pl
            from project.steps import load

            @pl.step
            def total(values: list[int]) -> int:
                return sum(values)

            @pl.pipeline
            def digits():
                total(load())

            if __name__ == "__main__":
                digits.main()
        """, "project/main.py")
        result = self.python_run("-m", "project.main", "run", "-o", "local", "--output", "json")
        self.assertEqual(result.steps(), {"load": "succeeded", "total": "succeeded"})
        self.assertEqual(self.json_of("total.result"), 6)
        self.assertTrue((self.folder / "digits.yaml").exists())
        self.write("project/limits.py", "LIMIT = 4\n")
        self.assertEqual(self.python_run("-m", "project.main", "run", "-o", "local", "--output", "json").steps()["load"], "succeeded")


if __name__ == "__main__":
    unittest.main()
