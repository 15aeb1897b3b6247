"""A map as an estimator of scikit-learn, without needing it."""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from ._api import plan
from ._messages import hinted
from ._orthant import Plan


class OptimalTransportMap:
    """The entropic map from one cloud to another, as an estimator with ``fit`` and ``transform``.

    Parameters
    ----------
    epsilon : float or str, optional
        Regularisation. Default: 0.05 times the mean squared distance of all points.
    method, accuracy, rank, tolerance, seed, reach
        As in `orthant.rot`.

    Attributes
    ----------
    plan_ : Plan
        The coupling: how much mass moves from each point to each other.
    n_features_in_ : int
        Number of coordinates.
    feature_names_in_ : array of str
        Names of the columns of X, if it is a table that has some. Tables are matched by these names in any order, Y
        and whatever is transformed; results are in the order of X.

    Examples
    --------
    >>> import numpy as np
    >>> from orthant import OptimalTransportMap
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> moved = OptimalTransportMap(epsilon=0.01).fit(X, X + 3).transform(X[:5])
    >>> bool(np.allclose(moved, X[:5] + 3, atol=0.1))
    True
    """

    @hinted
    def __init__(
        self,
        epsilon: Union[float, str, None] = None,
        *,
        method: Any = "auto",
        accuracy: Optional[float] = None,
        rank: Optional[int] = None,
        tolerance: float = 1e-6,
        seed: int = 0,
        reach: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.method = method
        self.accuracy = accuracy
        self.rank = rank
        self.tolerance = tolerance
        self.seed = seed
        self.reach = reach

    _names = ("epsilon", "method", "accuracy", "rank", "tolerance", "seed", "reach")
    plan_: Plan
    n_features_in_: int
    feature_names_in_: npt.NDArray[np.object_]

    def fit(
        self,
        X: npt.ArrayLike,
        Y: Optional[npt.ArrayLike] = None,
        sample_weight: Optional[npt.ArrayLike] = None,
        target_weight: Optional[npt.ArrayLike] = None,
    ) -> OptimalTransportMap:
        """Finds the plan between the points of X and those of Y."""
        if Y is None:
            raise ValueError("fit(X, Y) needs Y, the points to move to")
        settings: dict[str, Any] = {name: getattr(self, name) for name in self._names if name != "epsilon"}
        self.plan_ = plan(X, Y, self.epsilon, sample_weight, target_weight, **settings)
        self.n_features_in_ = self.plan_.dim
        if self.plan_.columns is not None:
            self.feature_names_in_ = np.asarray(self.plan_.columns, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names of the coordinates that points move in: those of the tables, or else x0, x1, ..."""
        self._fitted()
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            return np.asarray(names, dtype=object)
        given = [f"x{k}" for k in range(self.n_features_in_)] if input_features is None else list(input_features)
        return np.asarray(given, dtype=object)

    def transform(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Where points go, those of the first cloud or any other."""
        return self._fitted().barycentric(X)

    def inverse_transform(self, Y: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Where points of the second cloud come from."""
        return self._fitted().barycentric(Y, cloud="y")

    def fit_transform(
        self, X: npt.ArrayLike, Y: Optional[npt.ArrayLike] = None, **weights: Any
    ) -> npt.NDArray[np.float64]:
        """Both, for the points of X."""
        return self.fit(X, Y, **weights).plan_.barycentric()

    def _fitted(self) -> Plan:
        if not hasattr(self, "plan_"):
            raise _not_fitted("this OptimalTransportMap is not fitted yet; call fit(X, Y) first")
        return self.plan_

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self._names}

    def set_params(self, **params: Any) -> OptimalTransportMap:
        """Changes parameters by name."""
        for name, value in params.items():
            if name not in self._names:
                raise ValueError(f"OptimalTransportMap has no parameter {name!r}; it has {', '.join(self._names)}")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "plan_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, two_d_labels=True),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(),
        )

    def __repr__(self) -> str:
        default = OptimalTransportMap()
        shown = [
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if value is not getattr(default, name) and value != getattr(default, name)
        ]
        return f"OptimalTransportMap({', '.join(shown)})"


def _not_fitted(message: str) -> Exception:
    """scikit-learn's own exception if it is there."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return ValueError(message)
    error: Exception = NotFittedError(message)
    return error
