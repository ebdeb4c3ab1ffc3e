"""Draws the confusion matrix of the chosen model."""

import argparse
import json
from pathlib import Path

import joblib
import matplotlib

matplotlib.use("Agg")  # no display

import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--summary", type=Path, required=True)
    parser.add_argument("--plot", type=Path, required=True)
    arguments = parser.parse_args()

    images, labels = joblib.load(arguments.test)
    summary = json.loads(arguments.summary.read_text())
    figure, axes = plt.subplots(figsize=(6, 5.4), layout="constrained")
    ConfusionMatrixDisplay.from_estimator(joblib.load(arguments.model), images, labels, ax=axes, cmap="Blues", colorbar=False)
    axes.set_title(f"Digits: {summary['best']}, accuracy {summary['accuracy']:.1%} on {len(labels)} unseen images")
    figure.savefig(arguments.plot, format="png", dpi=120)
    print(f"a picture of {arguments.plot.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
