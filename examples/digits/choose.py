"""Keeps the model with the best accuracy, and writes the metrics of all models."""

import argparse
import json
import shutil
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="where the best model goes")
    parser.add_argument("--summary", type=Path, required=True, help="where its name and all metrics go")
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    arguments = parser.parse_args()

    metrics = json.loads(arguments.metrics.read_text())
    files = dict(model.split("=", 1) for model in arguments.models)
    best = max(metrics, key=lambda name: metrics[name]["accuracy"])
    shutil.copyfile(files[best], arguments.model)
    arguments.summary.write_text(json.dumps({"best": best, **metrics[best], "models": metrics}, indent=2) + "\n")
    print(f"the best is {best}, with an accuracy of {metrics[best]['accuracy']:.4f}")


if __name__ == "__main__":
    main()
