"""Trains one model."""

import argparse

import joblib
import pandas
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

parser = argparse.ArgumentParser()
parser.add_argument("kind", choices=["sgd", "forest"])
parser.add_argument("--data", required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--seed", type=int, required=True)
args = parser.parse_args()

rows = pandas.read_csv(args.data)
model = SGDClassifier(random_state=args.seed) if args.kind == "sgd" else RandomForestClassifier(random_state=args.seed)
model = make_pipeline(StandardScaler(), model).fit(rows.drop(columns="target"), rows["target"])
joblib.dump(model, args.model)
