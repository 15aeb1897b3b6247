"""The command against POT, on files that NumPy, pandas and Arrow wrote.

Run by `cargo xtask test` with the variable ORTHANT set to the release build.
"""

import json
import os
import subprocess

import numpy as np
import ot
import pandas as pd
import pytest

ORTHANT = os.environ["ORTHANT"]

# Nothing may hang.
pytestmark = pytest.mark.timeout(300)


def orthant(*arguments, code=0, stdin=None):
    """The JSON object that a command prints."""
    command = [ORTHANT, *map(str, arguments), "--json"]
    done = subprocess.run(command, input=stdin, capture_output=True)
    assert done.returncode == code, done.stderr.decode()
    return json.loads(done.stdout)


def clouds(n=300, m=200, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim))
    y = rng.normal(size=(m, dim)) * 0.6 + 0.5
    a = rng.uniform(0.1, 2.0, size=n)
    b = rng.uniform(0.1, 2.0, size=m)
    return x, y, a, b


def reference(x, y, a, b, epsilon):
    """<P,C>, the KL form and the paper's form of POT's plan."""
    a, b = a / a.sum(), b / b.sum()
    cost = ot.dist(x, y)
    plan = ot.sinkhorn(
        a, b, cost, epsilon, method="sinkhorn_log", numItermax=100_000, stopThr=1e-13
    )
    linear = np.sum(plan * cost)
    kl = linear + epsilon * np.sum(plan * np.log(plan / np.outer(a, b)))
    paper = linear + epsilon * np.sum(plan * np.log(plan))
    return linear, kl, paper


@pytest.mark.parametrize("method", ["online", "dense", "auto"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 10.0])
def test_rot_is_that_of_pot(tmp_path, method, epsilon):
    x, y, a, b = clouds()
    np.savez(tmp_path / "x.npz", points=x, weights=a)
    np.savez_compressed(tmp_path / "y.npz", points=y, weights=b)
    result = orthant(
        "rot", f"{tmp_path}/x.npz:points", f"{tmp_path}/y.npz:points", "--weights", "weights",
        "--eps", epsilon, "--tol", 1e-11, "--method", method,
    )
    linear, kl, paper = reference(x, y, a, b, epsilon)
    assert result["transport_cost"] == pytest.approx(linear, rel=1e-8)
    assert result["value_kl"] == pytest.approx(kl, rel=1e-8)
    assert result["value"] == pytest.approx(paper, rel=1e-8)


def test_divergence_is_that_of_pot(tmp_path):
    x, y, a, b = clouds()
    pd.DataFrame(x, columns=["p", "q", "r"]).assign(w=a).to_csv(tmp_path / "x.csv", index=False)
    pd.DataFrame(y, columns=["p", "q", "r"]).assign(w=b).to_parquet(tmp_path / "y.parquet")
    epsilon = 0.5
    result = orthant(
        "divergence", tmp_path / "x.csv", tmp_path / "y.parquet", "--weights", "w",
        "--eps", epsilon, "--tol", 1e-11,
    )
    value = [reference(*p, epsilon)[1] for p in [(x, y, a, b), (x, x, a, a), (y, y, b, b)]]
    assert result["value"] == pytest.approx(value[0] - (value[1] + value[2]) / 2, rel=1e-7)


def test_every_format_gives_the_same_number(tmp_path):
    x, y, _, _ = clouds()
    np.savetxt(tmp_path / "y.txt", y)
    frame = pd.DataFrame(x, columns=["p", "q", "r"])
    frame.to_csv(tmp_path / "x.csv", index=False)
    frame.to_csv(tmp_path / "x.csv.gz", index=False)
    frame.to_csv(tmp_path / "x.tsv", index=False, header=False, sep="\t")
    frame.to_parquet(tmp_path / "x.parquet")
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "xf.npy", np.asfortranarray(x))
    np.save(tmp_path / "xb.npy", x.astype(">f8"))
    np.savez(tmp_path / "x.npz", x)
    names = ["x.csv", "x.csv.gz", "x.tsv", "x.parquet", "x.npy", "xf.npy", "xb.npy", "x.npz"]
    values = {orthant("rot", tmp_path / f, tmp_path / "y.txt")["value"] for f in names}
    with open(tmp_path / "x.csv", "rb") as file:
        values.add(orthant("rot", "-", tmp_path / "y.txt", stdin=file.read())["value"])
    assert len(values) == 1


def test_lattices_stay_within_their_bound(tmp_path):
    for dim in (1, 2, 3):
        x, y, a, b = clouds(dim=dim)
        np.save(tmp_path / "x.npy", x)
        np.save(tmp_path / "y.npy", y)
        for epsilon in (0.3, 3.0):
            _, kl, _ = reference(x, y, np.ones(len(x)), np.ones(len(y)), epsilon)
            for accuracy in (1e-2, 1e-5):
                found = orthant("rot", tmp_path / "x.npy", tmp_path / "y.npy", "--eps", epsilon,
                                "--anchors", "lattice", "--accuracy", accuracy, "--tol", 1e-9)
                assert abs(found["value_kl"] - kl) <= found["error_bound"] + 1e-8 * kl
                assert found["error_bound"] <= accuracy * kl


def test_gaussian_features_approach_the_exact_value(tmp_path):
    x, y, a, b = clouds(dim=2)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    epsilon = 2.0
    _, kl, _ = reference(x, y, np.ones(len(x)), np.ones(len(y)), epsilon)
    def error(rank):
        values = [
            orthant("rot", tmp_path / "x.npy", tmp_path / "y.npy", "--eps", epsilon,
                    "--anchors", "paper", "--rank", rank, "--seed", seed)["value_kl"]
            for seed in range(12)
        ]
        return np.sqrt(np.mean((np.array(values) / kl - 1) ** 2))
    # The root mean square error falls as 1/sqrt(rank): 64 times the rank, an eighth of the error.
    coarse, fine = error(100), error(6400)
    assert fine < 0.02
    assert 3 < coarse / fine < 20


def unbalanced_reference(x, y, a, b, epsilon, rho):
    """<P,C>, the mass and the value of POT's unbalanced plan."""
    cost = ot.dist(x, y)
    plan = ot.unbalanced.sinkhorn_unbalanced(
        a, b, cost, epsilon, rho, method="sinkhorn_stabilized", reg_type="kl",
        numItermax=100_000, stopThr=1e-14,
    )

    def kl(p, q):
        return np.sum(p * np.log(p / q) - p + q)

    linear = np.sum(plan * cost)
    prices = [r * kl(p, w) for r, p, w in zip(rho, [plan.sum(1), plan.sum(0)], [a, b])]
    return linear, plan.sum(), linear + epsilon * kl(plan, np.outer(a, b)) + sum(prices)


@pytest.mark.parametrize("method", ["online", "dense", "lattice", "nystrom"])
@pytest.mark.parametrize("reach", [(0.5, 0.5), (0.4, 1.5), (3.0, 0.2)])
def test_unbalanced_rot_is_that_of_pot(tmp_path, method, reach):
    x, y, a, b = clouds(dim=2)
    a, b = a / 100, b / 300
    np.savez(tmp_path / "x.npz", points=x, weights=a)
    np.savez(tmp_path / "y.npz", points=y, weights=b)
    epsilon = 0.4
    result = orthant(
        "rot", f"{tmp_path}/x.npz:points", f"{tmp_path}/y.npz:points", "--weights", "weights",
        "--eps", epsilon, "--tol", 1e-11, "--method", method,
        "--reach-x", reach[0], "--reach-y", reach[1],
        *(["--accuracy", 1e-9] if method == "lattice" else []),
    )
    rho = [2 * r**2 for r in reach]
    linear, mass, value = unbalanced_reference(x, y, a, b, epsilon, rho)
    assert [result["settings"]["rho_x"], result["settings"]["rho_y"]] == pytest.approx(rho)
    assert result["transport_cost"] == pytest.approx(linear, rel=1e-7)
    assert result["mass"] == pytest.approx(mass, rel=1e-7)
    assert result["value_kl"] == pytest.approx(value, rel=1e-7)


def test_maps_are_those_of_the_plan_of_pot(tmp_path):
    x, y, a, b = clouds()
    names = ["p", "q", "r"]
    kinds = np.array(["ash", "beech", "cedar"])[(y[:, 0] > 0.4).astype(int) + (y[:, 1] > 0.6)]
    np.savez(tmp_path / "x.npz", points=x, weights=a)
    frame = pd.DataFrame(y, columns=names).assign(w=b, kind=kinds, age=y[:, 2] ** 2)
    frame.to_parquet(tmp_path / "y.parquet")
    epsilon = 0.5
    plan = ot.sinkhorn(
        a / a.sum(), b / b.sum(), ot.dist(x, y), epsilon,
        method="sinkhorn_log", numItermax=100_000, stopThr=1e-13,
    )
    rows = plan / plan.sum(axis=1, keepdims=True)
    problem = [f"{tmp_path}/x.npz:points", tmp_path / "y.parquet", "--weights-x", "weights",
               "--weights-y", "w", "--eps", epsilon, "--tol", 1e-11]
    orthant("map", *problem, "--vote", "kind", "--carry", "age", "--output", tmp_path / "m.csv")
    moved = pd.read_csv(tmp_path / "m.csv")
    assert list(moved.columns) == ["c1", "c2", "c3", "age", "kind", "kind_probability"]
    np.testing.assert_allclose(moved[["c1", "c2", "c3"]], rows @ y, atol=1e-8)
    np.testing.assert_allclose(moved["age"], rows @ y[:, 2] ** 2, atol=1e-8)
    shares = np.stack([rows @ (kinds == k) for k in ["ash", "beech", "cedar"]], axis=1)
    np.testing.assert_allclose(moved["kind_probability"], shares.max(axis=1), atol=1e-8)
    assert list(moved["kind"]) == list(np.array(["ash", "beech", "cedar"])[shares.argmax(axis=1)])

    columns = ["--columns", "1-3"]
    orthant("map", *problem, *columns, "--back", "--output", tmp_path / "b.npy",
            "--partners", tmp_path / "n.npy", "--top-k", 1, "--pairs", tmp_path / "s.npy")
    back = plan.T / plan.T.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), back @ x, atol=1e-8)
    best = np.load(tmp_path / "n.npy")
    assert (best[:, 0] == np.arange(len(y))).all() and (best[:, 1] == back.argmax(axis=1)).all()
    np.testing.assert_allclose(best[:, 2], back.max(axis=1), rtol=1e-7)
    pairs = np.load(tmp_path / "s.npy")
    assert pairs.shape == (1000, 2) and pairs.dtype == np.int64
    # Drawn from the plan: the mean cost of a thousand pairs, within five deviations.
    cost = ot.dist(x, y)
    drawn = cost[pairs[:, 0], pairs[:, 1]]
    assert abs(drawn.mean() - (plan * cost).sum()) < 5 * drawn.std() / np.sqrt(1000)


def histograms(n=60):
    """Bumps on a grid, some with zeros."""
    grid = np.linspace(0.0, 2.0, n)
    a = np.exp(-((grid - 0.5) ** 2) / 0.02)
    b = np.exp(-((grid - 1.3) ** 2) / 0.05) + 0.1
    c = np.where(np.abs(grid - 1.0) < 0.3, 1.0, 0.0)
    return grid, [h / h.sum() for h in (a, b, c)]


@pytest.mark.parametrize("method", ["online", "dense", "lattice"])
def test_barycenter_is_that_of_pot(tmp_path, method):
    grid, all_of_them = histograms()
    for name, histogram in zip("abc", all_of_them):
        np.savez(tmp_path / f"{name}.npz", points=grid[:, None], mass=histogram)
    epsilon, weights = 0.02, np.array([0.2, 0.3, 0.5])
    result = orthant(
        "barycenter", *(f"{tmp_path}/{name}.npz:points" for name in "abc"),
        "--weights", "mass", "--shares", "0.2,0.3,0.5", "--eps", epsilon,
        "--method", method, "--tol", 1e-11, "--output", tmp_path / "p.csv",
        *(["--accuracy", 1e-10] if method == "lattice" else []),
    )
    cost = ot.dist(grid[:, None], grid[:, None])
    expected = ot.bregman.barycenter(
        np.array(all_of_them).T, cost, epsilon, weights=weights, method="sinkhorn_log",
        numItermax=100_000, stopThr=1e-14,
    )
    found = pd.read_csv(tmp_path / "p.csv")
    assert np.abs(found["weight"] - expected).sum() < 1e-7
    assert result["converged"]


def test_debiased_barycenter_is_that_of_pot(tmp_path):
    grid, all_of_them = histograms()
    for name, histogram in zip("ab", all_of_them):
        np.savez(tmp_path / f"{name}.npz", points=grid[:, None], mass=histogram)
    epsilon = 0.002
    orthant(
        "barycenter", *(f"{tmp_path}/{name}.npz:points" for name in "ab"),
        "--weights", "mass", "--eps", epsilon, "--debiased",
        "--method", "dense", "--tol", 1e-7, "--max-iter", 100_000, "--output", tmp_path / "p.csv",
    )
    cost = ot.dist(grid[:, None], grid[:, None])
    expected = ot.bregman.barycenter_debiased(
        np.array(all_of_them[:2]).T, cost, epsilon, weights=np.array([0.5, 0.5]),
        numItermax=20_000, stopThr=1e-13,
    )
    found = pd.read_csv(tmp_path / "p.csv")
    assert np.abs(found["weight"] - expected / expected.sum()).sum() < 1e-3


def test_two_sample_statistic_is_the_divergence_of_pot(tmp_path):
    x, y, _, _ = clouds(n=80, m=60)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    epsilon = 1.0
    result = orthant("test", tmp_path / "x.npy", tmp_path / "y.npy", "--eps", epsilon,
                     "--tol", 1e-10, "--permutations", 99)
    ones = [np.ones(len(x)), np.ones(len(y))]
    value = [reference(*p, epsilon)[1]
             for p in [(x, y, *ones), (x, x, ones[0], ones[0]), (y, y, ones[1], ones[1])]]
    assert result["value"] == pytest.approx(value[0] - (value[1] + value[2]) / 2, rel=1e-6)
    assert result["p_value"] == 0.01
