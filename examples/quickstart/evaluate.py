"""Chooses the model with the best accuracy. The folder of models has an index.json, which names the step of each."""

import argparse
import json
import pathlib
import shutil

import joblib
import pandas

parser = argparse.ArgumentParser()
for name in ("models", "data", "best", "metrics"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

rows = pandas.read_csv(args.data)
models = pathlib.Path(args.models)
scores = {}
for entry in json.loads((models / "index.json").read_text()):
    model = joblib.load(models / entry["file"])
    scores[entry["file"]] = model.score(rows.drop(columns="target"), rows["target"])
    print(f"{entry['step']}: {scores[entry['file']]:.3f}")
best = max(scores, key=scores.get)
shutil.copyfile(models / best, args.best)
pathlib.Path(args.metrics).write_text(json.dumps({"accuracy": scores[best]}))
