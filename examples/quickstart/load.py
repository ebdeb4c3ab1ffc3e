"""Writes scikit-learn's breast cancer data, less 50 rows that are kept to predict."""

import argparse

from sklearn.datasets import load_breast_cancer

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--unseen", required=True)
parser.add_argument("--seed", type=int, required=True)
args = parser.parse_args()

rows = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=args.seed).dropna()
rows.iloc[:-50].to_csv(args.data, index=False)
rows.iloc[-50:].drop(columns="target").to_csv(args.unseen, index=False)
print(f"{len(rows) - 50} rows, and 50 to predict")
