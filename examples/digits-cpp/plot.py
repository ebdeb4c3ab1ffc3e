"""Draws the scores of all models, and which digits the best model confuses. Usage: plot.py EVALUATION SCORES PICTURE"""

import json
import pathlib
import sys

import matplotlib

matplotlib.use("Agg")  # no display

import matplotlib.pyplot as plt

evaluation = json.loads(pathlib.Path(sys.argv[1]).read_text())
folder = pathlib.Path(sys.argv[2])  # the outputs of six steps, with an index
scores = [(entry["parameters"], json.loads((folder / entry["file"]).read_text())) for entry in json.loads((folder / "index.json").read_text())]

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for neurons in sorted({parameters["neurons"] for parameters, _ in scores}):
    line = sorted((parameters["rate"], score) for parameters, score in scores if parameters["neurons"] == neurons)
    left.plot(*zip(*line), marker="o", label=f"{neurons} neurons")
rates = sorted({parameters["rate"] for parameters, _ in scores})
left.set(xscale="log", xlabel="learning rate", ylabel="share of the validation images that are right", title=f"{len(scores)} models")
left.set_xticks(rates, map(str, rates))
left.minorticks_off()
left.legend()

confusion = evaluation["confusion"]
most = max(map(max, confusion))
right.imshow(confusion, cmap="Blues")
for row, line in enumerate(confusion):
    for column, count in enumerate(line):
        if count:
            right.text(column, row, count, ha="center", va="center", color="white" if count > most / 2 else "black")
right.set(xticks=range(10), yticks=range(10), xlabel="taken for", ylabel="is", title=f"The best one: {evaluation['accuracy']:.1%} of unseen images are right")
figure.savefig(sys.argv[3], format="png", dpi=110)
