"""What is wrong with the arguments of a call, and what to write in their place."""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import Any, Callable, Iterable, Optional, TypeVar

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def shown(value: Any) -> str:
    """A value in an error message: numbers and words as they are, arrays and other large things by their size."""
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not isinstance(value, np.generic):
        sizes = tuple(int(n) for n in shape)
        return f"an array of shape {sizes}" if kind == "ndarray" else f"a {kind} of shape {sizes}"
    if isinstance(value, (list, tuple, set, frozenset, dict)) and len(value) > 4:
        return f"a {kind} of {len(value)}"
    if isinstance(value, (str, bytes)) and len(value) > 60:
        return f"{value[:50]!r}..."
    text = repr(value)
    return text if len(text) <= 80 and "\n" not in text else f"a {kind}"


_MATRIX = "a matrix of costs, with x and y None"
# Their cost is a function of two points.
_WITHOUT_MATRICES = ("compare",)

# Names that other libraries have for a setting: the name here, and how the numbers compare.
FOREIGN: dict[str, tuple[str, str]] = {
    "reg": ("epsilon", "the same number for costs |x - y|^2"),
    "rege": ("epsilon", "the same number for costs |x - y|^2"),
    "eps": ("epsilon", ""),
    "regularization": ("epsilon", ""),
    "blur": ("epsilon", "epsilon = 2 * blur**2, and values are twice those of GeomLoss"),
    "maxiter": ("max_iterations", ""),
    "maxiters": ("max_iterations", ""),
    "numitermax": ("max_iterations", ""),
    "niter": ("max_iterations", ""),
    "iterations": ("max_iterations", ""),
    "tol": ("tolerance", "the L1 error of the marginals"),
    "stopthr": ("tolerance", "the L1 error of the marginals"),
    "threshold": ("tolerance", "the L1 error of the marginals"),
    "m": ("cost", _MATRIX),
    "c": ("cost", _MATRIX),
    "costmatrix": ("cost", _MATRIX),
    "metric": ("cost", "|x - y|^2 if it is not given; 'euclidean', 'cosine' and others have names"),
    "costfn": ("cost", "|x - y|^2 if it is not given; others have names, or are functions of two points"),
    "p": ("cost", "|x - y|^2, p = 2 without a half, if it is not given; p = 1 is cost='euclidean'"),
    "njobs": ("threads", "None for all cores"),
    "numthreads": ("threads", "None for all cores"),
    "nthreads": ("threads", "None for all cores"),
    "randomstate": ("seed", "an integer"),
    "rng": ("seed", "an integer"),
    "verbose": ("progress", "True shows a bar"),
    "unbalanced": ("rho", "the same number"),
    "regm": ("rho", "the same number"),
    "taua": ("rho", "rho = epsilon * tau / (1 - tau), a pair for two different ones"),
    "taub": ("rho", "rho = epsilon * tau / (1 - tau), a pair for two different ones"),
    "backend": ("method", ""),
    "algorithm": ("solver", ""),
    "dtype": ("precision", "'f32' or 'f64'"),
    "timeout": ("time_limit", "in seconds"),
    "maxtime": ("time_limit", "in seconds"),
    "memory": ("max_memory", "in bytes"),
    "memorylimit": ("max_memory", "in bytes"),
    "ncomponents": ("rank", "a number of features"),
    "nfeatures": ("rank", "a number of features"),
    "numfeatures": ("rank", "a number of features"),
    "warmstart": ("warm_start", "an earlier result"),
    "init": ("warm_start", "an earlier result"),
    "npermutations": ("permutations", ""),
    "numpermutations": ("permutations", ""),
    "nresamples": ("permutations", ""),
    "lr": ("step", "1 leads where the gradient does"),
    "learningrate": ("step", "1 leads where the gradient does"),
    "nsteps": ("max_steps", ""),
    "xa": ("x", "points"),
    "xs": ("x", "points"),
    "xb": ("y", "points"),
    "xt": ("y", "points"),
    "ys": ("y", "points"),
    "sampleweight": ("a", "weights of the points of x"),
    "targetweight": ("b", "weights of the points of y"),
    "xweights": ("a", "weights of the points of x"),
    "yweights": ("b", "weights of the points of y"),
}  # fmt: skip


def unknown(function: str, name: str, known: Iterable[str]) -> TypeError:
    """The exception for a keyword argument that a function does not have."""
    known = list(known)
    plain = name.replace("_", "").lower()
    ours, remark = FOREIGN.get(plain, ("", ""))
    close = [k for k in known if k.replace("_", "").lower() == plain] or difflib.get_close_matches(name, known, n=1)
    if ours in known and not (remark == _MATRIX and function in _WITHOUT_MATRICES):
        hint = f"; here it is {ours}{f': {remark}' if remark else ''}"
    else:
        hint = f"; did you mean {close[0]}?" if close else ""
    return TypeError(f"{function}() got an unexpected keyword argument '{name}'{hint}")


def hinted(function: Function) -> Function:
    """The same constructor, which says what is meant by a keyword argument that it does not have."""
    known = [p for p in inspect.signature(function).parameters if p != "self"]
    owner = function.__qualname__.partition(".")[0]

    @functools.wraps(function)
    def called(*arguments: Any, **given: Any) -> Any:
        for name in given:
            if name not in known:
                raise unknown(owner, name, known)
        return function(*arguments, **given)

    return called  # type: ignore[return-value]


def _axes(value: Any) -> Optional[int]:
    """How many axes an argument has, as far as that can be seen without converting it."""
    if isinstance(value, (bool, str, bytes)):
        return None
    if isinstance(value, (int, float, np.number)):
        return 0
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and not hasattr(value, "obsm"):
        return len(shape)
    if isinstance(value, (list, tuple)):
        inner = _axes(value[0]) if value else 0
        return None if inner is None else inner + 1
    return None


_WORDS = {0: "a number", 1: "a vector", 2: "a matrix"}
_ORDERS = {
    (2, 2, 1): "ot.solve_sample(X, Y, a, b)",
    (1, 2, 1, 2): "loss(a, x, b, y) of GeomLoss",
    (1, 1, 2, 2): "orthant.pot.sinkhorn(a, b, X, Y, reg)",
    (1, 1, 2, 0): "ot.sinkhorn(a, b, M, reg)",
    (2, 1, 2, 1): "(x, a, y, b)",
}


def check_order(function: str, x: Any, y: Any, epsilon: Any, a: Any, b: Any, cost: bool) -> None:
    """Refuses arguments that are in the order of another library, and says what to write.

    Points are matrices, weights vectors, epsilon is a number. What is none of these is checked elsewhere. `cost` says
    whether the function takes a matrix of costs.
    """
    axes = [None if value is None else _axes(value) for value in (x, y, epsilon, a, b)]
    if all(n is None or n == right for n, right in zip(axes, (2, 2, 0, 1, 1))):
        return
    while axes and axes[-1] is None:
        axes.pop()
    ours = f"{function}(x, y, epsilon, a, b)"
    whose = next((name for order, name in _ORDERS.items() if tuple(axes[: len(order)]) == order), None)
    counts = [axes.count(k) for k in range(3)]
    got = ", ".join("None" if n is None else _WORDS.get(n, f"an array of {n} axes") for n in axes)
    order = f"the order is {ours}, and the arguments are {got}"
    if whose is not None:
        order += f", the order of {whose}"
    matrix = axes.index(2) if counts[2] == 1 else None
    if matrix == 2 and axes[:2] == [1, 1]:
        with_cost = f"{function}(None, None, reg, a, b, cost=M), or with points " if cost else "with points "
        raise TypeError(f"{order}: write {with_cost}{function}(X, Y, reg, a, b)")
    if counts[2] == 2 and 1 <= counts[1] <= 2 and axes[2] != 0:
        chosen = f", or {function}(x, y, a=a, b=b) for an epsilon that is chosen from the data" if 0 not in axes else ""
        raise TypeError(f"{order}: write {ours}{chosen}")
    if axes[:2] == [2, 2] and len(axes) > 3 and axes[3] == 0 and axes[2] is None:
        raise TypeError(f"a is {shown(a)}, and weights are needed, one for every point: write {function}(x, y, {shown(a)}) "
                        "if it is epsilon")  # fmt: skip


def check_list(function: str, clouds: Any, epsilon: Any) -> None:
    """Refuses two clouds one after the other where a list of clouds is needed."""
    if _axes(clouds) == 2 and _axes(epsilon) == 2 and not isinstance(clouds, (list, tuple)):
        raise TypeError(f"{function}() takes a list of clouds: write {function}([x, y], epsilon)")
