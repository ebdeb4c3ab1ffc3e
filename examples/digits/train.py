"""Trains one model. The pipeline runs this three times, side by side."""

import argparse
import time
from pathlib import Path

import joblib
from sklearn.base import ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


def make_model(kind: str, c: float, trees: int, seed: int) -> ClassifierMixin:
    match kind:
        case "logistic":
            return make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=1000, random_state=seed))
        case "svc":
            return make_pipeline(StandardScaler(), SVC(C=c, random_state=seed))
        case "forest":
            return RandomForestClassifier(n_estimators=trees, random_state=seed)
    raise ValueError(f"no model is called {kind}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["logistic", "svc", "forest"])
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--c", type=float, default=1.0, help="inverse of the regularization's strength (logistic, svc)")
    parser.add_argument("--trees", type=int, default=100, help="number of trees (forest)")
    parser.add_argument("--seed", type=int, required=True)
    arguments = parser.parse_args()

    images, labels = joblib.load(arguments.train)
    model = make_model(arguments.kind, arguments.c, arguments.trees, arguments.seed)
    begin = time.perf_counter()
    model.fit(images, labels)
    print(f"{arguments.kind}: {len(labels)} images in {time.perf_counter() - begin:.2f} s")
    joblib.dump(model, arguments.model)


if __name__ == "__main__":
    main()
