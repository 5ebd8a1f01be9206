#!/usr/bin/env python3
"""Compares a path of `sparse_regression solve` with scikit-learn's, on the same data and the same lambdas.

    python3 compare_sklearn.py FILE.beton.x.npy FILE.beton.y.npy RESULT.json COEFFICIENTS.npy [--l1-ratio R]

RESULT.json is the output of `solve --json`, COEFFICIENTS.npy that of `solve --coefficients`. Prints for each lambda
both objectives, computed in float64 from the coefficients, and the sizes of both supports. The exit code is 1 if the
relative difference of two objectives exceeds --tolerance, or if two supports differ. Needs numpy and scikit-learn.
"""

import argparse
import json
import sys

import numpy as np
from sklearn.linear_model import enet_path


def objective(z, y, w, strength, l1_ratio):
    residuals = y - z @ w
    penalty = l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * (w @ w)
    return residuals @ residuals / (2 * len(y)) + strength * penalty


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("features", "targets", "result", "coefficients"):
        parser.add_argument(name)
    parser.add_argument("--l1-ratio", type=float, default=0.99, help="--l1-ratio of the run (default %(default)s)")
    parser.add_argument("--tolerance", type=float, default=1e-4,
                        help="largest relative difference of objectives that agree (default %(default)s)")
    options = parser.parse_args()

    x = np.load(options.features).astype(np.float64)
    y = np.load(options.targets)
    deviation = x.std(0)
    z = np.asfortranarray((x - x.mean(0)) / np.where(deviation > 0, deviation, 1))
    y = y - y.mean()
    with open(options.result) as file:
        lambdas = [point["lambda"] for point in json.load(file)["path"]]
    ours = np.load(options.coefficients)[:, :-1] * deviation
    # The Gram matrix (the products of all features, 2,000 x 2,000, float64) makes enet_path fast.
    _, theirs, _ = enet_path(z, y, l1_ratio=options.l1_ratio, alphas=lambdas, tol=1e-12, max_iter=100000,
                             precompute=z.T @ z, Xy=z.T @ y)
    wrong = 0
    print(f"{'lambda':>10}  {'ours':>14}  {'scikit-learn':>14}  {'difference':>10}  {'support':>13}")
    for i, strength in enumerate(lambdas):
        values = [objective(z, y, w, strength, options.l1_ratio) for w in (ours[i], theirs[:, i])]
        difference = (values[0] - values[1]) / values[1]
        supports = [set(np.flatnonzero(w)) for w in (ours[i], theirs[:, i])]
        same = supports[0] == supports[1]
        wrong += abs(difference) > options.tolerance or not same
        text = f"{len(supports[0])}" if same else f"{len(supports[0])} != {len(supports[1])}"
        print(f"{strength:10.5g}  {values[0]:14.8g}  {values[1]:14.8g}  {difference:10.1e}  {text:>13}")
    print(f"{len(lambdas) - wrong} of {len(lambdas)} agree")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
