"""Executes a Jupyter notebook as a step. A copy travels with the step's code, because nothing of pipe is installed in its image.

Usage: python notebook.py NOTEBOOK EXECUTED [NAME=VALUE | NAME:PATH]...

The values are assigned in a cell of their own, after the cell with the tag `parameters`, else before the first one.
"""

import ast
import json
import os
import re
import sys

try:
    import ipykernel  # noqa: F401
    import nbclient
    import nbformat
except ImportError as error:
    sys.exit(f"{error}: a notebook takes the packages nbclient and ipykernel, add them to the requirements of the step: settings: {{docker: {{requirements: [nbclient, ipykernel]}}}}")


class Client(nbclient.NotebookClient):
    """Executes cells, and prints what they print."""

    def process_message(self, msg, cell, cell_index):
        if msg["msg_type"] == "stream":
            stream = sys.stdout if msg["content"]["name"] == "stdout" else sys.stderr
            stream.write(msg["content"]["text"])
            stream.flush()
        return super().process_message(msg, cell, cell_index)


def is_parameters(cell):
    return cell.cell_type == "code" and "parameters" in cell.metadata.get("tags", [])


def defaults_of(cells):
    """Returns the values that the cell of parameters assigns, as far as they are literals."""
    defaults = {}
    for cell in filter(is_parameters, cells):
        for node in ast.parse(cell.source).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                defaults.update({target.id: node.value.value for target in node.targets if isinstance(target, ast.Name)})
    return defaults


def assignment(word, defaults):
    """Returns a line of Python. A value is read as JSON, unless the notebook's own value is a text."""
    name, mark, text = re.match(r"([\w-]+)([=:])(.*)", word, re.DOTALL).groups()
    name = name.replace("-", "_")
    if mark == ":" or isinstance(defaults.get(name), str):
        return f"{name} = {text!r}"
    try:
        return f"{name} = {json.loads(text)!r}"
    except ValueError:
        return f"{name} = {text!r}"


def add_parameters(notebook, words):
    defaults = defaults_of(notebook.cells)
    cell = nbformat.v4.new_code_cell("\n".join(assignment(word, defaults) for word in words), metadata={"tags": ["injected-parameters"]})
    cell["id"] = "injected-parameters"
    if (notebook.nbformat, notebook.nbformat_minor) < (4, 5):
        del cell["id"]
    notebook.cells.insert(next((i + 1 for i, each in enumerate(notebook.cells) if is_parameters(each)), 0), cell)


def report(error, path, number):
    """Prints the traceback of a cell, and tells pipe what was raised."""
    sys.stdout.flush()
    print(re.sub(r"\x1b\[[0-9;]*m", "", error.traceback), file=sys.stderr)
    if file := os.environ.get("PIPE_FAILURE_FILE"):
        with open(file, "w", encoding="utf-8") as out:
            json.dump({"type": error.ename, "message": error.evalue, "how": "raised", "where": f"{path}, code cell {number}", "causes": []}, out)


def main(path, executed, *words):
    notebook = nbformat.read(path, as_version=4)
    if words:
        add_parameters(notebook, words)
    is_python = notebook.metadata.get("kernelspec", {}).get("language", "python") == "python"
    kernel = "python3" if is_python else notebook.metadata.kernelspec.name  # names such as "my-project" are of one machine
    codes = [each for each in notebook.cells if each.cell_type == "code"]
    begun = []

    def begin(cell, cell_index):
        sys.stderr.write("@pipe " + json.dumps({"progress": len(begun) / len(codes)}) + "\n")
        begun.append(cell)

    client = Client(notebook, timeout=None, kernel_name=kernel, record_timing=False, on_cell_execute=begin, resources={"metadata": {"path": os.getcwd()}})
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as error:
        report(error, path, len(begun) - (1 if words else 0))
        return 1
    nbformat.write(notebook, executed)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
