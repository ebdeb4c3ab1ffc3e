"""Cross-validates one model."""

import argparse
import json
import pathlib

import models
import pandas
from sklearn.model_selection import cross_val_score

parser = argparse.ArgumentParser()
parser.add_argument("model", choices=["logistic", "svc"])
parser.add_argument("--c", type=float, required=True)
parser.add_argument("--data", required=True)
parser.add_argument("--score", required=True)
args = parser.parse_args()

rows = pandas.read_csv(args.data)
score = cross_val_score(models.make(args.model, args.c), rows.drop(columns="target"), rows["target"], cv=5).mean()
pathlib.Path(args.score).write_text(json.dumps({"model": args.model, "c": args.c, "score": score}))
print(f"{args.model}, C = {args.c}: {score:.3f}")
