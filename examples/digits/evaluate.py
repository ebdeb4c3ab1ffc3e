"""Measures each model on images that no model was trained with."""

import argparse
import json
from pathlib import Path

import joblib
from sklearn.metrics import accuracy_score, f1_score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--metrics", type=Path, required=True)
    parser.add_argument("models", nargs="+", metavar="NAME=FILE")
    arguments = parser.parse_args()

    images, labels = joblib.load(arguments.test)
    metrics: dict[str, dict[str, float]] = {}
    for name, file in (model.split("=", 1) for model in arguments.models):
        predicted = joblib.load(file).predict(images)
        metrics[name] = {
            "accuracy": round(accuracy_score(labels, predicted), 4),
            "f1_macro": round(f1_score(labels, predicted, average="macro"), 4),
        }
        print(f"{name:10} accuracy {metrics[name]['accuracy']:.4f}   f1 {metrics[name]['f1_macro']:.4f}")
    arguments.metrics.write_text(json.dumps(metrics, indent=2) + "\n")


if __name__ == "__main__":
    main()
