"""Keyword arguments that all functions take: their names, types and defaults."""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Literal, Optional, TypedDict, TypeVar, Union

import numpy as np
import numpy.typing as npt

from ._messages import shown, unknown
from ._orthant import Comparison, Divergence, Done, FeatureMap, Gradient, Progress, Solution, Step

Method = Literal["auto", "gaussian", "lattice", "arccos", "linear", "dense", "online", "nystrom", "sampled"]
Anchors = Literal["sobol", "adaptive", "iid", "orthogonal", "lattice", "paper"]
Solver = Literal["auto", "plain", "anderson", "accelerated"]
Precision = Literal["f32", "f64"]
Relaxed = Union[float, tuple[Optional[float], Optional[float]]]
Features = Union[FeatureMap, tuple[FeatureMap, FeatureMap], tuple[npt.ArrayLike, npt.ArrayLike]]
Cost = Union[str, tuple[str, npt.ArrayLike], Callable[[Any, Any], float]]
Warm = Union[Solution, Divergence, Gradient]


class Settings(TypedDict, total=False):
    """What every solve can be told."""

    method: Method
    accuracy: Optional[float]
    rank: Optional[int]
    anchors: Union[Anchors, npt.ArrayLike, None]
    features: Optional[Features]
    cost: Union[Cost, npt.ArrayLike, None]
    solver: Solver
    tolerance: float
    max_iterations: int
    time_limit: Optional[float]
    max_memory: Optional[float]
    max_rank: Optional[int]
    seed: int
    precision: Precision
    threads: Optional[int]
    certify: bool
    polish: bool
    gauge: bool
    allow_exact: bool
    reach: Optional[Relaxed]
    rho: Optional[Relaxed]
    q: Optional[float]
    centred: bool
    landmarks: Literal["leverage", "uniform"]
    sample_size: Optional[int]
    samples: Optional[int]
    order: int
    kappa: float
    sigma: float
    warm_start: Optional[Warm]
    callback: Optional[Callable[[Any], Any]]
    progress: bool


class Moves(Settings, total=False):
    """The same, for points that move."""

    step: float
    momentum: float
    max_steps: int
    until: float
    still: float
    each: Optional[Callable[[Step], Any]]


class Resumed(Settings, total=False):
    """The same, for a comparison that may go on from an earlier one."""

    finished: Optional[Comparison]


DEFAULTS: dict[str, Any] = {
    "method": "auto",
    "accuracy": 1e-3,
    "rank": None,
    "anchors": None,
    "features": None,
    "cost": None,
    "solver": "auto",
    "tolerance": 1e-6,
    "max_iterations": 10_000,
    "time_limit": None,
    "max_memory": None,
    "max_rank": None,
    "seed": 0,
    "precision": "f64",
    "threads": None,
    "certify": True,
    "polish": False,
    "gauge": True,
    "allow_exact": True,
    "reach": None,
    "rho": None,
    "q": None,
    "centred": True,
    "landmarks": "leverage",
    "sample_size": None,
    "samples": None,
    "order": 1,
    "kappa": 0.1,
    "sigma": 1.5,
    "warm_start": None,
    "callback": None,
    "progress": False,
}

MOVES: dict[str, Any] = {
    "step": 1.0,
    "momentum": 0.5,
    "max_steps": 100,
    "until": 0.0,
    "still": 1e-3,
    "each": None,
}

Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["Anchors", "Done", "Method", "Moves", "Precision", "Progress", "Resumed", "Settings", "Solver"]


def with_settings(
    without: tuple[str, ...] = (), **more: Any
) -> Callable[[Function], Function]:
    """Fills in defaults, refuses names that nobody knows, and shows all of them in the signature.

    Settings in `without` mean nothing to the function; `more` has other defaults, or settings of its own.
    """

    def decorate(function: Function) -> Function:
        known = {k: v for k, v in {**DEFAULTS, **more}.items() if k not in without}
        signature = inspect.signature(function)
        plain = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        own = {p.name for p in plain}
        extra = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in known.items()
            if name not in own
        ]

        @functools.wraps(function)
        def called(*arguments: Any, **given: Any) -> Any:
            for name in given:
                if name not in known and name not in own:
                    raise unknown(function.__name__, name, [*known, *own])
            if not isinstance(given.get("progress", False), (bool, np.bool_)):
                raise TypeError(f"progress must be True or False, got {shown(given['progress'])}")
            return function(*arguments, **{**{k: v for k, v in known.items() if k not in own}, **given})

        called.__signature__ = signature.replace(parameters=[*plain, *extra])  # type: ignore[attr-defined]
        return called  # type: ignore[return-value]

    return decorate
