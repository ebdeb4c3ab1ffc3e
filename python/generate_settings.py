"""Makes pipe_ml/_settings.py, the types of all options, of what `pipe schema` prints. scripts/generate-docs writes it."""

import re
import textwrap

HEAD = '''"""Types of the options of steps and pipelines. Made by scripts/generate-docs from `pipe schema`: edit the descriptions in src."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Sequence, TypedDict, Union


'''
CLASSES = {"docker": "DockerSettings", "resources": "ResourceSettings", "kubernetes": "KubernetesSettings", "slurm": "SlurmSettings", "settings": "Settings", "retry": "Retry", "on_oom": "OnOom",
           "build_config": "BuildConfig", "build_options": "BuildOptions", "parent_image_build_config": "BuildConfig", "run_args": "RunArgs", "cache": "Cache", "topology": "KubernetesTopology"}
OF_STEP = ("command", "notebook", "inputs", "outputs", "matrix", "repeat", "parameters", "after", "when", "shell")
OF_PIPELINE = ("steps", "parameters", "name", "description", "shell")


class Writer:
    def __init__(self):
        self.classes = {}
        self.nested = {}

    def type_of(self, schema, key, owner):
        """Returns the Python type of a value, and declares the classes of maps with fixed keys."""
        if key in ("memory", "gpu_memory", "shm_size") or "anyOf" in schema:
            kinds = [self.type_of(each, key, owner) for each in schema.get("anyOf", [])] or ["str", "int"]
        else:
            kinds = [self.plain(schema, kind, key, owner) for kind in self.kinds_of(schema)]
        kinds = list(dict.fromkeys(kinds))
        return kinds[0] if len(kinds) == 1 else f"Union[{', '.join(kinds)}]"

    @staticmethod
    def kinds_of(schema):
        kind = schema.get("type") or ("object" if "properties" in schema else None)
        if kind is None:
            return [{str: "string", bool: "boolean", int: "integer"}[type(each)] for each in schema["enum"]] if "enum" in schema else ["any"]
        return kind if isinstance(kind, list) else [kind]

    def plain(self, schema, kind, key, owner):
        if kind == "array":
            return f"Sequence[{self.type_of(schema['items'], key, owner)}]" if "items" in schema else "Sequence[Any]"
        if kind == "object":
            if schema.get("properties") and key in CLASSES:
                name = "Kubernetes" + key.capitalize() if owner == "KubernetesSettings" else CLASSES[key]
                self.nested.setdefault(owner, {})[key] = name
                self.declare(name, schema["properties"])
                return name
            values = schema.get("additionalProperties")
            return f"Mapping[str, {self.type_of(values, '', owner) if isinstance(values, dict) else 'Any'}]"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "any": "Any"}[kind]

    def declare(self, name, properties, base="TypedDict", without=()):
        if name in self.classes:
            return
        self.classes[name] = ""
        lines = []
        for key, schema in sorted(properties.items()):
            if key not in without and key.isidentifier():
                lines += [f"    {key}: {self.type_of(schema, key, name)}", *textwrap.wrap(f'"""{doc(schema)}"""', 130, initial_indent="    ", subsequent_indent="    ", break_long_words=False)]
        text = f"class {name}({base}, total=False):\n" + "\n".join(lines) + "\n"
        self.classes.pop(name)
        self.classes[name] = text


def doc(schema):
    return re.sub(r"\s+", " ", schema.get("description", "")).replace("\\", "\\\\").replace('"', "'")


def settings_text(schema):
    writer = Writer()
    writer.declare("StepSettings", schema["$defs"]["step"]["properties"], without=OF_STEP)
    writer.declare("PipelineSettings", schema["properties"], without=(*OF_PIPELINE, "include"))
    writer.declare("Unused", {"retry": schema["properties"]["retry"]})
    text = HEAD + "\n\n\n".join(body.rstrip() for name, body in writer.classes.items() if name != "Unused")
    text += "\n\n\n# The class of each option that is a map with fixed keys.\nNESTED: Dict[str, Dict[str, str]] = {\n"
    text += "".join(f"    {owner!r}: {nested!r},\n" for owner, nested in sorted(writer.nested.items()) if owner != "Unused").replace("'", '"') + "}\n"
    return text.replace("List, ", "")
