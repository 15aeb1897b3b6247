"""Sinkhorn divergences as losses of PyTorch.

Gradients are those of the library, by the envelope theorem: nothing is unrolled, and memory is that of the inputs. A
tensor that needs no gradient costs none.

    loss = orthant.torch.SinkhornDivergence(epsilon=0.1)
    loss(x, y).backward()            # x: (n, d), y: (m, d)
    loss(a, x, b, y).backward()      # with weights, as in GeomLoss
    loss(x_batch, y_batch)           # (k, n, d) and (k, m, d): k numbers

The cost is ``|x - y|^2``, so values are twice those of ``geomloss.SamplesLoss("sinkhorn", p=2, blur=sqrt(epsilon / 2))``.
"""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from ._api import gradient
from ._orthant import Divergence, Gradient, Solution, paper_q

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
    # NumPy has no bfloat16, and f16 is no precision to solve in.
    return (array.float() if array.dtype in (torch.float16, torch.bfloat16) else array).numpy()


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
        first = next(t for t in inputs if t is not None)
        return torch.tensor(found.value, dtype=first.dtype, device=first.device)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator, misc, unused-ignore]
    def backward(ctx: Any, slope: Tensor) -> tuple[Any, ...]:
        return (None, None, *(None if g is None else slope * g for g in ctx.gradients))


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

    `settings` are those of `orthant.gradient`; `anchors` make the kernel (with ``q``, see `LearnedFeatures`).
    """
    if epsilon is None and anchors is not None:
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
    options = {"epsilon": epsilon, **settings}
    value: Tensor = _Value.apply(options, None, None, None, a, b, None, xi, zeta)
    return value


class LearnedFeatures(nn.Module):  # type: ignore[misc, unused-ignore]
    """Features of the paper's Lemma 1 whose anchors are parameters: a kernel that can be learnt.

    ``phi_k(x) = (2 q)^{d/4} exp(-2 |x - u_k|^2 / eps) exp(|u_k|^2 / (eps q)) / sqrt(r)``; ``q`` and the first anchors are
    the paper's for points within `radius` of the origin.
    """

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
        self.epsilon = epsilon
        self.q = paper_q(radius, epsilon, dim)
        draws = np.random.default_rng(seed).normal(size=(rank, dim)) * math.sqrt(self.q * epsilon / 4)
        self.anchors = nn.Parameter(torch.tensor(draws, dtype=dtype or torch.get_default_dtype()))

    @property
    def rank(self) -> int:
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
        rank, dim = self.anchors.shape
        return f"dim={dim}, rank={rank}, epsilon={self.epsilon}, q={self.q:.4g}"


class SinkhornDivergence(nn.Module):  # type: ignore[misc, unused-ignore]
    """The Sinkhorn divergence as a loss: ``loss(x, y)`` or ``loss(a, x, b, y)``.

    Parameters
    ----------
    epsilon : float, optional
        Regularisation, in units of ``|x - y|^2``. Default: 0.05 times the mean squared distance, anew in each call; of
        `features` theirs.
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
        if features is not None and epsilon not in (None, features.epsilon):
            raise ValueError(f"the features belong to epsilon {features.epsilon}, got {epsilon}")
        self.epsilon = epsilon if features is None else features.epsilon
        self.features = features
        self.settings = settings
        self._memories: Optional[list[_Memory]] = [] if reuse else None

    def forward(self, *clouds: Tensor) -> Tensor:
        if len(clouds) == 2:
            (x, y), a, b = clouds, None, None
        elif len(clouds) == 4:
            a, x, b, y = clouds
        else:
            raise TypeError(f"the loss takes (x, y) or (a, x, b, y), got {len(clouds)} tensors")
        if x.dim() == y.dim() == 2:
            return self._one(0, x, y, a, b)
        if x.dim() != 3 or y.dim() != 3 or x.shape[0] != y.shape[0]:
            raise ValueError(
                f"x and y must be (n, d) and (m, d), or (k, n, d) and (k, m, d); got {tuple(x.shape)} and {tuple(y.shape)}"
            )
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
        shown = [f"epsilon={self.epsilon}", *(f"{k}={v!r}" for k, v in self.settings.items())]
        return ", ".join(shown)
