//! How far anchors spread: the parameter `q` of their density `N(0, (q eps/4) I)`.

use lambert_w::lambert_w0;

/// The paper's `q` (Lemma 1): `q = R^2 / (2 eps d W0(R^2/(eps d))) = exp(W0(R^2/(eps d))) / 2`, with
/// `W0` the Lambert function.
///
/// It is the solution of `2q log 2q = R^2/(eps d)`, that is `(2q)^d = exp(R^2/(2 eps q))`: the factor
/// of [`psi`](crate::theory::psi) that grows with `q` balanced against one that falls. Not its minimiser: that is
/// [`least_psi_q`](crate::theory::least_psi_q). The second form has no 0/0: `q -> 1/2` as `R -> 0`.
pub fn paper_q(radius: f64, epsilon: f64, dim: usize) -> f64 {
    0.5 * lambert_w0(radius / epsilon * radius / dim as f64).exp()
}

/// The `q` of the smallest [`second_moment`](crate::theory::second_moment) on an axis with `s = m^2/eps`:
/// `q = (p+1)/4`, `p = [(1 + 16s) + sqrt((1 + 16s)^2 + 64s)] / 2`.
///
/// Not in the paper. The logarithm of the second moment is linear in `m^2`, so with
/// `s = E[m^2]/eps` over the pairs that matter this is the `q` of the smallest mean logarithm. With
/// `p = 4q - 1` its derivative vanishes where `p^2 - (1 + 16s) p - 16s = 0`. It is 1/2 at `s = 0`,
/// about `1/2 + 8s` near it, and `4s` far from it.
///
/// ```
/// assert_eq!(orthant::theory::best_q(0.0), 0.5);
/// ```
pub fn best_q(s: f64) -> f64 {
    let b = 1.0 + 16.0 * s;
    // 64 s = 4 (b - 1), divided by b^2, which may overflow where this does not.
    let p = 0.5 * b * (1.0 + (1.0 + 4.0 * (1.0 - 1.0 / b) / b).sqrt());
    0.25 * (p + 1.0)
}
