"""Makes the models that the search compares."""

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


def make(kind: str, c: float):
    return make_pipeline(StandardScaler(), LogisticRegression(C=c, max_iter=1000) if kind == "logistic" else SVC(C=c))
