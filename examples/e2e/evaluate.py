"""Measures a model and the production model, whose file is empty if there is none."""

import argparse
import json
import os
import pathlib

import joblib
import pandas

parser = argparse.ArgumentParser()
for name in ("model", "production", "train", "test", "metrics"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()


def accuracy(model: str, data: str) -> float:
    rows = pandas.read_csv(data)
    return joblib.load(model).score(rows.drop(columns="target"), rows["target"])


metrics = {"train": accuracy(args.model, args.train), "test": accuracy(args.model, args.test),
           "production": accuracy(args.production, args.test) if os.path.getsize(args.production) else 0}
pathlib.Path(args.metrics).write_text(json.dumps(metrics))
print(metrics)
