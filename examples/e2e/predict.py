"""Predicts the class of each row."""

import argparse

import joblib
import pandas

parser = argparse.ArgumentParser()
for name in ("model", "data", "out"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

rows = pandas.read_csv(args.data)
pandas.DataFrame({"target": joblib.load(args.model).predict(rows)}).to_csv(args.out, index=False)
