"""Optimal transport in linear time, with an error bound.

>>> import numpy as np, orthant
>>> rng = np.random.default_rng(0)
>>> x, y = rng.normal(size=(1000, 2)), rng.normal(size=(800, 2)) + 1
>>> found = orthant.divergence(x, y)
>>> found.converged, found.value in found.interval
(True, True)

Conventions: the cost is ``|x - y|^2``, without a half.

=====================  =======================================  ====================================================
attribute              formula                                  elsewhere
=====================  =======================================  ====================================================
``value``              ``<P, C> + eps sum P log P``             the paper
``value_kl``           ``value + eps (H(a) + H(b))``            OTT ``reg_ot_cost``; POT ``reg_type="KL"``; twice
                                                                GeomLoss (p = 2) at ``blur**2 = eps / 2``
``transport_cost``     ``<P, C>``                               POT ``value_linear``
``plan_concentration`` ``KL(P | a b^T) / log min(n, m)``        0: independent points, 1: a permutation
``potentials``         ``eps log u, eps log v``                 OTT; ``eps`` times POT's
``potentials_kl``      the same less ``eps log a, eps log b``   twice GeomLoss
``Divergence.value``   ``W(x,y) - (W(x,x) + W(y,y)) / 2``       OTT; twice GeomLoss
=====================  =======================================  ====================================================
"""

import typing as _typing

from . import pot
from ._api import (
    barycenter,
    compare,
    divergence,
    flow,
    gradient,
    map,
    plan,
    rot,
    two_sample_test,
)
from ._errors import BreakdownError
from ._estimator import OptimalTransportMap
from ._orthant import (
    Barycenter,
    Comparison,
    Divergence,
    Done,
    FeatureMap,
    Flow,
    FreeBarycenter,
    Gradient,
    Interval,
    Pair,
    Plan,
    Progress,
    Solution,
    Step,
    TwoSample,
    __version__,
)

__all__ = [
    "Barycenter",
    "BreakdownError",
    "Comparison",
    "Divergence",
    "Done",
    "FeatureMap",
    "Flow",
    "FreeBarycenter",
    "Gradient",
    "Interval",
    "OptimalTransportMap",
    "Pair",
    "Plan",
    "Progress",
    "Solution",
    "Step",
    "TwoSample",
    "__version__",
    "barycenter",
    "compare",
    "divergence",
    "flow",
    "gradient",
    "map",
    "plan",
    "pot",
    "rot",
    "two_sample_test",
]

if not _typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        # Only for those who have it, and who ask for it.
        if name == "torch":
            import importlib

            return importlib.import_module(".torch", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    import importlib.util

    return sorted([*__all__, *(["torch"] if importlib.util.find_spec("torch") else [])])
