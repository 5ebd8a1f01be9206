#!/usr/bin/env python3
"""The solver of `sparse_regression solve` in Python: the same passes, steps and stopping rule.

    python3 twin.py FILE.beton.x.npy FILE.beton.y.npy [options]           PyTorch's DataLoader on the mapped array
    python3 twin.py FILE.beton FILE.beton.y.npy --loader ffcv [options]   FFCV's loader

Prints the result as JSON. Keys that `sparse_regression solve --json` also prints have the same meaning. Needs numpy and
torch, and for --loader ffcv also ffcv; `.venv-peers` of tools/peers/setup has them.
"""

import argparse
import dataclasses
import json
import math
import resource
import statistics
import sys
import time

import numpy as np
import torch

POWER_PASSES = 5


class MappedRows(torch.utils.data.Dataset):
    """Rows of a memory-mapped .npy file. Each worker maps the file itself: a mapping cannot be sent to a process."""

    def __init__(self, path):
        self.path = path
        self.rows = None
        self.shape = np.load(path, mmap_mode="r").shape

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, i):
        if self.rows is None:
            self.rows = np.load(self.path, mmap_mode="r")
        return torch.from_numpy(np.array(self.rows[i])), i


def torch_batches(options):
    data = MappedRows(options.features)
    generator = torch.Generator().manual_seed(options.seed)
    loader = torch.utils.data.DataLoader(
        data, batch_size=options.batch_size, shuffle=options.order != "sequential", num_workers=options.workers,
        persistent_workers=options.workers > 0, generator=generator)
    return loader, data.shape[1]


def ffcv_batches(options):
    from ffcv.fields.basics import FloatDecoder
    from ffcv.fields.ndarray import NDArrayDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.pipeline.allocation_query import AllocationQuery
    from ffcv.transforms import ToTensor

    class Decoder(NDArrayDecoder):
        """Decodes float16 as int16 with the same bits: FFCV's decoder fails, because Numba does not support float16."""

        def declare_state_and_memory(self, previous_state):
            state, _ = super().declare_state_and_memory(previous_state)
            dtype = np.dtype("<i2") if state.dtype == np.float16 else state.dtype
            return dataclasses.replace(state, dtype=dtype), AllocationQuery(self.field.shape, dtype)

    order = {"sequential": OrderOption.SEQUENTIAL, "random": OrderOption.RANDOM,
             "quasi_random": OrderOption.QUASI_RANDOM}[options.order]
    loader = Loader(options.features, batch_size=options.batch_size, num_workers=max(options.workers, 1), order=order,
                    os_cache=bool(options.os_cache), seed=options.seed, drop_last=False,
                    pipelines={"x": [Decoder(), ToTensor()], "y": [FloatDecoder(), ToTensor()]})
    drawn, draw = [], loader.next_traversal_order

    def record():
        drawn[:] = [draw()]
        return drawn[0]

    # FFCV does not return the indices of samples; they are the order that it draws for the epoch.
    loader.next_traversal_order = record

    class WithIndices:
        def __iter__(self):
            iterator = iter(loader)
            indices, first = torch.as_tensor(np.asarray(drawn[0]).astype(np.int64)), 0
            for x, _ in iterator:
                x = x.view(torch.float16) if x.dtype == torch.int16 else x
                yield x, indices[first:first + len(x)]
                first += len(x)

    (features,) = loader.reader.handlers["x"].shape
    return WithIndices(), features


class Saga:
    def __init__(self, batches, features, targets, options):
        self.batches, self.options = batches, options
        self.n, self.device = len(targets), torch.device(options.device)
        self.target_mean = targets.mean().item()
        self.y = (targets - self.target_mean).float().to(self.device)
        self.null_objective = self.y.double().square().sum().item() / (2 * self.n)
        self.w = torch.zeros(features, dtype=torch.float64, device=self.device)
        self.passes, self.waited, self.seconds = 0, 0.0, 0.0

    def rows(self):
        """Yields (features as float32, indices) for each batch of one pass."""
        begin = time.perf_counter()
        iterator = iter(self.batches)
        while True:
            waits = time.perf_counter()
            batch = next(iterator, None)
            self.waited += time.perf_counter() - waits
            if batch is None:
                break
            x, ids = batch
            yield x.to(self.device).float(), ids.to(self.device)
        self.passes += 1
        self.seconds += time.perf_counter() - begin

    def prepare(self):
        begin = time.perf_counter()
        origin, totals = None, None
        for x, ids in self.rows():
            if origin is None:
                origin = x[0].clone()
                totals = torch.zeros(3, x.shape[1], dtype=torch.float64, device=self.device)
            moved = x - origin
            totals[0] += moved.sum(0)
            totals[1] += moved.T @ self.y[ids]
            totals[2] += moved.square().sum(0)
        mean = totals[0] / self.n
        variance = (totals[2] / self.n - mean.square()).clamp_min(0)
        constant = variance <= 1e-12 * totals[2] / self.n
        self.inverse = torch.where(constant, 0.0, variance.rsqrt())
        self.mean = mean + origin
        self.table = -self.y
        self.gradient = (totals[1] - mean * self.y.double().sum()) * self.inverse / -self.n
        self.lambda_max = self.gradient.abs().max().item() / self.options.l1_ratio
        row = 0.0
        mean32, inverse32 = self.mean.float(), self.inverse.float()
        for x, _ in self.rows():
            row = max(row, (x - mean32).mul_(inverse32).square_().sum(1).max().item())
        v = self.gradient / self.gradient.norm()
        for _ in range(POWER_PASSES):
            following = torch.zeros_like(v)
            for x, _ in self.rows():
                following += self.multiply(x, v, torch.zeros(len(x), device=self.device))[1] / self.n
            full = following.norm().item()
            v = following / full
        b, others = min(self.options.batch_size, self.n), max(self.n - 1, 1)
        smoothness = self.n * (b - 1) / (b * others) * full + (self.n - b) / (b * others) * row
        self.smoothness = max(smoothness, full)
        return time.perf_counter() - begin

    def multiply(self, x, v, offset):
        """Returns the residuals Z v - offset and the gradient Z' residuals for the standardised rows Z of a batch."""
        scaled = v * self.inverse
        residuals = x @ scaled.float() - (offset + (scaled @ self.mean).float())
        gradient = (x.T @ residuals).double()
        return residuals, (gradient - self.mean * residuals.double().sum()) * self.inverse

    def epoch(self, strength):
        l1, l2 = strength * self.options.l1_ratio, strength * (1 - self.options.l1_ratio)
        step = self.options.step_scale / (self.smoothness + l2)
        loss = 0.0
        for x, ids in self.rows():
            old = self.table[ids]
            residuals, change = self.multiply(x, self.w, self.y[ids] + old)
            residuals = residuals + old
            self.table[ids] = residuals
            loss += residuals.double().square().sum().item()
            w = self.w - step * (self.gradient + change / len(x))
            self.gradient += change / self.n
            self.w = w.sign() * (w.abs() - step * l1).clamp_min(0) / (1 + step * l2)
        return loss / (2 * self.n) + self.penalty(strength)

    def exact_pass(self):
        gradient = torch.zeros_like(self.gradient)
        for x, ids in self.rows():
            self.table[ids], change = self.multiply(x, self.w, self.y[ids])
            gradient += change / self.n
        self.gradient = gradient

    def penalty(self, strength):
        ratio = self.options.l1_ratio
        return strength * (ratio * self.w.abs().sum() + (1 - ratio) / 2 * self.w.square().sum()).item()

    def objective(self, strength):
        return self.table.double().square().sum().item() / (2 * self.n) + self.penalty(strength)

    def dual(self, strength):
        l1, l2 = strength * self.options.l1_ratio, strength * (1 - self.options.l1_ratio)
        table = self.table.double()
        squares, products = (table @ table).item() / self.n, (table @ self.y.double()).item() / self.n

        def value(scale):
            return -scale * scale * squares / 2 - scale * products

        largest = self.gradient.abs().max().item()
        feasible = l1 / largest if largest > 0 else 1.0
        best = value(min(max(-products / max(squares, 1e-300), -feasible), feasible))
        if l2 > 0:
            best = max(best, value(1) - (self.gradient.abs() - l1).clamp_min(0).square().sum().item() / (2 * l2))
        return best

    def solve_point(self, strength, epoch_seconds):
        begin = time.perf_counter()
        epochs, exact_passes, exact, objective = 0, 0, True, self.objective(strength)
        while True:
            if not math.isfinite(objective) or objective > 10 * self.null_objective:
                sys.exit(f"twin: expected at most 10 times the objective of w=0, got {objective}. Reduce --step-scale")
            gap = max(0.0, objective - self.dual(strength))  # below 0: rounding
            small = gap <= self.options.tolerance * objective
            if exact and (small or epochs >= self.options.max_epochs):
                break
            exact = small or epochs >= self.options.max_epochs
            if exact:
                self.exact_pass()
                objective = self.objective(strength)
                exact_passes += 1
            else:
                epoch_begin = time.perf_counter()
                objective = self.epoch(strength)
                epoch_seconds.append(time.perf_counter() - epoch_begin)
                epochs += 1
        coefficients = self.w * self.inverse
        self.solutions.append(
            [*coefficients.tolist(), self.target_mean - (coefficients @ self.mean).item()])
        return {"lambda": strength, "objective": objective, "gap": gap, "relative_gap": gap / objective,
                "nonzeros": int((self.w != 0).sum()), "converged": small, "epochs": epochs,
                "exact_passes": exact_passes, "seconds": time.perf_counter() - begin}

    def solve_path(self):
        preparation, epoch_seconds, points, self.solutions = self.prepare(), [], [], []
        count = self.options.lambdas
        for i in range(count):
            share = i / (count - 1) if count > 1 else 0
            points.append(self.solve_point(self.lambda_max * self.options.lambda_ratio ** share, epoch_seconds))
        return {"samples": self.n, "features": len(self.w), "lambda_max": self.lambda_max,
                "batch_smoothness": self.smoothness, "preparation_seconds": preparation,
                "epoch_seconds": statistics.median(epoch_seconds) if epoch_seconds else 0, "passes": self.passes,
                "pass_seconds": self.seconds, "seconds_waited": self.waited,
                "peak_resident_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "peak_resident_bytes_of_largest_worker":
                    resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024,
                "path": points}


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Options without a description are those of `sparse_regression solve`.")
    parser.add_argument("features", help="[samples, features] as .npy; with --loader ffcv a .beton file")
    parser.add_argument("targets", help="[samples] as .npy")
    parser.add_argument("--loader", choices=("torch", "ffcv"), default="torch",
                        help="PyTorch's DataLoader or FFCV's loader")
    parser.add_argument("--lambdas", type=int, default=10)
    parser.add_argument("--lambda-ratio", type=float, default=0.01)
    parser.add_argument("--l1-ratio", type=float, default=0.99)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--max-epochs", type=int, default=100)
    parser.add_argument("--step-scale", type=float, default=0.5)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--order", choices=("sequential", "random", "quasi_random"), default="quasi_random",
                        help="with the DataLoader, quasi_random is replaced by random")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1,
                        help="number of processes (torch) or threads (ffcv) that read")
    parser.add_argument("--threads", type=int, default=0, help="number of threads that compute; 0: PyTorch's default")
    parser.add_argument("--os-cache", type=int, default=0,
                        help="os_cache of FFCV's loader: 1 if the file fits into memory")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--coefficients", help="write the coefficients as .npy, [lambdas, features + 1]")
    return parser.parse_args()


def main():
    options = parse_options()
    if options.threads:
        torch.set_num_threads(options.threads)
    batches, features = (ffcv_batches if options.loader == "ffcv" else torch_batches)(options)
    saga = Saga(batches, features, torch.from_numpy(np.load(options.targets)), options)
    with torch.inference_mode():
        result = saga.solve_path()
    if options.coefficients:
        np.save(options.coefficients, np.array(saga.solutions))
    print(json.dumps({"loader": options.loader} | result))


if __name__ == "__main__":
    main()
