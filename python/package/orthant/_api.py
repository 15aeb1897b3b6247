"""The functions of the package. All of them check their arguments in the extension module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _orthant
from ._messages import check_list, check_order
from ._orthant import (
    Barycenter,
    Comparison,
    Divergence,
    Flow,
    FreeBarycenter,
    Gradient,
    Plan,
    Solution,
    TwoSample,
)
from ._progress import Bar
from ._settings import MOVES, with_settings
from ._tables import matched

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._settings import Moves, Resumed, Settings

Cloud = Union[npt.ArrayLike, tuple[npt.ArrayLike, Optional[npt.ArrayLike]]]
By = Literal[
    "x", "y", "a", "b", "epsilon", "anchors",
    "features_x", "features_y", "log_features_x", "log_features_y",
]  # fmt: skip


def _call(function: Any, *arguments: Any, settings: dict[str, Any], **own: Any) -> Any:
    """Calls a function of the extension module, with a bar if one is wanted."""
    given = {**settings, **own}
    with Bar(bool(given.pop("progress", False))) as bar:
        return function(*arguments, {**given, "progress": bar})


def _between(
    function: Any, x: Any, y: Any, epsilon: Any, a: Any, b: Any, settings: Any, *, name: str = "", **own: Any
) -> Any:
    """The same for two clouds, whose arguments may be in the order of another library."""
    word = name or function.__name__
    check_order(word, x, y, epsilon, a, b, cost=word in ("rot", "plan"))
    return _call(function, x, y, epsilon, a, b, settings=dict(settings), **own)


@with_settings()
def rot(
    x: Optional[npt.ArrayLike],
    y: Optional[npt.ArrayLike],
    epsilon: Union[float, str, None] = None,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    **settings: Unpack[Settings],
) -> Solution:
    """Regularised optimal transport between two clouds of points.

    Parameters
    ----------
    x, y : array of shape (n, d) and (m, d)
        Points, a row each. f32 and f64 arrays in C order are used as they are; others are copied. Tables of
        pandas, polars and Arrow, and files of Parquet, will do if all columns are numbers: columns that have names
        are matched by them, in any order. Of an AnnData object ``obsm["X_pca"]`` is taken. May be None where ``cost``
        or ``features`` are matrices.
    epsilon : float or str, optional
        Regularisation, in units of the cost, the squared Euclidean distance. ``"5%"`` is that part of the mean squared
        distance of all points, of x and y together, or of the mean of a cost matrix, and the default; ``"5%std"`` that part
        of the standard deviation of the cost between points of x and points of y, as OTT chooses its epsilon. Functions
        about more clouds, and tests, take it over pairs of all points together.
    a, b : array of shape (n,) and (m,), optional
        Weights, not negative. They are divided by their sums, unless ``reach`` or ``rho`` is there. Default: equal.

    Other Parameters
    ----------------
    method : str
        ``"auto"``: the quickest for the accuracy. ``"lattice"``, ``"gaussian"`` (see ``anchors``), ``"arccos"``,
        ``"linear"``: features, in linear time. ``"dense"``, ``"online"``: exact, with the kernel stored or not.
        ``"sampled"``: samples of the clouds, solved exactly, for any cost in any number of columns, in linear time with
        an interval. ``"nystrom"``: a baseline.
    accuracy : float
        Largest error that ``"auto"``, lattices and samples may make, relative to ``value_kl``; of a divergence relative to the
        divergence, or to a hundredth of its cross term if that is more. Default: 1e-3.
    allow_exact : bool
        Whether ``"auto"`` may choose the exact kernel, which visits all pairs. Default: True.
    rank, max_rank : int, optional
        Number of random features or landmarks, or of nodes of a lattice at most; and the largest number of random
        features that ``"auto"`` may choose.
    anchors : str or array of shape (r, d), optional
        Where the anchors of Gaussian features are: ``"sobol"``, ``"adaptive"``, ``"iid"``, ``"orthogonal"``,
        ``"lattice"``, ``"paper"``, or anchors of your own.
    q : float, optional
        Of the paper's Lemma 1, for anchors of your own. Default: the paper's for the largest norm of a point.
    centred : bool
        Whether ``anchors="paper"`` is centred at the mean of the points (True) or at the origin.
    landmarks : str
        How ``"nystrom"`` chooses landmarks: ``"leverage"`` or ``"uniform"``.
    sample_size, samples : int, optional
        Points of each cloud in a sample of ``"sampled"``, and independent samples. Default: as many points as the
        accuracy needs, and 8 samples.
    order, kappa, sigma : int, float, float
        Of ``"arccos"``: the order of the arc-cosine kernel (0, 1 or 2), the constant added to it, and the standard
        deviation that its directions are drawn with.
    features : FeatureMap, a pair of them, or a pair of arrays of shape (n, r) and (m, r), optional
        Positive features. The cost is then ``-epsilon log phi(x).psi(y)``, and the default of epsilon is 1.
    cost : str, tuple, callable or array of shape (n, m), optional
        The cost of two points; default ``"sqeuclidean"``. ``"cosine"`` (``1 - x.y`` of directions), ``"dot"`` (``-x.y``) and
        ``("mahalanobis", A)`` (``(x - y)' A (x - y)``) have all methods. ``"euclidean"`` (not squared), ``"l1"``, ``"lp:3"``
        (SciPy's ``minkowski`` with that p), ``"geodesic"`` (the angle) and functions of two arrays are for the methods
        ``"auto"``, ``"dense"``, ``"online"`` and ``"sampled"``. Names are those of ``scipy.spatial.distance.cdist`` and ``ot.dist`` but for
        ``"l1"`` (``cityblock``) and ``"lp:p"`` (``minkowski``), and Mahalanobis is squared, with ``A = VI``. OTT calls them
        ``costs.Cosine``, ``NegDotProduct``, ``Euclidean`` and ``PNormP(1)``. Or any costs as a matrix, for the methods ``"dense"``
        and ``"online"``.
    gauge : bool
        Whether to solve in coordinates in which both clouds have the same mean and covariance: exact, and fewer
        iterations. Default: True.
    solver : str
        ``"auto"``, ``"anderson"``, ``"plain"`` (the paper's Algorithm 1), ``"accelerated"`` (its Algorithm 2).
    tolerance : float
        Converged is what has marginals within this L1 distance of the weights. Default: 1e-6.
    max_iterations : int
        The largest number of iterations. What has not converged by then is a result, and says so.
    time_limit : float, optional
        Seconds after which the solve ends, whatever it is doing, with what there is; if that is nothing, with a
        ``TimeoutError``. It holds within 10 % or a second.
    max_memory : float, optional
        Bytes that may be stored; what needs more is an error. Default: what is free.
    seed : int
        Of random features and samples. The same seed gives the same numbers.
    precision : ``"f32"`` or ``"f64"``
        Number format of stored features and kernels.
    threads : int, optional
        Default: all cores. Results do not depend on it. Where no thread can be started, the calling thread does the
        work.
    certify : bool
        Bound the distance from the exact kernel by samples of the plan, where there is no other bound.
    polish : bool
        Go on with the exact kernel from the potentials of features.
    reach, rho : float or pair, optional
        Unbalanced transport: the marginals may differ from the weights at a price of ``rho KL``, ``rho = 2 reach^2``.
        A pair is for x and y, with None for a marginal that is kept.
    warm_start : Solution, Divergence or Gradient, optional
        An earlier result between clouds of the same sizes, to start from.
    callback : function, optional
        Called with a ``Progress`` when a phase begins, now and then while a method is chosen, and after every iteration.
        If it returns something true, the solve ends: with what there is, or, before the first iteration, with a
        ``RuntimeError``.
    progress : bool
        Show a bar: of tqdm, or a plain line.

    Returns
    -------
    Solution
        ``value`` is the paper's ``W = <P, C> + eps sum P log P``; ``value_kl`` has the entropy relative to the product of
        the weights, as in OTT (``reg_ot_cost``) and POT (``reg_type="KL"``), and twice GeomLoss's.

    Examples
    --------
    >>> import numpy as np, orthant
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=(300, 2)), rng.normal(size=(200, 2)) + 1
    >>> solution = orthant.rot(x, y, 0.5)
    >>> solution.converged, solution.value in solution.interval
    (True, True)
    >>> solution.potential_x.shape
    (300,)
    """
    solved: Solution = _between(_orthant.rot, x, y, epsilon, a, b, settings)
    return solved


@with_settings()
def divergence(
    x: Optional[npt.ArrayLike],
    y: Optional[npt.ArrayLike],
    epsilon: Union[float, str, None] = None,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    **settings: Unpack[Settings],
) -> Divergence:
    """The Sinkhorn divergence of two clouds: zero if they are equal, positive if not.

    Takes what `rot` takes.

    Examples
    --------
    >>> import numpy as np, orthant
    >>> x = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = orthant.divergence(x, x + 3.0, 0.5, tolerance=1e-9)
    >>> round(found.value, 6)  # of a translate: the squared length of the translation
    18.0
    >>> found.cross.method, found.interval.kind
    ('dense', 'exact')
    """
    solved: Divergence = _between(_orthant.divergence, x, y, epsilon, a, b, settings)
    return solved


@with_settings(certify=False)
def plan(
    x: Optional[npt.ArrayLike],
    y: Optional[npt.ArrayLike],
    epsilon: Union[float, str, None] = None,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    **settings: Unpack[Settings],
) -> Plan:
    """The plan of regularised optimal transport: the coupling, how much mass moves from x_i to y_j, never stored.

    Takes what `rot` takes, and keeps a copy of the points.

    Examples
    --------
    >>> import numpy as np, orthant
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> y = np.array([[2.1], [0.1], [1.1]])
    >>> plan = orthant.plan(x, y, 0.01)
    >>> plan.row(0).argmax(), plan.sample(5, seed=1).shape
    (np.int64(1), (5, 2))
    >>> plan.barycentric().round(3).ravel().tolist()
    [0.1, 1.1, 2.1]
    >>> plan.barycentric([[0.4]]).shape, plan.potential([[0.4]]).shape
    ((1, 1), (1,))
    """
    solved: Plan = _between(_orthant.plan, x, y, epsilon, a, b, settings)
    return solved


@with_settings(certify=False, tolerance=1e-9)
def gradient(
    x: Optional[npt.ArrayLike],
    y: Optional[npt.ArrayLike],
    epsilon: Union[float, str, None] = None,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    *,
    by: Union[By, Sequence[By]] = "x",
    of: Literal["divergence", "value_kl", "value"] = "divergence",
    **settings: Unpack[Settings],
) -> Gradient:
    """Derivatives of the divergence, or of the value, without differentiating through any iteration.

    Parameters
    ----------
    by : str or sequence of str
        ``"x"``, ``"y"`` (points), ``"a"``, ``"b"`` (weights), ``"epsilon"``, ``"anchors"``, ``"features_x"``,
        ``"features_y"``, ``"log_features_x"``, ``"log_features_y"``: each is an attribute of the result.
    of : str
        ``"divergence"``, ``"value_kl"`` or ``"value"``.

    All else as in `rot`. Gradients are as good as the solve has converged, so the default of ``tolerance`` is 1e-9
    (1e-6 for ``precision="f32"``).

    Examples
    --------
    >>> import orthant
    >>> found = orthant.gradient([[0.0, 1.0]], [[3.0, 1.5]], 0.1, by=("x", "y"))
    >>> found.value, found.x.tolist(), found.y.tolist()  # one point each: |x - y|^2
    (9.25, [[-6.0, -1.0]], [[6.0, 1.0]])
    """
    given = dict(settings)
    if given.get("precision") in ("f32", "float32") and given.get("tolerance") == 1e-9:
        given["tolerance"] = 1e-6
    names = list(by) if isinstance(by, (list, tuple, set, frozenset)) else by
    solved: Gradient = _between(_orthant.gradient, x, y, epsilon, a, b, given, by=names, of=of)
    return solved


@with_settings(certify=False)
def map(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    epsilon: Union[float, str, None] = None,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    *,
    at: Optional[npt.ArrayLike] = None,
    back: bool = False,
    **settings: Unpack[Settings],
) -> npt.NDArray[np.float64]:
    """Where the points of x go, in the mean: the barycentric projection, or entropic map.

    With ``at``, where other points would go; with ``back``, from y to x. Of tables, coordinates are in the order of
    the columns of x. All else as in `rot`; `plan` does the same and more.

    Examples
    --------
    >>> import numpy as np, orthant
    >>> x = np.random.default_rng(0).normal(size=(50, 2))
    >>> bool(np.allclose(orthant.map(x, x + [3, 4], 0.001), x + [3, 4], atol=0.05))
    True
    """
    if at is not None:
        # Columns that do not match are found before the solve.
        (x, y, at), _, _ = matched([("x", x), ("y", y), ("at", at)])
    solved: Plan = _between(_orthant.plan, x, y, epsilon, a, b, settings, name="map")
    return solved.barycentric(at, cloud="y" if back else "x")


@with_settings(without=("warm_start",), certify=False, tolerance=None, **MOVES)
def barycenter(
    clouds: Sequence[Cloud],
    epsilon: Union[float, str, None] = None,
    weights: Optional[npt.ArrayLike] = None,
    *,
    support: Optional[npt.ArrayLike] = None,
    free: Union[int, Cloud, None] = None,
    debiased: bool = False,
    **settings: Unpack[Moves],
) -> Union[Barycenter, FreeBarycenter]:
    """What lies between clouds: weights on given points, or points that are free.

    Parameters
    ----------
    clouds : list
        Arrays of points, or pairs (points, weights). Tables are matched by the names of their columns; results are in
        the order of the first.
    weights : array, optional
        How much each cloud counts. Default: all the same.
    support : array of shape (p, d), optional
        The points whose weights are found. Default: all points of the clouds.
    free : int or cloud, optional
        Number of points that move, or where they start (with weights, if it is a pair).
    debiased : bool
        Take the divergence, which does not blur, in place of the value.

    All else as in `rot`, and of free points as in `flow`.

    Examples
    --------
    >>> import numpy as np, orthant
    >>> grid = np.linspace(0, 8, 81)[:, None]
    >>> bump = lambda at: np.exp(-2 * (grid[:, 0] - at) ** 2)
    >>> mean = orthant.barycenter([(grid, bump(2)), (grid, bump(6))], 0.1, support=grid)
    >>> round(float(mean.weights @ grid[:, 0]), 3)
    4.0
    >>> free = orthant.barycenter([grid[:20], grid[40:60]], 0.1, free=20, debiased=True)
    >>> free.points.shape
    (20, 1)
    """
    check_list("barycenter", clouds, epsilon)
    given: dict[str, Any] = dict(settings)
    if given["tolerance"] is None:
        # Details that are finer than the kernel hardly matter to the divergence, and take forever.
        given["tolerance"] = 1e-3 if debiased and free is None else 1e-6
    if free is not None:
        if support is not None:
            raise ValueError("support is for points that stay, free for points that move; give one of them")
        moved: FreeBarycenter = _call(
            _orthant.free_barycenter, clouds, epsilon, weights, free, debiased, settings=given
        )
        return moved
    fixed: Barycenter = _call(
        _orthant.barycenter, clouds, epsilon, weights, support, debiased, settings=given
    )
    return fixed


@with_settings(without=("warm_start", "features"), finished=None)
def compare(
    clouds: Sequence[Cloud],
    epsilon: Union[float, str, None] = None,
    **settings: Unpack[Resumed],
) -> Comparison:
    """The Sinkhorn divergences of all pairs of many clouds.

    Parameters
    ----------
    clouds : list
        Arrays of points, or pairs (points, weights). Tables are matched by the names of their columns.
    callback : function, optional
        Told of every pair (`Done`), and may stop the comparison by returning something true.
    finished : Comparison, optional
        An earlier comparison of the same clouds that was stopped: it goes on from there.

    All else as in `rot`.

    Examples
    --------
    >>> import numpy as np, orthant
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = orthant.compare([x, x + 5, x + 1, x + 6.5], 0.5, tolerance=1e-9)
    >>> found.matrix[0].round(3).tolist()
    [0.0, 50.0, 2.0, 84.5]
    >>> found.leaves()
    [0, 2, 1, 3]
    """
    check_list("compare", clouds, epsilon)
    solved: Comparison = _call(_orthant.compare, clouds, epsilon, settings=dict(settings))
    return solved


@with_settings(without=("warm_start",), certify=False, accuracy=1e-2)
def two_sample_test(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    epsilon: Union[float, str, None] = None,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    *,
    permutations: int = 999,
    **settings: Unpack[Settings],
) -> TwoSample:
    """Are two clouds draws from one distribution? A permutation test with the Sinkhorn divergence.

    The p-value is valid with any epsilon and any features. It compares the ``statistic``, the divergence under a kernel that
    all permutations share; ``value`` is the divergence as `divergence` has it, with its ``interval``.

    Parameters
    ----------
    permutations : int
        How many times the points are dealt anew into two clouds. The smallest p-value is ``1 / (permutations + 1)``.

    All else as in `rot`; the default of ``accuracy`` is 1e-2.

    Examples
    --------
    >>> import numpy as np, orthant
    >>> rng = np.random.default_rng(0)
    >>> test = orthant.two_sample_test(rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 1, permutations=199)
    >>> test.pvalue
    0.005
    >>> test.interval.low <= test.value <= test.interval.high
    True
    """
    tested: TwoSample = _between(
        _orthant.two_sample_test, x, y, epsilon, a, b, settings, permutations=permutations
    )
    return tested


@with_settings(without=("warm_start",), certify=False, **MOVES)
def flow(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    epsilon: Union[float, str, None] = None,
    a: Optional[npt.ArrayLike] = None,
    b: Optional[npt.ArrayLike] = None,
    **settings: Unpack[Moves],
) -> Flow:
    """Moves the points of x to y along the gradient of the divergence.

    Parameters
    ----------
    step, momentum : float
        Size of a step, 1 for where the gradient leads; and the part of the last step that is added to the next.
    max_steps : int
        The largest number of steps.
    until, still : float
        End when the divergence, or the gradient, is at most this part of the first one.
    each : function, optional
        Called with a ``Step`` (``points``, ``value``, ...) before the first step and after every step; if it returns
        something true, the flow ends.

    All else as in `rot`.

    Examples
    --------
    >>> import orthant
    >>> found = orthant.flow([[0.2], [0.3], [0.9]], [[0.0], [1.0], [2.0]], 0.1, tolerance=1e-9)
    >>> found.points.round(1).ravel().tolist()
    [0.0, 1.0, 2.0]
    """
    moved: Flow = _between(_orthant.flow, x, y, epsilon, a, b, settings)
    return moved
