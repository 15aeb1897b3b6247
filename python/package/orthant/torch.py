"""Sinkhorn divergences as losses of PyTorch.

Gradients are those of the library, by the envelope theorem: nothing is unrolled, and memory is that of the inputs. A
tensor that needs no gradient costs none. There are no second derivatives: to ask for one is an error.

    loss = orthant.torch.SinkhornDivergence(epsilon=0.1)
    loss(x, y).backward()            # x: (n, d), y: (m, d)
    loss(a, x, b, y).backward()      # with weights, as in GeomLoss
    loss(x_batch, y_batch)           # (k, n, d) and (k, m, d): k numbers

The cost is ``|x - y|^2``, so values are twice those of ``geomloss.SamplesLoss("sinkhorn", p=2, blur=sqrt(epsilon / 2))``.
An epsilon that is not given is chosen from the data of each call and held fixed in its gradient.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Optional, Sequence

import numpy as np

try:
    import torch
except ImportError as error:
    raise ImportError("orthant.torch needs PyTorch, which is not installed: pip install torch") from error
from torch import Tensor, nn

from ._api import gradient
from ._messages import hinted, shown, unknown
from ._orthant import Divergence, Gradient, Solution, _checked, paper_q
from ._settings import DEFAULTS

__all__ = ["LearnedFeatures", "SinkhornDivergence", "feature_divergence", "sinkhorn_divergence"]

# What a value can depend on, in the order of the arguments of _Value.
_BY = ("x", "y", "a", "b", "anchors", "features_x", "features_y")


class _Memory:
    """The last result, to start the next solve from if the points have not moved far."""

    def __init__(self) -> None:
        self._result: Any = None
        self._points: list[Any] = []

    def near(self, points: Sequence[Any], epsilon: float) -> Any:
        """The last result, if all clouds are within sqrt(epsilon) of what it is of, in the root mean square."""
        if self._result is None or len(points) != len(self._points):
            return None
        for new, old in zip(points, self._points):
            if new is None or old is None or new.shape != old.shape:
                return None
            if float(np.mean(np.sum((new - old) ** 2, axis=1))) > epsilon:
                return None
        return self._result

    def keep(self, points: Sequence[Any], result: Any) -> None:
        self._points = [None if p is None else p.copy() for p in points]
        self._result = result


def _array(tensor: Optional[Tensor]) -> Any:
    """The numbers of a tensor: its own memory, if that is on the CPU and contiguous."""
    if tensor is None:
        return None
    array = tensor.detach().cpu()
    if array.dtype in (torch.float32, torch.float64):
        return array.numpy()
    # NumPy has no bfloat16, f16 is no precision to solve in, and integers have no gradients.
    return (array.float() if array.is_floating_point() else array.double()).numpy()


def _dtype(*tensors: Tensor) -> torch.dtype:
    """The number format of a value: the widest of its points, or the default one if they are integers."""
    kinds = [t.dtype for t in tensors if t.is_floating_point()]
    return functools.reduce(torch.promote_types, kinds) if kinds else torch.get_default_dtype()


def _check(name: str, tensor: Any, axes: Sequence[int], shape: str) -> None:
    """One clear line for what is no tensor of the right shape."""
    if not isinstance(tensor, Tensor):
        what = "a NumPy array" if isinstance(tensor, np.ndarray) else shown(tensor)
        raise TypeError(f"{name} is {what}, and a tensor is needed: torch.as_tensor({name})")
    if tensor.is_complex():
        raise TypeError(f"{name} is complex ({tensor.dtype}), and real numbers are needed: torch.view_as_real({name})")
    if tensor.dim() not in axes:
        raise ValueError(f"{name} must be of shape {shape}, got {tuple(tensor.shape)}")


class _Value(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """A divergence or a value; its gradient is computed with it."""

    @staticmethod
    def forward(ctx: Any, options: dict[str, Any], memory: Optional[_Memory], *inputs: Optional[Tensor]) -> Tensor:
        x, y, a, b, anchors, xi, zeta = (_array(t) for t in inputs)
        wanted: list[Any] = [name for name, needed in zip(_BY, ctx.needs_input_grad[2:]) if needed]
        settings = dict(options)
        epsilon = settings.pop("epsilon")
        points = [x, y] if xi is None else [xi, zeta]
        if anchors is not None:
            settings["anchors"] = anchors
        if xi is not None:
            settings["features"] = (xi, zeta)
        if memory is not None:
            # Features have no unit; those of a network change with its parameters, a little at a time.
            settings["warm_start"] = memory.near(points, epsilon if xi is None else math.inf)
        found: Gradient = gradient(x, y, epsilon, a, b, by=wanted, **settings)
        if memory is not None:
            memory.keep(points, found.result)
        balanced = settings.get("reach") is None and settings.get("rho") is None
        ctx.gradients = [None] * len(_BY)
        for k, (name, tensor) in enumerate(zip(_BY, inputs)):
            if name in wanted and tensor is not None:
                slope = getattr(found, name)
                if name in "ab" and balanced:
                    # By the weights as they were given, which are divided by their sum.
                    slope = slope / float((a if name == "a" else b).sum())
                ctx.gradients[k] = torch.tensor(slope, dtype=tensor.dtype, device=tensor.device)
        ctx.save_for_backward(*inputs)
        clouds = [t for t in inputs[:2] + inputs[5:] if t is not None]
        return torch.tensor(found.value, dtype=_dtype(*clouds), device=clouds[0].device)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            # Somebody wants to differentiate the gradient too, and it depends on all inputs.
            slopes = _Slope.apply(ctx.gradients, slope, *ctx.saved_tensors)
        else:
            slopes = _slopes(ctx.gradients, slope)
        return (None, None, *slopes)


def _slopes(gradients: list[Optional[Tensor]], slope: Tensor) -> tuple[Optional[Tensor], ...]:
    return tuple(None if g is None else slope * g for g in gradients)


class _Slope(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """The gradient of a value, which has no derivative here."""

    @staticmethod
    def forward(ctx: Any, gradients: list[Optional[Tensor]], slope: Tensor, *inputs: Optional[Tensor]) -> Any:
        return _slopes(gradients, slope)

    @staticmethod
    def backward(ctx: Any, *slopes: Any) -> Any:
        raise NotImplementedError(
            "the Sinkhorn divergence has no second derivative here, so a gradient of it cannot be part of a loss (a "
            "gradient penalty, create_graph=True): detach() that gradient, or take finite differences of it"
        )


def _names(function: Callable[..., Any], settings: dict[str, Any]) -> None:
    for name in settings:
        if name not in DEFAULTS:
            raise unknown(function.__name__, name, [*DEFAULTS, "epsilon", "a", "b"])


def sinkhorn_divergence(
    x: Tensor,
    y: Tensor,
    epsilon: Optional[float] = None,
    a: Optional[Tensor] = None,
    b: Optional[Tensor] = None,
    *,
    anchors: Optional[Tensor] = None,
    of: str = "divergence",
    **settings: Any,
) -> Tensor:
    """The divergence of two clouds (or `of` = ``"value_kl"`` or ``"value"``), differentiable by all tensors.

    `settings` are those of `orthant.gradient`; `anchors` make the kernel (with ``q``, see `LearnedFeatures`). An epsilon
    that is not given is 0.05 times the mean squared distance of all points, and held fixed in the gradient.
    """
    _names(sinkhorn_divergence, settings)
    _check("x", x, [2], "(n, d)")
    _check("y", y, [2], "(m, d)")
    for name, weights in (("a", a), ("b", b)):
        if weights is not None:
            _check(name, weights, [1], "(n,), a weight for every point")
    if anchors is not None:
        _check("anchors", anchors, [2], "(r, d)")
        if epsilon is None:
            raise TypeError("anchors belong to an epsilon; give it")
    options = {"epsilon": epsilon, "of": of, **settings}
    value: Tensor = _Value.apply(options, None, x, y, a, b, anchors, None, None)
    return value


def feature_divergence(
    xi: Tensor,
    zeta: Tensor,
    epsilon: float = 1.0,
    a: Optional[Tensor] = None,
    b: Optional[Tensor] = None,
    **settings: Any,
) -> Tensor:
    """The divergence by positive features, of shape (n, r) and (m, r), that any network may have made.

    The cost is ``-epsilon log xi.zeta``.
    """
    _names(feature_divergence, settings)
    _check("xi", xi, [2], "(n, r)")
    _check("zeta", zeta, [2], "(m, r)")
    for name, weights in (("a", a), ("b", b)):
        if weights is not None:
            _check(name, weights, [1], "(n,), a weight for every point")
    options = {"epsilon": epsilon, **settings}
    value: Tensor = _Value.apply(options, None, None, None, a, b, None, xi, zeta)
    return value


class LearnedFeatures(nn.Module):  # type: ignore[misc, unused-ignore]
    """Features of the paper's Lemma 1 whose anchors are parameters: a kernel that can be learnt.

    ``phi_k(x) = (2 q)^{d/4} exp(-2 |x - u_k|^2 / eps) exp(|u_k|^2 / (eps q)) / sqrt(r)``; ``q`` and the first anchors are
    the paper's for points within `radius` of the origin.
    """

    @hinted
    def __init__(
        self,
        dim: int,
        rank: int,
        *,
        epsilon: float = 1.0,
        radius: float = 1.0,
        seed: int = 0,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        super().__init__()
        for name, value in (("dim", dim), ("rank", rank)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {shown(value)}")
        for name, number in (("epsilon", epsilon), ("radius", radius)):
            if not isinstance(number, (int, float, np.number)) or not 0 < number < math.inf:
                raise ValueError(f"{name} must be positive and finite, got {shown(number)}")
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"dtype must be one of floating point, got {dtype}")
        self.epsilon = float(epsilon)
        self.q = paper_q(radius, epsilon, dim)
        draws = np.random.default_rng(seed).normal(size=(rank, dim)) * math.sqrt(self.q * epsilon / 4)
        self.anchors = nn.Parameter(torch.tensor(draws, dtype=dtype or torch.get_default_dtype()))

    @property
    def rank(self) -> int:
        """The number of features."""
        return int(self.anchors.shape[0])

    def log_features(self, x: Tensor) -> Tensor:
        """Logarithms of the features, in PyTorch."""
        rank, dim = self.anchors.shape
        squares = ((x[:, None] - self.anchors) ** 2).sum(dim=2)
        norms = (self.anchors**2).sum(dim=1)
        constant = 0.25 * dim * math.log(2 * self.q) - 0.5 * math.log(rank)
        logs: Tensor = constant - 2 * squares / self.epsilon + norms / (self.epsilon * self.q)
        return logs

    def forward(self, x: Tensor) -> Tensor:
        """The features themselves, (n, r)."""
        return self.log_features(x).exp()

    def extra_repr(self) -> str:
        """What the module shows of itself."""
        rank, dim = self.anchors.shape
        return f"dim={dim}, rank={rank}, epsilon={self.epsilon}, q={self.q:.4g}"


class SinkhornDivergence(nn.Module):  # type: ignore[misc, unused-ignore]
    """The Sinkhorn divergence as a loss: ``loss(x, y)`` or ``loss(a, x, b, y)``.

    Values have the number format of the points, or the default one of PyTorch where these are integers. The loss can
    be differentiated once; a gradient of its gradient is an error.

    Parameters
    ----------
    epsilon : float, optional
        Regularisation, in units of ``|x - y|^2``. Default: 0.05 times the mean squared distance of all points, anew in each call and
        held fixed in its gradient; of `features` theirs.
    features : LearnedFeatures, optional
        A kernel with anchors that get gradients too.
    reuse : bool
        Start a solve from the last one, if the points have moved less than ``sqrt(epsilon)`` since.
    settings
        Those of `orthant.gradient`: ``method``, ``accuracy``, ``tolerance``, ``reach``, ``threads``, ...
    """

    def __init__(
        self,
        epsilon: Optional[float] = None,
        *,
        features: Optional[LearnedFeatures] = None,
        reuse: bool = True,
        **settings: Any,
    ) -> None:
        super().__init__()
        known = [*(name for name in DEFAULTS if name not in ("warm_start", "features", "cost")), "of"]
        for name in settings:
            if name not in known:
                raise unknown("SinkhornDivergence", name, [*known, "epsilon", "reuse"])
        if features is not None and not isinstance(features, LearnedFeatures):
            raise TypeError(f"features must be LearnedFeatures, got {shown(features)}; for others there is feature_divergence")
        if not isinstance(reuse, bool):
            raise TypeError(f"reuse must be True or False, got {shown(reuse)}")
        if features is not None and epsilon is not None and epsilon != features.epsilon:
            raise ValueError(f"the features belong to epsilon {features.epsilon}, got {shown(epsilon)}")
        _checked(epsilon, {k: v for k, v in settings.items() if k != "progress"})
        self.epsilon = epsilon if features is None else features.epsilon
        self.features = features
        self.settings = settings
        self._memories: Optional[list[_Memory]] = [] if reuse else None

    def forward(self, *clouds: Tensor) -> Tensor:
        """The divergence of two clouds, or those of the pairs of a batch."""
        if len(clouds) == 2:
            (x, y), a, b = clouds, None, None
        elif len(clouds) == 4:
            a, x, b, y = clouds
        else:
            raise TypeError(f"the loss takes (x, y) or (a, x, b, y), got {len(clouds)} tensors")
        for name, points in (("x", x), ("y", y)):
            _check(name, points, [2, 3], "(n, d), or (k, n, d) for a batch")
        if x.dim() != y.dim() or (x.dim() == 3 and x.shape[0] != y.shape[0]):
            raise ValueError(
                f"x and y must be (n, d) and (m, d), or (k, n, d) and (k, m, d); got {tuple(x.shape)} and {tuple(y.shape)}"
            )
        for name, weights, points in (("a", a, x), ("b", b, y)):
            if weights is None:
                continue
            wanted = tuple(points.shape[:-1])
            _check(name, weights, range(10), str(wanted))
            if tuple(weights.shape) != wanted:
                raise ValueError(
                    f"{name} must be of shape {wanted}, a weight for every point, got {tuple(weights.shape)}; the order is "
                    "loss(a, x, b, y)"
                )
        if x.dim() == 2:
            return self._one(0, x, y, a, b)
        if x.shape[0] == 0:
            raise ValueError("the batch is empty: x and y are of shape (0, ...), and a batch needs at least one pair")
        parts = [
            self._one(k, x[k], y[k], None if a is None else a[k], None if b is None else b[k])
            for k in range(x.shape[0])
        ]
        return torch.stack(parts)

    def _one(self, k: int, x: Tensor, y: Tensor, a: Optional[Tensor], b: Optional[Tensor]) -> Tensor:
        options: dict[str, Any] = {"epsilon": self.epsilon, **self.settings}
        anchors = None
        if self.features is not None:
            anchors = self.features.anchors
            options["q"] = self.features.q
        memory = None
        if self._memories is not None and self.epsilon is not None:
            while len(self._memories) <= k:
                self._memories.append(_Memory())
            memory = self._memories[k]
        value: Tensor = _Value.apply(options, memory, x, y, a, b, anchors, None, None)
        return value

    @property
    def last(self) -> Optional[Divergence | Solution]:
        """The result of the last solve (of the first pair of a batch), if results are reused."""
        if not self._memories:
            return None
        result: Divergence | Solution = self._memories[0]._result
        return result

    def extra_repr(self) -> str:
        """What the module shows of itself."""
        shown_ = [f"epsilon={self.epsilon}", *(f"{k}={shown(v)}" for k, v in self.settings.items())]
        return ", ".join(shown_)
