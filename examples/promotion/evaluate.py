"""Chooses the best of the models, and compares it with the production model, whose file is empty while there is none."""

import argparse
import json
import os
import shutil

import model

parser = argparse.ArgumentParser()
for name in ("test", "models", "production", "best", "metrics"):
    parser.add_argument("--" + name, required=True)
args = parser.parse_args()

rows = model.read_rows(args.test)
with open(os.path.join(args.models, "index.json")) as file:
    files = [os.path.join(args.models, entry["file"]) for entry in json.load(file)]
score, best = max((model.accuracy(model.load(file), rows), file) for file in files)
production = model.accuracy(model.load(args.production), rows) if os.path.getsize(args.production) else 0
shutil.copyfile(best, args.best)
model.save({"accuracy": score, "production": production}, args.metrics)
print(f"{os.path.basename(best)}: {score:.3f}, in production: {production:.3f}")
