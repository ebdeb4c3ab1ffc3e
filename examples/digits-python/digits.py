#!/usr/bin/env python3
"""Trains models on scikit-learn's handwritten digits, and draws what the best one confuses.

./digits.py run | plan | show | logs | ...
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import pipe_ml as pl

if TYPE_CHECKING:  # the packages of the steps need not be installed on this machine
    import numpy as np
    from matplotlib.figure import Figure
    from sklearn.svm import SVC

SEED = 7


class Images(NamedTuple):
    pixels: np.ndarray
    labels: np.ndarray


class Parts(NamedTuple):
    train: dict[str, np.ndarray]
    test: dict[str, np.ndarray]


@dataclass
class Scores:
    accuracy: float
    best: int


@pl.step
def load() -> Images:
    """Loads 1,797 images of 8 x 8 pixels."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    print(f"{len(labels)} images, {len(set(labels))} classes")
    return Images(pixels, labels)


@pl.step
def split(pixels: np.ndarray, labels: np.ndarray, test_size: float) -> Parts:
    """Splits the images into a part for training and a part for tests."""
    from sklearn.model_selection import train_test_split

    fit, held, fit_labels, held_labels = train_test_split(pixels, labels, test_size=test_size, random_state=SEED, stratify=labels)
    return Parts({"pixels": fit, "labels": fit_labels}, {"pixels": held, "labels": held_labels})


@pl.step(memory="1GiB", retry={"max_retries": 2, "delay": "1s"}, timeout="10m")
def train(data: dict[str, np.ndarray], c: float) -> SVC:
    """Trains one model."""
    from sklearn.svm import SVC

    model = SVC(C=c, gamma=0.001).fit(data["pixels"], data["labels"])
    pl.metric("train_accuracy", model.score(data["pixels"], data["labels"]))
    return model


@pl.step
def evaluate(models: list[SVC], test: dict[str, np.ndarray]) -> tuple[Annotated[SVC, "model"], Annotated[Scores, pl.Metrics, "scores"]]:
    """Chooses the model that is right most often on images that no model was trained with."""
    scores = [float(model.score(test["pixels"], test["labels"])) for model in models]
    best = max(range(len(models)), key=scores.__getitem__)
    return models[best], Scores(scores[best], best)


@pl.step(docker={"requirements": ["scikit-learn==1.7.2", "joblib==1.5.2", "matplotlib==3.10.7"]})
def report(model: SVC, test: dict[str, np.ndarray]) -> Figure:
    """Draws the confusion matrix."""
    import matplotlib

    matplotlib.use("Agg")
    from sklearn.metrics import ConfusionMatrixDisplay

    return ConfusionMatrixDisplay.from_estimator(model, test["pixels"], test["labels"]).figure_


@pl.pipeline(docker={"parent_image": "python:3.11-slim-bookworm", "requirements": ["scikit-learn==1.7.2", "joblib==1.5.2"]})
def digits(test_size: float = 0.25, good: float = 0.9):
    """Trains on handwritten digits."""
    images = load()
    parts = split(images.pixels, images.labels, test_size)
    models = train.map(parts.train, c=[0.1, 1.0, 10.0])
    best, scores = evaluate(models, parts.test)
    with pl.when(scores.accuracy > good):
        report(best, parts.test)


if __name__ == "__main__":
    digits.main()
