"""The programs of all steps: evaluate.py COMMAND FILE..."""

import json
import os
import pathlib
import sys
import urllib.request


def questions(out: str):
    pathlib.Path(out).write_text(json.dumps({str(n): n * n for n in range(2, 6)}))


def ask(server: str, asked: str, out: str):
    right = 0
    expected = json.loads(pathlib.Path(asked).read_text())
    for number, answer in expected.items():
        request = urllib.request.Request(f"{server}/{number}", headers={"Authorization": os.environ["SERVER_TOKEN"]})
        right += int(urllib.request.urlopen(request).read()) == answer
    pathlib.Path(out).write_text(json.dumps({"right": right / len(expected)}))


def best(out: str, scores: str):
    index = json.loads(pathlib.Path(scores, "index.json").read_text())
    found = {entry["parameters"]["model"]: json.loads(pathlib.Path(scores, entry["file"]).read_text())["right"] for entry in index}
    model = max(found, key=found.get)
    pathlib.Path(out).write_text(json.dumps({"model": model, "right": found[model]}))


def deploy(chosen: str, least: str):
    model = json.loads(pathlib.Path(chosen).read_text())
    if model["right"] < float(least):
        raise SystemExit(f"{model['model']} is right in {model['right']} of the cases, and {least} are asked for")
    print("deploys", model["model"])


{"questions": questions, "ask": ask, "best": best, "deploy": deploy}[sys.argv[1]](*sys.argv[2:])
