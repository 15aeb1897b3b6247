"""The extension module: results, plans and feature maps; and the functions behind those of the package."""

from typing import Any, Callable, Iterator, Literal, Optional, Sequence, Union, final

import numpy as np
import numpy.typing as npt

__all__ = [
    "Barycenter",
    "Comparison",
    "Divergence",
    "Done",
    "FeatureMap",
    "Flow",
    "FreeBarycenter",
    "Gradient",
    "Interval",
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
    "free_barycenter",
    "gradient",
    "paper_q",
    "plan",
    "rot",
    "two_sample_test",
    "_checked",
    "_restored",
]

__version__: str

_Vector = npt.NDArray[np.float64]
_Matrix = npt.NDArray[np.float64]
_Integers = npt.NDArray[np.int64]
_Side = Literal["x", "y"]

@final
class Interval:
    """Where a value is."""

    @property
    def low(self) -> float:
        """Lower end."""
    @property
    def high(self) -> float:
        """Upper end."""
    @property
    def width(self) -> float:
        """Distance of the ends."""
    @property
    def kind(self) -> str:
        """How it is known: `exact` (the kernel is exact, and only the iterations count), `bound` (a proven bound), or
        `sampled` (samples of the plan, with three standard errors).
        """
    def __contains__(self, value: float, /) -> bool: ...
    def __iter__(self) -> Iterator[float]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...

@final
class Solution:
    """Regularised optimal transport between two clouds."""

    @property
    def value(self) -> float:
        """`<P, C> + eps sum P log P`, the paper's regularised value, as its dual value."""
    @property
    def value_kl(self) -> float:
        """`value + eps (H(a) + H(b))`: the value with the entropy relative to the product of the weights, as in OTT and
        POT, and twice that of `GeomLoss`.
        """
    @property
    def transport_cost(self) -> Optional[float]:
        """`<P, C>`; `None` where features define the cost and all pairs would be too many."""
    @property
    def plan_concentration(self) -> Optional[float]:
        """`KL(P | a b^T) / log min(n, m)`: how far the plan is from that of independent points, which has 0, and how near to
        a permutation, which has 1. `None` where the transport cost is not known, or a cloud has a single point.
        """
    @property
    def interval(self) -> Optional[Interval]:
        """Where the `value` of the exact kernel is, if that is known; `None` for unbalanced problems."""
    @property
    def interval_kl(self) -> Optional[Interval]:
        """Where the `value_kl` of the exact kernel is, if that is known, balanced or not."""
    @property
    def corrected(self) -> Optional[float]:
        """The best estimate of the `value` of the exact kernel from samples of the plan; `None` if there are none."""
    @property
    def corrected_kl(self) -> Optional[float]:
        """The best estimate of the `value_kl` of the exact kernel from samples of the plan; `None` if there are none."""
    @property
    def sampling(self) -> Optional[dict[str, Any]]:
        """What `method="sampled"` took and found: `size` (points of each cloud in a sample), `samples`, `rows`, `upper_size`
        (points of each cloud in the samples of the upper end), and `estimate` with `stderr`, the best estimate of `value`
        and its standard error, which is no bound; otherwise `None`."""
    @property
    def bound(self) -> Optional[float]:
        """How far the `value` is from that of the exact kernel at most, for lattices; otherwise `None`."""
    @property
    def mass(self) -> float:
        """The sum of the plan: 1, unless a marginal is relaxed."""
    @property
    def epsilon(self) -> float:
        """The regularisation, in units of the cost."""
    @property
    def rho(self) -> tuple[float, float]:
        """The prices of changing the two marginals; infinite where a marginal is kept."""
    @property
    def converged(self) -> bool:
        """Whether the marginal error fell below the tolerance."""
    @property
    def stop(self) -> str:
        """Why it ended: `converged`, `iteration_limit`, `time_limit` or `requested`."""
    @property
    def iterations(self) -> int:
        """How many iterations were done."""
    @property
    def marginal_errors(self) -> tuple[float, float]:
        """L1 distances of the marginals of the plan from what they should be."""
    @property
    def marginal_gaps(self) -> tuple[float, float]:
        """L1 distances of the marginals of the plan from the weights: of a relaxed marginal a result, and no error."""
    @property
    def method(self) -> str:
        """The method that was used: `gaussian`, `lattice`, `arccos`, `linear`, `map`, `explicit`, `dense`, `online`,
        `nystrom` or `sampled`.
        """
    @property
    def anchors(self) -> Optional[str]:
        """Where the anchors of Gaussian features were: `paper`, `sobol`, `iid`, `orthogonal`, `adaptive` or `lattice`; of other
        kernels `None`.
        """
    @property
    def rank(self) -> int:
        """Number of features or landmarks; of exact methods the number of columns of the kernel."""
    @property
    def reason(self) -> Optional[str]:
        """Why this method, in words, if it was chosen automatically; otherwise `None`."""
    @property
    def stages(self) -> int:
        """How many epsilons were gone through: larger ones lead to a small one."""
    @property
    def polished(self) -> Optional[int]:
        """Iterations of the exact kernel that followed those of features, or `None`."""
    @property
    def builds(self) -> int:
        """How often features or kernels were stored."""
    @property
    def times(self) -> tuple[float, float]:
        """Seconds for storing features or kernels, and for all else."""
    @property
    def potential_x(self) -> _Vector:
        """`eps log u`, a number for every point of x."""
    @property
    def potential_y(self) -> _Vector:
        """`eps log v`, a number for every point of y."""
    @property
    def potentials(self) -> tuple[_Vector, _Vector]:
        """`potential_x` and `potential_y`: `P = exp((potential_x + potential_y - C) / eps)`."""
    @property
    def potentials_kl(self) -> tuple[_Vector, _Vector]:
        """The potentials less `eps log a` and `eps log b`: functions of position."""
    def keeps(self, accuracy: float) -> bool:
        """Whether `value_kl` is known to be within this part of itself of that of the exact kernel."""
    def __float__(self) -> float: ...
    def _repr_html_(self) -> str: ...

@final
class Divergence:
    """A Sinkhorn divergence and its three terms."""

    @property
    def value(self) -> float:
        """`W(x, y) - (W(x, x) + W(y, y)) / 2`: zero if the clouds are equal."""
    @property
    def interval(self) -> Optional[Interval]:
        """Where the divergence of the exact kernel is, if that is known."""
    @property
    def corrected(self) -> Optional[float]:
        """The best estimate of the divergence of the exact kernel from samples of the plans; `None` if there are none."""
    @property
    def bound(self) -> Optional[float]:
        """How far the divergence is from that of the exact kernel at most, for lattices; otherwise `None`."""
    @property
    def kernels(self) -> str:
        """Which kernels the terms have: the `exact` one, one `shared` approximation, or one `per_term`."""
    @property
    def converged(self) -> bool:
        """Whether all three terms converged."""
    @property
    def iterations(self) -> int:
        """How many iterations the three terms did together."""
    @property
    def epsilon(self) -> float:
        """The regularisation, in units of the cost."""
    @property
    def method(self) -> str:
        """The method of the cross term."""
    @property
    def anchors(self) -> Optional[str]:
        """Where the anchors of Gaussian features of the cross term were: `paper`, `sobol`, `iid`, `orthogonal`, `adaptive` or
        `lattice`; of other kernels `None`.
        """
    @property
    def rank(self) -> int:
        """Number of features of the cross term; of exact methods the number of columns of the kernel."""
    @property
    def reason(self) -> Optional[str]:
        """Why this method, in words, if it was chosen automatically; otherwise `None`."""
    @property
    def cross(self) -> Solution:
        """The solution of `W(x, y)`."""
    @property
    def self_x(self) -> Solution:
        """The solution of `W(x, x)`."""
    @property
    def self_y(self) -> Solution:
        """The solution of `W(y, y)`."""
    @property
    def potentials(self) -> tuple[_Vector, _Vector]:
        """Those of the divergence itself: centred they are its derivatives by the weights."""
    def keeps(self, accuracy: float) -> bool:
        """Whether the divergence is known to be within this part of itself (or of a hundredth of the `value_kl` of its cross
        term, if that is more) of that of the exact kernel.
        """
    def __float__(self) -> float: ...
    def _repr_html_(self) -> str: ...

@final
class Gradient:
    """Derivatives of a value or a divergence: those that were asked for."""

    @property
    def value(self) -> float:
        """What it is the gradient of: the divergence, `value_kl` or `value`."""
    @property
    def result(self) -> Union[Solution, Divergence]:
        """The result that the gradient belongs to: a `Divergence` or a `Solution`."""
    @property
    def x(self) -> _Matrix:
        """By the points of x, a row for every point, in the columns in which they were given."""
    @property
    def y(self) -> _Matrix:
        """By the points of y, a row for every point, in the columns in which they were given."""
    @property
    def a(self) -> _Vector:
        """By the weights of x, along changes that keep their sum unless a marginal is relaxed."""
    @property
    def b(self) -> _Vector:
        """By the weights of y, along changes that keep their sum unless a marginal is relaxed."""
    @property
    def epsilon(self) -> float:
        """By epsilon."""
    @property
    def anchors(self) -> _Matrix:
        """By the anchors of Gaussian features, a row for every anchor."""
    @property
    def features_x(self) -> _Matrix:
        """By the features of x."""
    @property
    def features_y(self) -> _Matrix:
        """By the features of y."""
    @property
    def log_features_x(self) -> _Matrix:
        """By the logarithms of the features of x."""
    @property
    def log_features_y(self) -> _Matrix:
        """By the logarithms of the features of y."""
    def _repr_html_(self) -> str: ...

@final
class Plan:
    """How much goes where: the coupling of two clouds, never stored. Points are counted from 0, and from the end if
    negative.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Points of x by points of y."""
    @property
    def dim(self) -> int:
        """Number of coordinates of a point."""
    @property
    def columns(self) -> Optional[list[str]]:
        """The names of the coordinates, in the order that the plan has them, if the clouds were tables with names."""
    @property
    def solution(self) -> Solution:
        """The solution that the plan belongs to: values, potentials, errors, why it stopped."""
    @property
    def value(self) -> float:
        """The `value` of its solution."""
    @property
    def converged(self) -> bool:
        """Whether the solve converged."""
    def mass(self) -> float:
        """The sum of all entries, computed."""
    def transport_cost(self) -> float:
        """`<P, C>`, over all pairs if it is not known yet."""
    def entry(self, i: int, j: int) -> float:
        """How much goes from point `i` of x to point `j` of y."""
    def __getitem__(self, key: tuple[int, int], /) -> float: ...
    def row(self, i: int) -> _Vector:
        """Where the mass of point `i` of x goes: a number for every point of y."""
    def column(self, j: int) -> _Vector:
        """Where the mass of point `j` of y comes from: a number for every point of x."""
    def top(self, i: int, count: int) -> tuple[_Integers, _Vector]:
        """The largest entries of a row: columns and masses."""
    def marginals(self) -> tuple[_Vector, _Vector]:
        """The sums of the rows and those of the columns, computed."""
    def sample(self, count: int, seed: int = 0) -> _Integers:
        """Coupled points: `count` pairs (i, j), drawn independently with the probabilities of the plan."""
    def to_dense(self) -> _Matrix:
        """All entries as a matrix; refused if they are too many for the memory."""
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> npt.NDArray[Any]: ...
    def barycentric(self, points: Optional[npt.ArrayLike] = None, *, cloud: _Side = "x") -> _Matrix:
        """Where points go in the mean: those of x (or of y, with `cloud="y"`), or any others."""
    def mean(
        self, values: npt.ArrayLike, points: Optional[npt.ArrayLike] = None, *, cloud: _Side = "x"
    ) -> npt.NDArray[np.float64]:
        """Means of values of the other cloud; one column for a vector."""
    def vote(
        self, labels: npt.ArrayLike, points: Optional[npt.ArrayLike] = None, *, cloud: _Side = "x"
    ) -> tuple[npt.NDArray[Any], _Vector]:
        """The likeliest label of every point, and its probability. Labels may be anything that NumPy can sort."""
    def partners(
        self, count: int, points: Optional[npt.ArrayLike] = None, *, cloud: _Side = "x"
    ) -> tuple[_Integers, _Matrix]:
        """The largest partners of every point, -1 and 0 where there are fewer."""
    def potential(self, points: npt.ArrayLike, *, cloud: _Side = "x") -> _Vector:
        """The potential of x (or of y) as a function of position, at any points."""
    def gradient(
        self, by: Union[str, Sequence[str], None] = None, *, of: Literal["value_kl", "value"] = "value_kl"
    ) -> Gradient:
        """Derivatives of `value_kl`, or of `value`."""
    def _repr_html_(self) -> str: ...

@final
class FeatureMap:
    """A map from points to positive features: `k(x, y) = phi(x) . phi(y)`."""

    @staticmethod
    def gaussian(anchors: npt.ArrayLike, epsilon: float, q: Optional[float] = None) -> FeatureMap:
        """Of the Gaussian kernel `exp(-|x - y|^2 / epsilon)`, with these anchors (the paper's Lemma 1)."""
    @staticmethod
    def paper(
        x: npt.ArrayLike, y: npt.ArrayLike, epsilon: float, rank: int, seed: int = 0, centred: bool = True
    ) -> FeatureMap:
        """The paper's map for two clouds."""
    @staticmethod
    def arc_cosine(
        dim: int, rank: int, order: int = 1, kappa: float = 0.1, sigma: float = 1.5, seed: int = 0
    ) -> FeatureMap:
        """Of the arc-cosine kernel plus `kappa`."""
    @staticmethod
    def linear(dim: int) -> FeatureMap:
        """The coordinates themselves, all positive."""
    @property
    def dim(self) -> int:
        """Number of coordinates of a point."""
    @property
    def rank(self) -> int:
        """Number of features."""
    @property
    def kind(self) -> str:
        """Which map it is: `gaussian`, `paper`, `arc_cosine` or `linear`."""
    @property
    def q(self) -> Optional[float]:
        """Of the paper's Lemma 1, for Gaussian features; otherwise `None`."""
    @property
    def anchors(self) -> Optional[_Matrix]:
        """The anchors, a row each; `None` if the map has none."""
    def log_features(self, points: npt.ArrayLike) -> _Matrix:
        """The logarithms of the features of some points, a row a point."""
    def __call__(self, points: npt.ArrayLike) -> _Matrix: ...

@final
class Progress:
    """How a solve goes on, as callbacks get it: when a phase begins, now and then while a method is chosen, and after every
    iteration.
    """

    @property
    def phase(self) -> str:
        """What is being done: `choosing a method`, `storing features`, `iterating`, `bounding the error` or `improving`."""
    @property
    def term(self) -> str:
        """Which problem is being solved: `cross`, `self_x` or `self_y`; empty between iterations."""
    @property
    def epsilon(self) -> float:
        """Its regularisation, which may be larger on the way to a small one."""
    @property
    def iteration(self) -> int:
        """Iterations done, from 1; 0 where a phase begins."""
    @property
    def marginal_error(self) -> float:
        """L1 error of the marginal; infinite where a phase begins."""
    @property
    def value(self) -> float:
        """The dual value: a lower bound of the `value` of the result, once the plan has mass 1; minus infinity where a phase
        begins.
        """
    @property
    def interval(self) -> Optional[tuple[float, float]]:
        """Where samples of the clouds (`method="sampled"`) have told that `value_kl` of the term is, which narrows; otherwise `None`."""
    @property
    def elapsed(self) -> float:
        """Seconds since the call began."""

@final
class Done:
    """How much of a task of many parts is done: pairs of a comparison, permutations, steps of a flow."""

    @property
    def what(self) -> str:
        """What is counted: `pairs`, `permutations` or `steps`."""
    @property
    def done(self) -> int:
        """How many are done."""
    @property
    def total(self) -> int:
        """How many there are, or may be."""
    @property
    def value(self) -> Optional[float]:
        """The divergence of the last one, if it has one."""

@final
class Step:
    """Where the points are after a step."""

    @property
    def number(self) -> int:
        """Steps done; 0 before the first."""
    @property
    def value(self) -> float:
        """What is minimised."""
    @property
    def points(self) -> _Matrix:
        """Where the points are."""
    @property
    def pull(self) -> float:
        """How far the gradient leads, in the root mean square over the points."""
    @property
    def moved(self) -> float:
        """How far the points have moved in this step, in the root mean square."""
    @property
    def size(self) -> float:
        """The size of the step."""
    @property
    def rejected(self) -> int:
        """Trials so far that were not taken."""

@final
class Flow:
    """Where a flow ended."""

    @property
    def points(self) -> _Matrix:
        """Where the points are in the end."""
    @property
    def divergence(self) -> Divergence:
        """The divergence there, with its terms."""
    @property
    def value(self) -> float:
        """The divergence at the end."""
    @property
    def first(self) -> float:
        """The divergence before the first step."""
    @property
    def steps(self) -> int:
        """How many steps were done."""
    @property
    def gradients(self) -> int:
        """How many gradients were computed."""
    @property
    def rest(self) -> str:
        """Why the points came to rest: `reached`, `still`, `stalled`, `step_limit`, `time_limit`, `requested` or
        `iteration_limit`.
        """
    @property
    def times(self) -> tuple[float, float]:
        """Seconds for storing features or kernels, and for all else."""
    def _repr_html_(self) -> str: ...

@final
class Barycenter:
    """A barycentre on given points."""

    @property
    def points(self) -> _Matrix:
        """The points of the support, a row each."""
    @property
    def weights(self) -> _Vector:
        """The weights of the points, of sum 1."""
    @property
    def value(self) -> float:
        """The weighted sum of the values (of the divergences, if it is debiased) of the barycentre and the clouds."""
    @property
    def distances(self) -> _Vector:
        """The value or divergence of the barycentre and each cloud."""
    @property
    def debiased(self) -> bool:
        """Whether it is that of the divergence."""
    @property
    def epsilon(self) -> float:
        """The regularisation, in units of the cost."""
    @property
    def marginal_error(self) -> float:
        """Largest L1 distance of a marginal of the plans from its cloud."""
    @property
    def iterations(self) -> int:
        """How many iterations were done."""
    @property
    def converged(self) -> bool:
        """Whether the marginal error fell below the tolerance."""
    @property
    def stop(self) -> str:
        """Why it ended: `converged`, `iteration_limit`, `time_limit` or `requested`."""
    @property
    def method(self) -> str:
        """The method that was used: `gaussian`, `lattice`, `arccos`, `linear`, `map`, `explicit`, `dense`, `online`,
        `nystrom` or `sampled`.
        """
    @property
    def rank(self) -> int:
        """Number of features or landmarks; of exact methods the number of columns of the kernel."""
    @property
    def reason(self) -> Optional[str]:
        """Why this method, in words, if it was chosen automatically; otherwise `None`."""
    @property
    def times(self) -> tuple[float, float]:
        """Seconds for storing features or kernels, and for all else."""
    def softmax(self, temperature: float) -> _Vector:
        """`exp(temperature p / max p)`, divided by its sum: a picture of the peaks of the weights `p`."""
    def _repr_html_(self) -> str: ...

@final
class FreeBarycenter:
    """A barycentre whose points were free to move."""

    @property
    def points(self) -> _Matrix:
        """Where the points are in the end."""
    @property
    def weights(self) -> _Vector:
        """Their weights, those of the start."""
    @property
    def value(self) -> float:
        """The weighted sum of the values (of the divergences, if it is debiased) of the barycentre and the clouds."""
    @property
    def first(self) -> float:
        """The same before the first step."""
    @property
    def distances(self) -> _Vector:
        """The value or divergence of the barycentre and each cloud."""
    @property
    def debiased(self) -> bool:
        """Whether it is that of the divergence."""
    @property
    def solution(self) -> Solution:
        """The solution of the last cloud."""
    @property
    def steps(self) -> int:
        """How many steps were done."""
    @property
    def gradients(self) -> int:
        """How many gradients were computed."""
    @property
    def rest(self) -> str:
        """Why the points came to rest: `reached`, `still`, `stalled`, `step_limit`, `time_limit`, `requested` or
        `iteration_limit`.
        """
    @property
    def times(self) -> tuple[float, float]:
        """Seconds for storing features or kernels, and for all else."""
    def _repr_html_(self) -> str: ...

@final
class Pair:
    """Two of many clouds."""

    @property
    def first(self) -> int:
        """The cloud with the smaller number."""
    @property
    def second(self) -> int:
        """The other cloud."""
    @property
    def value(self) -> float:
        """The divergence."""
    @property
    def interval(self) -> Optional[Interval]:
        """Where the divergence of the exact kernel is, if that is known."""
    @property
    def converged(self) -> bool:
        """Whether all terms converged."""
    @property
    def accurate(self) -> bool:
        """Whether all terms are known to be as accurate as was asked for."""
    @property
    def method(self) -> str:
        """The method of the cross term."""
    @property
    def iterations(self) -> int:
        """Iterations of the cross term."""

@final
class Comparison:
    """The divergences of all pairs of some clouds."""

    @property
    def count(self) -> int:
        """How many clouds there are."""
    @property
    def epsilon(self) -> float:
        """The regularisation, in units of the cost."""
    @property
    def complete(self) -> bool:
        """Whether all pairs are finished."""
    @property
    def converged(self) -> bool:
        """Whether all terms of all pairs converged."""
    @property
    def sharing(self) -> str:
        """What pairs have in common: `self_terms`, `features`, `map` or `nothing`."""
    @property
    def matrix(self) -> _Matrix:
        """The divergences, symmetric, with zeros on the diagonal."""
    @property
    def intervals(self) -> npt.NDArray[np.float64]:
        """Lower and upper ends, NaN where nothing is known."""
    @property
    def pairs(self) -> list[Pair]:
        """The pairs that are finished."""
    def linkage(self) -> _Matrix:
        """Average linkage, as `SciPy` has it."""
    def leaves(self) -> list[int]:
        """An order of the clouds in which those that are near are next to each other."""
    def embedding(self) -> tuple[_Matrix, float]:
        """Points of the plane, and the share of the matrix that they show."""
    def _repr_html_(self) -> str: ...

@final
class TwoSample:
    """The result of a test."""

    @property
    def pvalue(self) -> float:
        """`(1 + exceeding) / (1 + permutations)`: the probability of a divergence at least as large, if the clouds are
        from one distribution.
        """
    @property
    def resolution(self) -> float:
        """The smallest p-value that there can be."""
    @property
    def statistic(self) -> float:
        """The divergence of the clouds under the kernel that all permutations share: what these are compared with."""
    @property
    def value(self) -> float:
        """The divergence of the clouds as `divergence` has it, solved for itself; the statistic where there was no time for
        that, and with a cost matrix.
        """
    @property
    def interval(self) -> Optional[Interval]:
        """Where the divergence of the exact kernel is, if that is known."""
    @property
    def null(self) -> _Vector:
        """The divergences of the permutations, in the order in which they were drawn."""
    @property
    def permutations(self) -> int:
        """How many permutations were done."""
    @property
    def exceeding(self) -> int:
        """How many permutations have a divergence at least as large."""
    @property
    def unconverged(self) -> int:
        """How many of the divergences did not converge; the p-value is valid all the same."""
    @property
    def stop(self) -> str:
        """Why it ended: `converged`, `iteration_limit`, `time_limit` or `requested`."""
    @property
    def epsilon(self) -> float:
        """The regularisation, in units of the cost."""
    @property
    def method(self) -> str:
        """The method that was used: `gaussian`, `lattice`, `arccos`, `linear`, `map`, `explicit`, `dense`, `online`,
        `nystrom` or `sampled`.
        """
    @property
    def rank(self) -> int:
        """Number of features or landmarks; of exact methods the number of columns of the kernel."""
    @property
    def reason(self) -> Optional[str]:
        """Why this method, in words, if it was chosen automatically; otherwise `None`."""
    @property
    def times(self) -> tuple[float, float]:
        """Seconds for storing features or kernels, and for all else."""
    def quantile(self, part: float) -> float:
        """The smallest divergence of a permutation that this part of them does not exceed."""
    def _repr_html_(self) -> str: ...

def paper_q(radius: float, epsilon: float, dim: int) -> float: ...
def _checked(epsilon: Any, settings: dict[str, Any]) -> None: ...
def _restored(kind: str, version: str, bytes: bytes, objects: tuple[Any, ...]) -> Any: ...
def rot(x: Any, y: Any, epsilon: Any, a: Any, b: Any, settings: dict[str, Any]) -> Solution: ...
def divergence(x: Any, y: Any, epsilon: Any, a: Any, b: Any, settings: dict[str, Any]) -> Divergence: ...
def gradient(x: Any, y: Any, epsilon: Any, a: Any, b: Any, settings: dict[str, Any]) -> Gradient: ...
def plan(x: Any, y: Any, epsilon: Any, a: Any, b: Any, settings: dict[str, Any]) -> Plan: ...
def flow(x: Any, y: Any, epsilon: Any, a: Any, b: Any, settings: dict[str, Any]) -> Flow: ...
def two_sample_test(x: Any, y: Any, epsilon: Any, a: Any, b: Any, settings: dict[str, Any]) -> TwoSample: ...
def compare(given: Any, epsilon: Any, settings: dict[str, Any]) -> Comparison: ...
def barycenter(
    given: Any, epsilon: Any, weights: Any, support: Any, debiased: bool, settings: dict[str, Any]
) -> Barycenter: ...
def free_barycenter(
    given: Any, epsilon: Any, weights: Any, start: Any, debiased: bool, settings: dict[str, Any]
) -> FreeBarycenter: ...
