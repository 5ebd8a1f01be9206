#!/usr/bin/env python3
"""Writes the goldens of metrics and of the losses of values, labels and pixels.

    pip install numpy scikit-learn==1.9.1
    python tests/golden/make_metric_goldens.py                 writes recipes/metrics.json in the folder of this script
    python tests/golden/make_metric_goldens.py 10000 FILE      writes 10,000 cases of each metric and loss to FILE
    PRECAST_METRIC_CASES=FILE build/bin/recipes_test --gtest_filter='MetricGolden*'

Metrics come from scikit-learn (`top_k` from NumPy), losses from their formulas in NumPy (float64). Outputs are
multiples of 1/8, so that equal scores occur.
"""

import json
import pathlib
import sys
import warnings

import numpy as np
from sklearn import metrics

FILE = pathlib.Path(__file__).parent / "recipes" / "metrics.json"
IGNORED = 255


def outputs_of(random, shape):
    return random.integers(-32, 33, shape) / 8


def values_case(random):
    samples, width = random.integers(2, 9), random.integers(1, 4)
    outputs = outputs_of(random, (samples, width))
    target = outputs_of(random, (samples, width)) + random.choice([0, 1000])
    if random.random() < 0.1:
        target[:, 0] = target[0, 0]
    return outputs, target


def labels_case(random):
    samples, classes = random.integers(1, 12), random.integers(1, 5)
    share = random.choice([0.1, 0.5])
    return outputs_of(random, (samples, classes)), (random.random((samples, classes)) < share) * 1


def classes_case(random):
    samples, classes = random.integers(1, 16), random.integers(2, 6)
    return distinct_rows(random, (samples, classes)), random.integers(0, classes, samples)


def masks_case(random):
    samples, classes, side = random.integers(1, 3), random.integers(2, 4), random.integers(2, 5)
    target = random.integers(0, classes, (samples, side, side))
    target[random.random(target.shape) < 0.2] = IGNORED
    target[0, 0, 0] = 0
    return distinct_rows(random, (samples, classes, side, side)), target


def distinct_rows(random, shape):
    """Returns outputs that are all different along axis 1, so that the largest one is unique."""
    order = random.permuted(np.broadcast_to(
        np.arange(shape[1]).reshape([-1 if i == 1 else 1 for i in range(len(shape))]), shape), axis=1)
    return order.astype(float)


def counted(outputs, target):
    predicted = outputs.argmax(1).ravel()
    actual = target.ravel()
    return actual[actual != IGNORED], predicted[actual != IGNORED]


def top_k(outputs, target, k):
    best = np.argsort(-outputs, axis=1)[:, :k]
    return np.mean([t in row for t, row in zip(target, best, strict=True)])


def iou(outputs, target):
    actual, predicted = counted(outputs, target)
    return metrics.jaccard_score(actual, predicted, average="macro")


METRICS = [
    ("mse", {}, values_case, lambda o, t: metrics.mean_squared_error(t, o)),
    ("r2", {}, values_case, lambda o, t: metrics.r2_score(t, o)),
    ("map", {}, labels_case, lambda o, t: metrics.average_precision_score(t, o, average="macro")
     if t.shape[1] > 1 else metrics.average_precision_score(t[:, 0], o[:, 0])),
    ("f1", {"average": "micro"}, labels_case,
     lambda o, t: np_f1(o > 0, t, "micro")),
    ("f1", {"average": "macro"}, labels_case,
     lambda o, t: np_f1(o > 0, t, "macro")),
    ("f1", {"average": "macro"}, classes_case,
     lambda o, t: metrics.f1_score(t, o.argmax(1), average="macro")),
    ("f1", {"average": "micro"}, classes_case,
     lambda o, t: metrics.f1_score(t, o.argmax(1), average="micro")),
    ("per_class_accuracy", {}, classes_case,
     lambda o, t: metrics.balanced_accuracy_score(t, o.argmax(1))),
    ("per_class_accuracy", {}, masks_case,
     lambda o, t: metrics.balanced_accuracy_score(*counted(o, t))),
    ("mean_iou", {}, masks_case, iou),
    ("top_k", {"k": 2}, classes_case, lambda o, t: top_k(o, t, 2)),
]


def np_f1(predicted, target, average):
    if target.shape[1] == 1:  # scikit-learn takes one column for two classes
        predicted, target = (np.hstack([x, np.zeros_like(x)]) for x in (predicted * 1, target))
        value = metrics.f1_score(target, predicted, average=average)
        return value * 2 if average == "macro" else value
    return metrics.f1_score(target, predicted * 1, average=average)


def softplus(x):
    return np.logaddexp(0, x)


def pixel_cross_entropy(outputs, target):
    logs = outputs - np.log(np.exp(outputs).sum(1, keepdims=True))
    there = target != IGNORED
    picked = np.take_along_axis(logs, np.where(there, target, 0)[:, None], axis=1)[:, 0]
    return -(picked * there).sum() / max(there.sum(), 1)


def huber(error, delta):
    size = np.abs(error)
    return np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))


LOSSES = [
    ("mse", {}, values_case, lambda o, t: np.mean((o - t) ** 2)),
    ("l1", {}, values_case, lambda o, t: np.mean(np.abs(o - t))),
    ("huber", {"delta": 0.75}, values_case, lambda o, t: np.mean(huber(o - t, 0.75))),
    ("multi_label_bce", {}, labels_case, lambda o, t: np.mean(softplus(o) - o * t)),
    ("multi_label_bce", {"pos_weight": 3}, labels_case,
     lambda o, t: np.mean(3 * t * softplus(-o) + (1 - t) * softplus(o))),
    ("pixel_cross_entropy", {}, masks_case, pixel_cross_entropy),
]


def flat(array):
    return {"shape": list(array.shape), "values": array.ravel().tolist()}


def cases(table, count):
    made = []
    for place, (name, options, make, value) in enumerate(table):
        random = np.random.default_rng(place)
        for _ in range(count):
            outputs, target = make(random)
            made.append({"name": name, "options": options, "outputs": flat(outputs),
                         "target": flat(target), "value": float(value(outputs, target))})
    return made


def main():
    warnings.simplefilter("ignore")
    count = int(sys.argv[1]) if len(sys.argv) > 2 else 8
    file = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else FILE
    golden = {"metrics": cases(METRICS, count), "losses": cases(LOSSES, count)}
    file.write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
