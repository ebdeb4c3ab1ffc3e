"""Predicts the label of each point."""

import argparse
import csv

import model

parser = argparse.ArgumentParser()
for name in ("model", "data", "out"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

production = model.load(args.model)
with open(args.out, "w", newline="") as file:
    csv.writer(file).writerows([*point, model.predict(production, point)] for point, _ in model.read_rows(args.data))
