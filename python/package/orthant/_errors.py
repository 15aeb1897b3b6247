"""Exceptions of the package."""


class BreakdownError(RuntimeError):
    """A product with the kernel was not positive, which ends Sinkhorn's algorithm.

    Bad input is a ``ValueError`` or a ``TypeError``, and not converging is no error: see ``converged`` and
    ``stop`` of a result.
    """

    __module__ = "orthant"
