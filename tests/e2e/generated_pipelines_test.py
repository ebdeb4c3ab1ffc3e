"""Runs `pipe validate`, `plan` and `render` on random pipelines made from the JSON Schema: nothing crashes, and each refusal names a line.

PIPE_FUZZ_SEED repeats an earlier run of the generator; PIPE_FUZZ_COUNT is the number of pipelines.
"""

import copy
import json
import os
import random
import secrets
import subprocess
import unittest

from re import _constants as sre, _parser as sre_parser

from support import PIPE, PipeTest

SEED = int(os.environ.get("PIPE_FUZZ_SEED") or secrets.randbelow(1 << 32))
COUNT = int(os.environ.get("PIPE_FUZZ_COUNT") or 60)
LETTERS = "abcxyzABZ019_-./:= @*"
# Values that are rarely what a key expects.
ODD = [None, True, 0, -1, 5, 0.5, 1e300, 2**63, 2**64 - 1, -(2**63), "", " ", "-1", "a\tb", "\u202e", "x" * 300, "${params.a}", "${", "../x", "/", "0",
       "1e5", "null", [], [[]], [None], {}, {"": 1}, {"a": {"b": [1, {}]}}, [1, "a", 1]]
COMMANDS = ["true", "cat a | tee b", "echo $PIPE_PARAM_a ${params.b}", ["sh", "-c", "exit 1"], ["echo", "${params.a}", "${outputs.x}"],
            "cat <<E\n${params.a}\nE", "echo $((${params.b}))", "echo $((${params.a}))", "python train.py > ${outputs.x}", "case $x in a|b) ;; esac",
            "echo '${params.a}' # ${params.b}"]
# Keys for maps whose content the schema does not describe, because they are objects of Kubernetes.
FREE_KEYS = ["metadata", "labels", "annotations", "spec", "template", "containers", "initContainers", "volumes", "name", "resources", "limits", "command",
             "backoffLimit", "securityContext", "env", "nodeAffinity", "a"]
# Settings that name a file. The generator leaves them out, because the files would not exist.
FILE_SETTINGS = {"dockerfile", "build_context_root", "pyproject_path", "dockerignore", "parent_image_build_config", "build_config"}


class Generator:
    """Makes values that a schema allows, and then damages some of them, as a hurried or a hostile user would."""

    def __init__(self, schema: dict, seed: str):
        self.schema = schema
        self.random = random.Random(seed)

    def text(self, pattern: str) -> str:
        """Returns a random text that the regular expression matches."""
        return "".join(self.parts(sre_parser.parse(pattern)))

    def parts(self, parsed) -> list[str]:
        """Returns the parts of a random text for a parsed regular expression."""
        pieces = []
        for code, argument in parsed:
            if code is sre.LITERAL:
                pieces.append(chr(argument))
            elif code is sre.NOT_LITERAL or code is sre.ANY:
                pieces.append(self.random.choice("abc1"))
            elif code is sre.IN:
                pieces.append(self.character_of(argument))
            elif code is sre.MAX_REPEAT or code is sre.MIN_REPEAT:
                min_count, max_count, inner = argument
                for _ in range(self.random.randint(min_count, min(max_count, min_count + 3))):
                    pieces += self.parts(inner)
            elif code is sre.SUBPATTERN:
                pieces += self.parts(argument[3])
            elif code is sre.BRANCH:
                pieces += self.parts(self.random.choice(argument[1]))
        return pieces

    def character_of(self, choices) -> str:
        """Returns a character of a parsed class, such as [a-z]. For an inverted class, returns one of the characters abc1."""
        code, argument = self.random.choice([each for each in choices if each[0] is not sre.NEGATE])
        if choices[0][0] is sre.NEGATE:
            return self.random.choice("abc1")
        return chr(self.random.randint(*argument)) if code is sre.RANGE else chr(argument)

    def value(self, schema: dict, depth: int = 0):
        """Returns a random value that the schema allows."""
        if "$ref" in schema:
            node = self.schema
            for part in schema["$ref"].removeprefix("#/").split("/"):
                node = node[part]
            return self.value(node, depth)
        if "anyOf" in schema:
            return self.value(self.random.choice(schema["anyOf"]), depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kind = schema.get("type", "string")
        kind = self.random.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            return self.map(schema, depth)
        if kind == "array":
            count = self.random.randint(schema.get("minItems", 0), 3)
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "null":
            return None
        if kind in ("integer", "number"):
            minimum = schema.get("minimum", schema.get("exclusiveMinimum", -2))
            number = self.random.randint(int(minimum), int(min(schema.get("maximum", minimum + 9), minimum + 9)))
            return number if kind == "integer" or self.random.random() < 0.5 else number + 0.5
        if "pattern" in schema:
            return self.text(schema["pattern"])
        return "".join(self.random.choice(LETTERS) for _ in range(self.random.randint(0, 8)))

    def map(self, schema: dict, depth: int) -> dict:
        """Returns a map with the required keys and some of the others."""
        properties = schema.get("properties", {})
        chance = 0.5 if depth == 0 else 0.25
        made = {key: self.value(child, depth + 1) for key, child in properties.items()
                if key in schema.get("required", []) or self.random.random() < chance}
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            for i in range(self.random.randint(schema.get("minProperties", 0), 3)):
                key = self.text(schema["propertyNames"]["pattern"]) if "propertyNames" in schema else self.random.choice("abcd") + str(i)
                made[key] = self.value(more, depth + 1)
        return made

    def free(self, depth: int):
        """Returns a random value where the schema allows any: nested maps and lists of odd values."""
        if depth > 5 or self.random.random() < 0.3:
            return copy.deepcopy(self.random.choice(ODD))
        if self.random.random() < 0.2:
            return [self.free(depth + 1) for _ in range(self.random.randint(0, 2))]
        return {self.random.choice(FREE_KEYS): self.free(depth + 1) for _ in range(self.random.randint(1, 3))}

    def make_likely_valid(self, node: dict) -> None:
        """Replaces or removes the parts of a step that are hardly ever valid by chance. Otherwise nearly all pipelines would be refused when the file is read,
        and nothing behind that would be tested. `node` may also be the document, which has the same keys."""
        docker = node.get("settings", {}).get("docker", {})
        for key in FILE_SETTINGS:
            docker.pop(key, None)
        if isinstance(docker.get("requirements"), str):
            docker["requirements"] = ["numpy"]
        node["code"] = ["train.py"]
        kubernetes = node.get("settings", {}).get("kubernetes", {})
        for key in ("job_patch", "additional_pod_spec_args"):
            if key in kubernetes:
                kubernetes[key] = {"spec": {"template": self.free(2)}} if key == "job_patch" else {self.random.choice(FREE_KEYS): self.free(3)}
        for key in ("env", "env_from", "volumes", "volume_mounts", "tolerations", "affinity"):
            if self.random.random() < 0.8:
                kubernetes.pop(key, None)
        resources = node.get("settings", {}).get("resources", {})
        for key in list(resources):
            if self.random.random() < 0.7:
                del resources[key]
        if isinstance(node.get("matrix"), dict):
            node["matrix"] = {key: values for key, values in node["matrix"].items() if key not in ("include", "exclude") or self.random.random() < 0.1}
        if not node.get("matrix") or isinstance(node["matrix"], str):
            node.pop("matrix", None)
        for key in ("delay", "backoff"):
            node.get("retry", {}).pop(key, None)

    def pipeline(self) -> dict:
        """Returns a pipeline whose steps take outputs of one another; most pipelines have some damage."""
        document = self.value(self.schema)
        self.make_likely_valid(document)
        document["name"] = "fuzz"
        document["steps"] = {f"s{i}": step for i, step in enumerate(list(document["steps"].values()) or [{}])}
        made: list[str] = []
        for name, step in document["steps"].items():
            step["command"] = self.random.choice(COMMANDS)
            self.make_likely_valid(step)
            if self.random.random() < 0.8:
                step["outputs"] = ["x", "model"][:self.random.randint(1, 2)]
            if self.random.random() < 0.9:
                step["parameters"] = {"a": self.random.choice([1, "x y", True]), "b": 2}
            step.pop("after", None)
            step["inputs"] = {"data": self.random.choice(made)} if made and self.random.random() < 0.7 else {}
            many = "[*]" if "matrix" in step else ""
            made += [f"{name}{many}.{output}" for output in step.get("outputs", []) if isinstance(output, str)]
        for _ in range(self.random.choice([0, 0, 1, 1, 2, 4])):
            self.spoil(document)
        return document

    def spoil(self, document: dict) -> None:
        """Removes, renames or replaces a member of a map, or replaces an item of a list, anywhere in the document."""
        places = []

        def collect(node):
            for key in (node.keys() if isinstance(node, dict) else range(len(node))):
                places.append((node, key))
                if isinstance(node[key], (dict, list)):
                    collect(node[key])

        collect(document)  # Most places are deep, so most damage is.
        node, key = self.random.choice(places)
        # An odd value comes in two of five cases, and in the place of a removal or a new name for items of lists.
        kind = self.random.choice(["remove", "rename", "replace by another part", "odd value", "odd value"])
        if kind == "remove" and isinstance(node, dict):
            del node[key]
        elif kind == "rename" and isinstance(node, dict):
            node[key + self.random.choice(["s", "_", " "])] = node.pop(key)
        elif kind == "replace by another part":
            node[key] = copy.deepcopy(self.random.choice(places)[0])
        else:
            node[key] = copy.deepcopy(self.random.choice(ODD))


class GeneratedPipelines(PipeTest):
    orchestrator = "local"
    commands = [["validate"], ["plan", "--orchestrator", "local"], ["render"], ["render", "--orchestrator", "kubernetes"]]

    def check(self, words: list[str], text: str) -> None:
        """Runs a command on pipeline.yaml, which has this text, and fails if the command crashes or refuses the pipeline without naming a line."""
        done = subprocess.run([PIPE, *words, "pipeline.yaml", "--output", "json"], cwd=self.folder, env=self.environment({}), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
        message = f"{' '.join(words)} of this pipeline (PIPE_FUZZ_SEED={SEED}):\n{text}\n{done.stderr.decode(errors='replace')}"
        self.assertIn(done.returncode, (0, 2, 3), message)
        self.assertNotIn(b"internal error", done.stdout + done.stderr, message)
        if done.returncode != 2:
            return
        report = json.loads(done.stdout.splitlines()[-1])
        self.assertTrue(report.get("diagnostics"), message)
        for diagnostic in report["diagnostics"]:
            self.assertTrue(diagnostic.get("line") or diagnostic["code"] == "too-many-errors", f"no line: {diagnostic}\n{message}")

    def test_nothing_crashes_and_every_refusal_has_a_line(self):
        print(f"PIPE_FUZZ_SEED={SEED}", flush=True)
        schema = json.loads(self.pipe("schema").out)
        self.write("train.py", "import json\n")
        for i in range(COUNT):
            document = Generator(schema, f"{SEED} {i}").pipeline()
            text = json.dumps(document, indent=1)
            self.write("pipeline.yaml", text)
            for words in self.commands:
                with self.subTest(pipeline=i, command=words):
                    self.check(words, text)


if __name__ == "__main__":
    unittest.main()
