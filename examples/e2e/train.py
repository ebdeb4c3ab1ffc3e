"""Trains the model with the best score. The folder of scores has an index.json, which names the file of each."""

import argparse
import json
import pathlib

import joblib
import models
import pandas

parser = argparse.ArgumentParser()
for name in ("scores", "data", "model"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

folder = pathlib.Path(args.scores)
scores = [json.loads((folder / entry["file"]).read_text()) for entry in json.loads((folder / "index.json").read_text())]
best = max(scores, key=lambda score: score["score"])
rows = pandas.read_csv(args.data)
joblib.dump(models.make(best["model"], best["c"]).fit(rows.drop(columns="target"), rows["target"]), args.model)
print(best)
