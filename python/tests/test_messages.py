"""Arguments as other libraries have them, and mistakes: one line that says what to write."""

import inspect

import numpy as np
import pytest

import orthant
from orthant import _settings

X, Y = np.random.default_rng(0).normal(size=(6, 2)), np.random.default_rng(1).normal(size=(5, 2))
A, B = np.full(6, 1 / 6), np.full(5, 1 / 5)
COST = ((X[:, None] - Y) ** 2).sum(axis=2)
OF_TWO = ["rot", "divergence", "plan", "gradient", "map", "flow", "two_sample_test"]


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize(
    ("order", "arguments"),
    [
        (r"ot.solve_sample\(X, Y, a, b\)", (X, Y, A, B)),
        (r"ot.solve_sample\(X, Y, a, b\)", (X, Y, A, B, 0.5)),
        (r"ot.solve_sample\(X, Y, a, b\)", (X.tolist(), Y.tolist(), A.tolist())),
        (r"loss\(a, x, b, y\) of GeomLoss", (A, X, B, Y)),
        (r"orthant.pot.sinkhorn\(a, b, X, Y, reg\)", (A, B, X, Y, 0.5)),
        (r"\(x, a, y, b\)", (X, A, Y, B)),
    ],
)
def test_points_and_weights_in_another_order(name, order, arguments):
    with pytest.raises(TypeError, match=rf"the order is {name}\(x, y, epsilon, a, b\).*{order}.*write {name}\(x, y, "):
        getattr(orthant, name)(*arguments)


def test_a_cost_matrix_in_the_order_of_pot():
    with pytest.raises(TypeError, match=r"ot.sinkhorn\(a, b, M, reg\): write rot\(None, None, reg, a, b, cost=M\)") as error:
        orthant.rot(A, B, COST, 0.5)
    assert "\n" not in str(error.value)
    # What it says is right.
    found = orthant.rot(None, None, 0.5, A, B, cost=COST)
    assert found.value == pytest.approx(orthant.rot(X, Y, 0.5, A, B).value, rel=1e-6)
    with pytest.raises(TypeError, match=r"write with points divergence\(X, Y, reg, a, b\)"):
        orthant.divergence(A, B, COST, 0.5)


def test_epsilon_and_weights_that_are_something_else():
    with pytest.raises(TypeError, match="epsilon must be a number, got 'small'"):
        orthant.rot(X, Y, "small")
    with pytest.raises(TypeError, match="epsilon must be a number, got an array of shape"):
        orthant.rot(X, Y, X)
    with pytest.raises(TypeError, match=r"weights are needed.*write rot\(x, y, 0.5\)"):
        orthant.rot(X, Y, None, 0.5)
    with pytest.raises(ValueError, match=r"b is a single number, and a vector is needed"):
        orthant.rot(X, Y, 0.5, None, 3.0)
    for function in (orthant.compare, orthant.barycenter):
        with pytest.raises(TypeError, match=rf"write {function.__name__}\(\[x, y\], epsilon\)"):
            function(X, Y)


FOREIGN = [
    ("reg", "epsilon"), ("reg_e", "epsilon"), ("eps", "epsilon"), ("blur", r"epsilon: epsilon = 2 \* blur\*\*2"),
    ("max_iter", "max_iterations"), ("numItermax", "max_iterations"), ("numIterMax", "max_iterations"),
    ("stopThr", "tolerance"), ("tol", "tolerance"), ("threshold", "tolerance"), ("M", "cost"), ("metric", "cost"),
    ("p", "cost"), ("n_jobs", "threads"), ("random_state", "seed"), ("verbose", "progress"), ("unbalanced", "rho"),
    ("reg_m", "rho"), ("tau_a", "rho: rho = epsilon"), ("dtype", "precision"), ("timeout", "time_limit"),
    ("backend", "method"), ("n_components", "rank"), ("warmstart", "warm_start"),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), FOREIGN)
def test_keywords_of_other_libraries(theirs, ours):
    with pytest.raises(TypeError, match=rf"unexpected keyword argument '{theirs}'; here it is {ours}"):
        orthant.rot(X, Y, **{theirs: 1})


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: orthant.rot(X, Y, epsilom=1), "did you mean epsilon"),
        (lambda: orthant.rot(X, Y, maxiterations=1), "did you mean max_iterations"),
        (lambda: orthant.two_sample_test(X, Y, n_permutations=9), "here it is permutations"),
        (lambda: orthant.flow(X, Y, lr=0.1), "here it is step"),
        (lambda: orthant.compare([X, Y], reg=1), "here it is epsilon"),
        (lambda: orthant.OptimalTransportMap(reg=0.1), r"OptimalTransportMap\(\) got .*'reg'; here it is epsilon"),
        (lambda: orthant.OptimalTransportMap(metod="auto"), "did you mean method"),
        (lambda: orthant.pot.solve_sample(X, Y, reg=0.5, random_state=1), "here it is seed"),
    ],
)
def test_hints_of_other_functions(call, hint):
    with pytest.raises(TypeError, match=hint):
        call()


def test_a_hint_is_an_argument_that_the_function_has():
    from orthant._messages import FOREIGN as TABLE

    known = set(_settings.DEFAULTS) | set(_settings.MOVES) | {"permutations"}
    known |= set(inspect.signature(orthant.rot).parameters)
    assert {ours for ours, _ in TABLE.values()} <= known
    with pytest.raises(TypeError) as error:
        orthant.compare([X, Y], M=COST)
    assert "cost" not in str(error.value)


@pytest.mark.parametrize("name", [n for n in _settings.DEFAULTS if n not in ("anchors", "cost")])
@pytest.mark.parametrize("value", [np.full((50, 50), 0.123), [0.123] * 400, "0.123 " * 100, {"key": [0.123] * 400}])
def test_no_array_is_printed_into_an_error(name, value):
    with pytest.raises((TypeError, ValueError)) as error:
        orthant.rot(X, Y, 0.5, **{name: value})
    message = str(error.value)
    assert name in message and "\n" not in message and len(message) < 300
    assert message.count("0.123") < 12


@pytest.mark.parametrize("place", [0, 1, 2, 3, 4])
def test_no_array_is_printed_whatever_it_is_given_for(place):
    arguments = [X, Y, 0.5, A, B]
    arguments[place] = np.full((7, 8, 9), 0.123)
    with pytest.raises((TypeError, ValueError)) as error:
        orthant.rot(*arguments)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300 and "0.123" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reach": -1}, "^reach must be positive, or None for a marginal that is kept; got -1$"),
        ({"reach": 0.0}, "^reach must be positive"),
        ({"reach": (1.0, -2.0)}, "^reach must be positive.*got -2$"),
        ({"reach": np.nan}, "^reach must be positive.*NaN"),
        ({"rho": -1}, "^rho must be positive"),
        ({"rho": (None, 0)}, "^rho must be positive.*got 0$"),
    ],
)
def test_reach_speaks_of_reach(settings, message):
    with pytest.raises(ValueError, match=message):
        orthant.rot(X, Y, 0.5, **settings)
