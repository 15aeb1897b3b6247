"""The names and conventions of POT (``import ot``), on clouds of points.

POT's solvers take a cost matrix, or points with ``solve_sample``. Here it is always points, and no matrix of size
n x m is ever stored.

>>> import numpy as np, orthant.pot
>>> rng = np.random.default_rng(0)
>>> X, Y = rng.normal(size=(40, 2)), rng.normal(size=(30, 2)) + 1
>>> result = orthant.pot.solve_sample(X, Y, reg=0.5)
>>> result.status, result.lazy_plan[:5].shape, result.a_to_b.shape
('converged', (5, 30), (40, 2))
>>> bool(np.isclose(orthant.pot.sinkhorn2(None, None, X, Y, 0.5), result.value_linear))
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._api import divergence, plan
from ._orthant import Divergence, Plan, Solution
from ._tables import matched

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Settings

__all__ = ["LazyPlan", "OTResult", "empirical_sinkhorn_divergence", "sinkhorn", "sinkhorn2", "solve_sample"]

Array = npt.NDArray[np.float64]
Index = Union[int, slice]


class LazyPlan:
    """A plan whose parts are computed when they are asked for: ``lazy[i, j]``, ``lazy[:10]``, ``lazy[:, 3]``."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @property
    def shape(self) -> tuple[int, int]:
        """Points of the first cloud by points of the second."""
        return self._plan.shape

    def __getitem__(self, key: Union[Index, tuple[Index, Index]]) -> Any:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(rows, int):
            return self._plan.row(rows)[columns]
        if isinstance(columns, int):
            return self._plan.column(columns)[rows]
        if rows == slice(None):
            return self._plan.to_dense()[:, columns]
        chosen = range(*rows.indices(self.shape[0]))
        parts = [self._plan.row(i)[columns] for i in chosen]
        width = len(range(*columns.indices(self.shape[1])))
        return np.stack(parts) if parts else np.empty((0, width))

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> npt.NDArray[Any]:
        return self._plan.__array__(dtype, copy)

    def __repr__(self) -> str:
        return f"LazyPlan(shape={self.shape})"


class OTResult:
    """What ``ot.solve_sample`` returns, by its names.

    ``value`` has the entropy relative to the product of the weights (``reg_type="KL"``); `solution` and `orthant_plan`
    are the objects behind it.
    """

    def __init__(self, plan: Plan, X_a: Any, X_b: Any) -> None:
        self.orthant_plan = plan
        self._points = (X_a, X_b)

    @property
    def solution(self) -> Solution:
        """The solution behind it, with its interval and its potentials."""
        return self.orthant_plan.solution

    @property
    def value(self) -> float:
        """The regularised value, with the entropy relative to the product of the weights."""
        return self.solution.value_kl

    @property
    def value_linear(self) -> float:
        """``<P, C>``."""
        return self.orthant_plan.transport_cost()

    @property
    def potentials(self) -> tuple[Array, Array]:
        """``log u`` and ``log v``, as POT has them; ``plan = exp(log u + log v - C / reg)``."""
        u, v = self.solution.potentials
        return u / self.solution.epsilon, v / self.solution.epsilon

    @property
    def potential_a(self) -> Array:
        """``log u``."""
        return self.potentials[0]

    @property
    def potential_b(self) -> Array:
        """``log v``."""
        return self.potentials[1]

    @property
    def plan(self) -> Array:
        """All entries, stored: refused if they are too many."""
        return self.orthant_plan.to_dense()

    @property
    def lazy_plan(self) -> LazyPlan:
        """The plan, whose parts are computed when they are asked for."""
        return LazyPlan(self.orthant_plan)

    @property
    def marginals(self) -> tuple[Array, Array]:
        """The sums of the rows and of the columns."""
        return self.orthant_plan.marginals()

    @property
    def marginal_a(self) -> Array:
        """The sums of the rows."""
        return self.marginals[0]

    @property
    def marginal_b(self) -> Array:
        """The sums of the columns."""
        return self.marginals[1]

    @property
    def a_to_b(self) -> Array:
        """Displacements: from the points of the first cloud to where they go, in the mean."""
        moved: Array = self.orthant_plan.barycentric() - np.asarray(self._points[0])
        return moved

    @property
    def b_to_a(self) -> Array:
        """The same from the second cloud to the first."""
        moved: Array = self.orthant_plan.barycentric(cloud="y") - np.asarray(self._points[1])
        return moved

    @property
    def status(self) -> str:
        """converged, iteration_limit, time_limit or requested."""
        return self.solution.stop

    @property
    def log(self) -> dict[str, Any]:
        """Iterations, marginal errors, method and interval."""
        s = self.solution
        return {"niter": s.iterations, "err": s.marginal_errors, "method": s.method, "interval": s.interval}

    def __repr__(self) -> str:
        return f"OTResult(value={self.value}, status={self.status!r}, lazy_plan=LazyPlan{self.lazy_plan.shape})"


def solve_sample(
    X_a: npt.ArrayLike,
    X_b: npt.ArrayLike,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    metric: str = "sqeuclidean",
    *,
    reg: Optional[float] = None,
    unbalanced: Union[float, tuple[float, float], None] = None,
    max_iter: int = 10_000,
    tol: float = 1e-9,
    **settings: Unpack[Settings],
) -> OTResult:
    """As ``ot.solve_sample(..., reg_type="KL", unbalanced_type="kl", lazy=True)``.

    `settings` are those of `orthant.rot`.
    """
    if metric != "sqeuclidean":
        raise ValueError(f"metric must be 'sqeuclidean', got {metric!r}; for others there is orthant.rot(cost=...)")
    given: dict[str, Any] = {"tolerance": tol, "max_iterations": max_iter, **settings}
    if unbalanced is not None:
        given["rho"] = unbalanced
    # Columns of tables in one order: displacements are differences.
    (X_a, X_b), _, _ = matched([("X_a", X_a), ("X_b", X_b)])
    return OTResult(plan(X_a, X_b, reg, a, b, **given), X_a, X_b)


def sinkhorn(
    a: Optional[npt.ArrayLike],
    b: Optional[npt.ArrayLike],
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    reg: float,
    *,
    numItermax: int = 10_000,
    stopThr: float = 1e-9,
    **settings: Unpack[Settings],
) -> OTResult:
    """As ``ot.sinkhorn(a, b, ot.dist(X, Y), reg)``, with a result whose plan is not stored."""
    return solve_sample(X, Y, a, b, reg=reg, max_iter=numItermax, tol=stopThr, **settings)


def sinkhorn2(
    a: Optional[npt.ArrayLike],
    b: Optional[npt.ArrayLike],
    X: npt.ArrayLike,
    Y: npt.ArrayLike,
    reg: float,
    *,
    numItermax: int = 10_000,
    stopThr: float = 1e-9,
    log: bool = False,
    **settings: Unpack[Settings],
) -> Any:
    """As ``ot.sinkhorn2(a, b, ot.dist(X, Y), reg)``: ``<P, C>``, with `log` also an `OTResult`."""
    result = sinkhorn(a, b, X, Y, reg, numItermax=numItermax, stopThr=stopThr, **settings)
    return (result.value_linear, result) if log else result.value_linear


def empirical_sinkhorn_divergence(
    X_s: npt.ArrayLike,
    X_t: npt.ArrayLike,
    reg: float,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    metric: str = "sqeuclidean",
    numIterMax: int = 10_000,
    stopThr: float = 1e-9,
    log: bool = False,
    **settings: Unpack[Settings],
) -> Any:
    """As ``ot.bregman.empirical_sinkhorn_divergence``, with the entropies that POT leaves out.

    POT takes ``<P, C>`` of the three plans, which may be negative and is cut off at zero; this is the
    divergence of the values.
    """
    if metric != "sqeuclidean":
        raise ValueError(f"metric must be 'sqeuclidean', got {metric!r}")
    given: dict[str, Any] = {"tolerance": stopThr, "max_iterations": numIterMax, **settings}
    found: Divergence = divergence(X_s, X_t, reg, a, b, **given)
    return (found.value, found) if log else found.value
