"""Pipelines written in YAML, in Python and in C++ (tests/dsl/equal.cpp) are equal: their documents, graphs and keys."""

import json
import os
import pathlib
import subprocess
import unittest

from python_support import PythonTest

HEAD = """
from pathlib import Path
import pipe_ml as pl

@pl.step
def load(count: int = 3) -> list:
    return [1] * count

@pl.step
def total(values: list, factor: float = 1.0) -> float:
    return factor * sum(values)

@pl.step
def largest(values: list[float]) -> float:
    return max(values)

@pl.step
def size(file: Path) -> int:
    return 1
"""


def command(function, *words):
    return "[python, __pipe__/pipe_step.py, __pipe__/digits.%s.py, %s]" % (function, ", ".join(json.dumps(word) for word in words))


LOAD = "load: {command: %s, parameters: {count: 3}, outputs: {result: result.json}}" % command("load", "count=json", "->", "result:json")
TOTAL = command("total", "values:json", "factor=json", "->", "result:json")
LARGEST = command("largest", "values:json*", "->", "result:json")
SIZE = command("size", "file:path", "->", "result:json")

VARIABLES = {"TOKEN": "t", "B": "b", "HOOK": "https://example.org"}

# Name: (the file's steps, the pipeline's function, the rest of the file, the pipeline's options, the function's parameters).
PIPELINES = {
    "command": ("a: {command: [echo, hi]}", "pl.command('a', ['echo', 'hi'])"),
    "shell": ("a: {command: 'echo hi > ${outputs.x}', outputs: [x]}", "pl.command('a', 'echo hi > ${outputs.x}')"),
    "inputs": ("a: {command: 'echo > ${outputs.x}', outputs: [x]}\n  b: {command: [cat, '${inputs.y}'], inputs: {y: a.x}}",
               "a = pl.command('a', 'echo > ${outputs.x}')\n    pl.command('b', ['cat', '${inputs.y}'], {'y': a['x']})"),
    "file_names": ("a: {command: 'echo > ${outputs.x}', outputs: {x: x.txt}}", "pl.command('a', 'echo > ${outputs.x}', outputs={'x': 'x.txt'})"),
    "kinds_of_outputs": ("a: {command: 'cd ${outputs.m} ${outputs.t}', outputs: {m: {file: m.json, metrics: true}, t: {file: t, temp: true}}}",
                         "pl.command('a', 'cd ${outputs.m} ${outputs.t}', outputs={'m': {'file': 'm.json', 'metrics': True}, 't': {'file': 't', 'temp': True}})"),
    "after": ("a: {command: echo}\n  b: {command: echo, after: [a]}", "a = pl.command('a', 'echo')\n    pl.command('b', 'echo', after=[a])"),
    "parameters": ("a: {command: [echo, '${params.n}', '${params.s}']}", "pl.command('a', ['echo', n, s])", "parameters: {n: 3, s: text}", "", "n: int = 3, s: str = 'text'"),
    "step_parameters": ("a: {command: [env], parameters: {n: , own: [1, 2]}}", "pl.command('a', ['env'], parameters={'n': n, 'own': [1, 2]})", "parameters: {n: 0.5}", "", "n: float = 0.5"),
    "all_parameters": ("a: {command: [env], parameters: all}", "pl.command('a', ['env'], parameters='all')", "parameters: {n: true}", "", "n: bool = True"),
    "settings": ("a: {command: echo, settings: {docker: {environment: {A: b}}, resources: {memory: 1GiB, cpu_count: 1}}}",
                 "pl.command('a', 'echo', docker={'environment': {'A': 'b'}}, memory='1GiB', cpu_count=1)"),
    "pipeline_settings": ("a: {command: echo, settings: {docker: {requirements: [tomli==2.0.1]}}}", "pl.command('a', 'echo', docker=pl.DockerSettings(requirements=['tomli==2.0.1']))",
                          "settings: {docker: {parent_image: 'python:3.11-slim-bookworm'}}", "docker={'parent_image': 'python:3.11-slim-bookworm'}"),
    "settings_of_a_cluster": ("a: {command: echo, settings: {kubernetes: {node_selectors: {disk: ssd}, tolerations: ['gpu=yes:NoSchedule'], labels: {team: a}, pod_startup_timeout: 5m}, "
                              "slurm: {partition: gpu, time: 1h, extra_args: [--exclusive]}}}",
                              "pl.command('a', 'echo', kubernetes=pl.KubernetesSettings(node_selectors={'disk': 'ssd'}, tolerations=['gpu=yes:NoSchedule'], labels={'team': 'a'}, pod_startup_timeout='5m'), "
                              "slurm=pl.SlurmSettings(partition='gpu', time='1h', extra_args=['--exclusive']))"),
    "environment": ("a: {command: env, environment: {A: 1, B: null}}", "pl.command('a', 'env', environment={'A': 1, 'B': None})", "environment: {C: x}", "environment={'C': 'x'}"),
    "secrets": ("a: {command: env, secrets: [TOKEN]}", "pl.command('a', 'env', secrets=['TOKEN'])"),
    "retry": ("a: {command: echo, retry: {max_retries: 2, delay: 1s, 'on': [exit 3], on_oom: {memory: x2, max: 4GiB}}, timeout: 10m}",
              "pl.command('a', 'echo', retry=pl.Retry(max_retries=2, delay='1s', on=['exit 3'], on_oom={'memory': 'x2', 'max': '4GiB'}), timeout='10m')"),
    "cache": ("a: {command: echo, cache: {until: today}}\n  b: {command: echo, cache: false}", "pl.command('a', 'echo', cache={'until': 'today'})\n    pl.command('b', 'echo', enable_cache=False)"),
    "placement": ("a: {command: 'echo > ${outputs.x}', outputs: [x], publish: {x: production}, publish_to: ./results}\n  b: {matrix: {c: [1, 2]}, command: echo, max_parallel: 2, uses: {license: 1}}",
                  "pl.command('a', 'echo > ${outputs.x}', publish={'x': 'production'}, publish_to='./results')\n    pl.command('b', 'echo', matrix={'c': [1, 2]}, max_parallel=2, uses={'license': 1})"),
    "services": ("a: {command: echo, services: {db: {image: 'postgres:16', ready: {port: 5432}}}}",
                 "pl.command('a', 'echo', services={'db': {'image': 'postgres:16', 'ready': {'port': 5432}}})"),
    "nodes": ("a: {command: echo, nodes: {count: 2, processes: 3, done: first}}", "pl.command('a', 'echo', nodes={'count': 2, 'processes': 3, 'done': 'first'})"),
    "matrix": ("a: {matrix: {c: [0.1, 1], k: [x, y]}, command: [echo, '${params.c}', '${params.k}']}", "pl.command('a', ['echo', '${params.c}', '${params.k}'], matrix={'c': [0.1, 1], 'k': ['x', 'y']})"),
    "gather": ("a: {matrix: {c: [1, 2]}, command: 'echo > ${outputs.x}', outputs: [x]}\n  b: {command: [ls, '${inputs.x}'], inputs: {x: 'a[*].x'}}",
               "a = pl.command('a', 'echo > ${outputs.x}', matrix={'c': [1, 2]})\n    pl.command('b', ['ls', '${inputs.x}'], {'x': a['x']})"),
    "pairwise": ("a: {matrix: {c: [1, 2]}, command: 'echo > ${outputs.x}', outputs: [x]}\n  b: {matrix: a, command: [ls, '${inputs.x}'], inputs: {x: 'a[=].x'}}",
                 "a = pl.command('a', 'echo > ${outputs.x}', matrix={'c': [1, 2]})\n    pl.command('b', ['ls', '${inputs.x}'], {'x': a['x']}, matrix=a['x'])"),
    "at_least": ("a: {matrix: {c: [1, 2]}, command: 'echo > ${outputs.x}', outputs: [x]}\n  b: {command: [ls, '${inputs.x}'], inputs: {x: {from: 'a[*].x', at_least: 1}}}",
                 "a = pl.command('a', 'echo > ${outputs.x}', matrix={'c': [1, 2]})\n    pl.command('b', ['ls', '${inputs.x}'], {'x': a['x'].at_least(1)})"),
    "items": ("a: {command: 'echo > ${outputs.x}', outputs: [x]}\n  b: {matrix: {f: '${a.x[*]}'}, command: [echo, '${params.f}']}",
              "pl.command('a', 'echo > ${outputs.x}')\n    pl.command('b', ['echo', '${params.f}'], matrix={'f': '${a.x[*]}'})"),
    "when": ("a: {command: 'echo > ${outputs.x}', outputs: [x]}\n  b: {command: echo, when: '(${a.x.n} > 1) and ${params.p}'}",
             "a = pl.command('a', 'echo > ${outputs.x}')\n    with pl.when((a['x']['n'] > 1) & p):\n        pl.command('b', 'echo')", "parameters: {p: true}", "", "p: bool = True"),
    "run_on": ("a: {command: echo}\n  b: {command: echo, run_on: failure}\n  c: {command: echo, allow_failure: true}",
               "pl.command('a', 'echo')\n    pl.command('b', 'echo', run_on='failure')\n    pl.command('c', 'echo', allow_failure=True)"),
    "data": ("a: {command: [cat, '${inputs.f}'], inputs: {f: ./data.txt}}", "pl.command('a', ['cat', '${inputs.f}'], {'f': './data.txt'})"),
    "addresses": ("a: {command: [cat, '${inputs.f}', '${inputs.g}'], inputs: {f: {url: 'https://example.org/x.csv', sha256: %s}, g: {artifact: production, optional: true}}}" % ("a" * 64),
                  "pl.command('a', ['cat', '${inputs.f}', '${inputs.g}'], {'f': pl.data('https://example.org/x.csv', sha256='a' * 64), 'g': pl.artifact('production', optional=True)})"),
    "code": ("a: {command: [cat, data.txt], code: [data.txt]}\n  b: {command: [python3, program.py]}", "pl.command('a', ['cat', 'data.txt'], code=['data.txt'])\n    pl.command('b', ['python3', 'program.py'])"),
    "shell_option": ("a: {command: 'echo | cat', shell: bash}", "pl.command('a', 'echo | cat', shell='bash')"),
    "version_and_checkpoint": ("a: {command: 'ls ${checkpoint}', version: '7', checkpoint: true}", "pl.command('a', 'ls ${checkpoint}', version='7', checkpoint=True)"),
    "top": ("a: {command: echo}", "pl.command('a', 'echo')", "description: All.\ntags: [x]\nheadline: [a.loss]\nexecution_mode: fail_fast\nretry: {max_retries: 1}\nnotify: {url: {env: HOOK}, 'on': [failed]}",
            "description='All.', tags=['x'], headline=['a.loss'], execution_mode='fail_fast', retry={'max_retries': 1}, notify={'url': {'env': 'HOOK'}, 'on': ['failed']}"),
    "rounds": ("s: {command: 'echo > ${outputs.x}', outputs: [x]}\n  f: {repeat: {until: '${f.x} < 1', max: 3}, command: 'cat ${inputs.x} > ${outputs.x}', inputs: {x: {first: s.x, then: f.x}}, outputs: [x]}",
               "def body(x):\n        made = pl.command('f', 'cat ${inputs.x} > ${outputs.x}', {'x': x})['x']\n        return made, made < 1\n    pl.repeat(body, pl.command('s', 'echo > ${outputs.x}')['x'], max=3)"),
    "notebook": ("a: {notebook: n.ipynb, parameters: {rate: 0.5}, outputs: {m: m.json}}\n  b: {command: [cat, '${inputs.y}'], inputs: {y: a.notebook}}",
                 "a = pl.notebook('a', 'n.ipynb', parameters={'rate': 0.5}, outputs={'m': 'm.json'})\n    pl.command('b', ['cat', '${inputs.y}'], {'y': a.notebook})"),
    "function": (LOAD, "load()"),
    "functions": (f"{LOAD}\n  total: {{command: {TOTAL}, parameters: {{factor: 2.0}}, inputs: {{values: load.result}}, outputs: {{result: result.json}}}}", "total(load(), 2.0)"),
    "function_of_a_parameter": (LOAD.replace("count=json", "count=json@n").replace("count: 3", "n: "), "load(n)", "parameters: {n: 5}", "", "n: int = 5"),
    "mapped_functions": (f"{LOAD}\n  total: {{matrix: {{factor: [1.0, 2.0]}}, command: {TOTAL}, inputs: {{values: load.result}}, outputs: {{result: result.json}}}}\n"
                         f"  largest: {{command: {LARGEST}, inputs: {{values: 'total[*].result'}}, outputs: {{result: result.json}}}}",
                         "largest(total.map(load(), factor=[1.0, 2.0]))"),
    "function_with_data": (f"size: {{command: {SIZE}, inputs: {{file: {{path: data.txt}}}}, outputs: {{result: result.json}}}}", "size('data.txt')"),
    "gated": ("one: {command: 'echo one > ${outputs.text}', outputs: [text]}\n"
              "  two: {command: \"while [ ! -e \\\"$GATE\\\" ]; do sleep 0.05; done\\ncat ${inputs.text} > ${outputs.copy}\", environment: {GATE: ''}, inputs: {text: one.text}, outputs: [copy]}",
              "one = pl.command('one', 'echo one > ${outputs.text}')\n"
              "    pl.command('two', 'while [ ! -e \"$GATE\" ]; do sleep 0.05; done\\ncat ${inputs.text} > ${outputs.copy}', {'text': one['text']}, environment={'GATE': ''})",
              "environment: {DSL_PROGRAM: gated}", "environment={'DSL_PROGRAM': 'gated'}"),
}


PROGRAM = pathlib.Path(os.environ.get("BUILD_DIR", "/nonexistent"), "bin/dsl_equal")


class Equal(PythonTest):
    def cpp(self, *words, **env):
        environment = {**self.environment(env), **({} if "DSL_PROGRAM" in env else {"DSL_PROGRAM": None})}
        return subprocess.run([PROGRAM, *words], env={name: value for name, value in environment.items() if value is not None}, cwd=self.folder, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def facts(self, command, place):
        """Returns the graph and the key of each step on an orchestrator, as a command prints them."""
        keys = {step["step"]: (step.get("key", []), step["action"]) for step in json.loads(command("plan", "-o", place, "--output", "json"))["steps"]}
        graph = json.loads(command("graph", "--output", "json"))
        return keys, {name: graph[name] for name in ("nodes", "edges")}

    def of_file(self, file, place):
        def command(name, *words):
            done = self.pipe(name, file, *words, **VARIABLES)
            self.assertEqual(done.code, 0, done)
            return done.out
        return self.facts(command, place)

    def test_pipelines_in_python_cpp_and_yaml_have_the_same_graphs_and_keys(self):
        if not PROGRAM.exists():
            self.skipTest("dsl_equal is not built")
        self.assertGreaterEqual(len(PIPELINES), 40)
        self.assertEqual(sorted(PIPELINES), self.cpp().split(), "those of tests/dsl/equal.cpp")
        self.write("data.txt", "1\n")
        self.write("program.py", "import json\n")
        self.write("n.ipynb", '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}')
        for name, (steps, body, *rest) in PIPELINES.items():
            top, options, parameters = [*rest, "", "", ""][:3]
            with self.subTest(name):
                self.write("yaml.yaml", f"name: digits\n{top}\nsteps:\n  {steps}\n")
                self.write("digits.py", f"{HEAD}\n@pl.pipeline({options})\ndef digits({parameters}):\n    {body}\n\nif __name__ == '__main__':\n    digits.main()\n")
                self.write("python.yaml", self.digits("export").out)
                self.write("cpp.yaml", self.cpp("export", DSL_PROGRAM=name))
                yaml, python, cpp = map(json.loads, self.cpp("yaml.yaml", "python.yaml", "cpp.yaml").splitlines())
                self.assertEqual(python, yaml)
                self.assertEqual(cpp, yaml)

                place = "docker" if name == "services" else "local"  # Processes of this machine have no services.
                written = self.of_file("yaml.yaml", place)
                self.assertTrue(any(len(key) > 3 for key, _ in written[0].values()), written)
                self.assertEqual(self.of_file("python.yaml", place), written)
                self.assertEqual(self.facts(lambda *words: self.cpp(*words, DSL_PROGRAM=name, **VARIABLES), place), written)


if __name__ == "__main__":
    unittest.main()
