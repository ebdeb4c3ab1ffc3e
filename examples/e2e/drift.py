"""Reports the share of columns that have drifted: their means are off by more than a standard deviation."""

import argparse
import json
import pathlib

import pandas

parser = argparse.ArgumentParser()
for name in ("reference", "data", "report"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

reference = pandas.read_csv(args.reference).drop(columns="target")
off = (pandas.read_csv(args.data).mean() - reference.mean()).abs() / reference.std()
pathlib.Path(args.report).write_text(json.dumps({"drifted": float((off > 1).mean())}))
print(off.round(2).to_string())
