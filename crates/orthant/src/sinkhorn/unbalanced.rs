//! Unbalanced transport: marginals that may differ from the weights, at a price.
//!
//! With weights `a`, `b` of masses `m_a`, `m_b` (any), and `KL(p | q) = sum p log(p / q) - p + q`,
//!
//! ```text
//! U = min_P <P, C> + eps KL(P | a b^T) + rho_x KL(P 1 | a) + rho_y KL(P^T 1 | b)
//!   = max   rho_x a.(1 - exp(-phi / rho_x)) + rho_y b.(1 - exp(-psi / rho_y)) + eps (m_a m_b - sum P)
//! ```
//!
//! over potentials `phi`, `psi` with `P_ij = a_i b_j exp((phi_i + psi_j - C_ij) / eps)`. An infinite `rho` keeps
//! its marginal: the term becomes `a.phi`. As elsewhere `log u = log a + phi / eps`, `log v = log b + psi / eps`,
//! so that `P = diag(u) K diag(v)`; the derivative by `phi_i` vanishes where
//!
//! ```text
//! log u_i = log a_i - tau_x s_i,      s = log K v,      tau = rho / (rho + eps)
//! ```
//!
//! and the marginal is then `u_i (K v)_i = a_i exp((1 - tau_x) s_i)`.
//!
//! **Gauge.** In coordinates in which the cost is `C = C' + p_i + q_j + c` (`coordinates/gauge.rs`; for a cost matrix `c` is
//! its smallest entry) the kernel has `f' = f - p / eps`, `g' = g - (q + c) / eps`, so `s' = s + p / eps`:
//!
//! ```text
//! f'_i = w_i - tau_x s'_i,    w = log a - (1 - tau_x) p / eps
//! ```
//!
//! and the same for `g'` with `q + c`: that is all that kernels need to know ([`Relaxed`]).
//!
//! **Constants.** Adding a constant to `g` only adds one to the next `f`. So all but the constants of the
//! potentials converges as if these did not exist, with the contraction of the kernel in Hilbert's metric
//! times `tau_x tau_y`; the constants alone are slow, with `tau_x tau_y`. Kernels therefore divide every new
//! marginal by its mass, and nothing leaves the range of the numbers. The constants are found at the end:
//! with `P` of mass 1 and normalised weights the dual value along shifts `x`, `y` of `phi / eps`, `psi / eps` is
//! largest where
//!
//! ```text
//! (1 + k_x) x + y = log sum_i a_i exp(-k_x phi_i / eps) - log m_b,      k = eps / rho
//! x + (1 + k_y) y = log sum_j b_j exp(-k_y psi_j / eps) - log m_a
//! ```
//!
//! (Séjourné, Vialard & Peyré, *Faster Unbalanced Optimal Transport*, 2022, have such shifts in every
//! iteration). So masses do not matter to the iteration at all, and the value is a lower bound always.
//!
//! **Errors of the kernel.** At the best shifts, multiplying `K` by `exp(l)` multiplies the mass `M` of the plan
//! by `exp(t l)`, `t = eps / R`, `R = rho_x + rho_y + eps`; and the derivative of the value by `l` is `-eps M`, so
//! that the value falls by `R M (exp(t l) - 1)`. The dual is monotone in `K`. Hence, if `|K_theta / K - 1| <= delta`
//! everywhere, `|U - U_theta| <= R M_theta (exp(t l) - 1)` with `l = -log(1 - delta)`, which is `eps l` in the limit
//! of the balanced problem: [`Dual::bound`]. The value itself is `R (M_0 - M)` with a constant `M_0`, so that `M` only
//! falls on the way to convergence, and the bound holds at any time.
//!
//! **Convergence.** With the marginal `p` of a plan and `e = a exp(-phi / rho)`, what it would be at convergence, the
//! dual value is too low by at most, side by side (Fenchel and Young, or concavity),
//!
//! ```text
//! rho KL(p | e)      or      |p - e|_1 / 2 times the range of prices
//! ```
//!
//! whichever is less: [`Unbalanced::shortfall`]. If a marginal is kept, `e = a` and there is the second only.
//!
//! **Divergence.** `S = U(a, b) - (U(a, a) + U(b, b)) / 2 + eps (m_a - m_b)^2 / 2` (Séjourné, Feydy, Vialard, Trouvé &
//! Peyré, *Sinkhorn divergences for unbalanced optimal transport*, 2019) is positive, and zero only for
//! equal measures, if both `rho` are the same.

use crate::comm::Span;
use crate::kernel::{Relaxed, Target};

/// One cloud of a term, with the marginal that it should have.
#[derive(Debug, Clone)]
pub(crate) struct Margin {
    /// The points, among those of all processes.
    span: Span,
    /// Of sum 1.
    weights: Vec<f64>,
    mass: f64,
    /// Infinite where the marginal is given.
    rho: f64,
    slack: f64,
    /// `log u` where `phi` is zero: `log a - p / eps`.
    zero: Vec<f64>,
    /// `w`.
    logs: Vec<f64>,
}

impl Margin {
    /// Weights of sum 1 and their mass; `p` and `c` of the coordinates, in the units of the cost.
    pub(crate) fn new(
        (weights, span): (&[f64], &Span),
        mass: f64,
        rho: f64,
        epsilon: f64,
        offsets: Option<&[f64]>,
        constant: f64,
    ) -> Self {
        // eps / (rho + eps), also where the sum overflows.
        let slack = 1.0 / (rho / epsilon + 1.0);
        let at = |part: f64| -> Vec<f64> {
            let moved = |i: usize| offsets.map_or(0.0, |p| p[i]) + constant;
            weights.iter().enumerate().map(|(i, a)| a.ln() - part * moved(i) / epsilon).collect()
        };
        let (zero, logs) = (at(1.0), at(slack));
        Margin { span: span.clone(), weights: weights.to_vec(), mass, rho, slack, zero, logs }
    }

    /// What the coordinates add to `phi / eps` at a point.
    fn moved(&self, i: usize) -> f64 {
        self.weights[i].ln() - self.zero[i]
    }

    /// Some of the points, of equal weights and the same mass.
    fn some(&self, points: &[usize]) -> Self {
        let weight = 1.0 / points.len() as f64;
        let at = |part: f64| points.iter().map(|&i| weight.ln() - part * self.moved(i)).collect();
        Margin {
            span: Span::alone(points.len()),
            weights: vec![weight; points.len()],
            zero: at(1.0),
            logs: at(self.slack),
            ..*self
        }
    }

    fn target(&self) -> Target<'_> {
        let relaxed = Relaxed { slack: self.slack, logs: &self.logs };
        Target { weights: &self.weights, relaxed: self.rho.is_finite().then_some(relaxed) }
    }

    /// `phi / eps` of a point, but for a shift.
    fn relative(&self, f: &[f64], i: usize) -> f64 {
        f[i] - self.zero[i]
    }

    /// `log sum_i a_i exp(-k phi_i / eps)`.
    fn log_moment(&self, f: &[f64], k: f64) -> f64 {
        if k == 0.0 {
            return 0.0;
        }
        let exponent = |i: usize| -k * self.relative(f, i);
        // Where all is near 1, by the differences from it.
        if self.span.max(|i| exponent(i).abs()) < 0.5 {
            return self.span.sum(|i| self.weights[i] * exponent(i).exp_m1()).ln_1p();
        }
        self.span.log_sum(|i| self.weights[i].ln() + exponent(i))
    }

    /// `rho a.(1 - exp(-phi / rho))`, or `a.phi`.
    fn term(&self, f: &[f64], k: f64, shift: f64, epsilon: f64) -> f64 {
        if k == 0.0 {
            let price = |i: usize| self.weights[i] * (self.relative(f, i) + shift);
            return epsilon * self.mass * self.span.sum(price);
        }
        let lost = |i: usize| {
            let (a, exponent) = (self.weights[i], -k * (self.relative(f, i) + shift));
            if exponent.abs() < 1.0 {
                -a * exponent.exp_m1()
            } else {
                // Weights may be tiny where the exponential is huge.
                a - (a.ln() + exponent).exp()
            }
        };
        self.rho * self.mass * self.span.sum(lost)
    }
}

/// An unbalanced problem, in the coordinates of its term.
#[derive(Debug, Clone)]
pub(crate) struct Unbalanced {
    epsilon: f64,
    /// One for a cloud with itself.
    sides: Vec<Margin>,
}

/// Potentials at the shifts of the largest dual value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dual {
    /// What is to be added to `log u` and `log v` of the plan of mass 1.
    pub(crate) shifts: [f64; 2],
    /// `U`.
    pub(crate) value: f64,
    /// Of the plan.
    pub(crate) mass: f64,
    /// Sum of what the value is a sum of, in size.
    pub(crate) size: f64,
    epsilon: f64,
    /// `rho_x + rho_y + eps`.
    range: f64,
}

impl Dual {
    /// How far the value falls when the logarithms of all entries of the kernel rise by `log`.
    pub(crate) fn bound(&self, log: f64) -> f64 {
        if self.range.is_finite() {
            self.mass * self.range * (log * self.epsilon / self.range).exp_m1()
        } else {
            self.mass * self.epsilon * log
        }
    }
}

impl Dual {
    /// By how much the logarithms of all entries of the kernel have to fall for the value to rise by `change`: the inverse
    /// of minus [`Dual::bound`] of minus that. Infinite for more than there is.
    pub(crate) fn fall_for(&self, change: f64) -> f64 {
        if self.range.is_finite() {
            -(-change / (self.mass * self.range)).max(-1.0).ln_1p() * self.range / self.epsilon
        } else {
            change / (self.mass * self.epsilon)
        }
    }
}

impl Unbalanced {
    pub(crate) fn new(epsilon: f64, sides: Vec<Margin>) -> Self {
        Unbalanced { epsilon, sides }
    }

    /// The problem of samples of the clouds, of equal weights and the same masses.
    pub(crate) fn sample(&self, points: [&[usize]; 2]) -> Self {
        let sides = self.sides.iter().zip(points).map(|(side, points)| side.some(points));
        Unbalanced { epsilon: self.epsilon, sides: sides.collect() }
    }

    /// The mass of a cloud.
    pub(crate) fn mass(&self, which: usize) -> f64 {
        self.side(which).mass
    }

    /// `eps / rho` of a side, zero where the marginal is kept.
    pub(crate) fn ratio(&self, which: usize) -> f64 {
        self.epsilon / self.side(which).rho
    }

    /// What the coordinates add to `phi / eps` of a cloud, point by point.
    pub(crate) fn moved(&self, which: usize) -> Vec<f64> {
        let side = self.side(which);
        (0..side.weights.len()).map(|i| side.moved(i)).collect()
    }

    /// Of the first or the second cloud.
    fn side(&self, which: usize) -> &Margin {
        &self.sides[which.min(self.sides.len() - 1)]
    }

    pub(crate) fn target(&self, which: usize) -> Target<'_> {
        self.side(which).target()
    }

    /// The dual of potentials whose plan has this mass (a logarithm).
    pub(crate) fn dual(&self, f: &[f64], g: &[f64], log_mass: f64) -> Dual {
        let (x, y) = (self.side(0), self.side(1));
        let [kx, ky] = [x, y].map(|side| self.epsilon / side.rho);
        let (la, lb) = (x.mass.ln(), y.mass.ln());
        let right_x = x.log_moment(f, kx) - lb - log_mass;
        let right_y = y.log_moment(g, ky) - la - log_mass;
        let determinant = kx + ky + kx * ky;
        let shift_x = (right_x - right_y + ky * right_x) / determinant;
        let shift_y = (right_y - right_x + kx * right_y) / determinant;
        let mass = (la + lb + shift_x + shift_y + log_mass).exp();
        let terms = [x.term(f, kx, shift_x, self.epsilon), y.term(g, ky, shift_y, self.epsilon)];
        let product = x.mass * y.mass;
        Dual {
            shifts: [shift_x + la, shift_y + lb],
            value: terms[0] + terms[1] + self.epsilon * (product - mass),
            mass,
            size: terms[0].abs() + terms[1].abs() + self.epsilon * (product + mass),
            epsilon: self.epsilon,
            range: x.rho + y.rho + self.epsilon,
        }
    }

    /// The best `g` for a given `f` with sums `s = log K^T u`.
    pub(crate) fn transform(&self, s: &[f64]) -> Vec<f64> {
        let side = self.side(1);
        s.iter().zip(&side.logs).map(|(s, w)| w - (1.0 - side.slack) * s).collect()
    }

    /// At most how far the value is from that of converged potentials, if no prices of these differ by more than
    /// `ranges` from those that there are.
    pub(crate) fn shortfall(
        &self,
        dual: &Dual,
        potentials: [&[f64]; 2],
        marginals: [&[f64]; 2],
        ranges: [f64; 2],
    ) -> f64 {
        let of = |which: usize| {
            let side = self.side(which);
            let (k, shift) = (self.epsilon / side.rho, dual.shifts[which] - side.mass.ln());
            let [divergence, apart] = side.span.sums(|i| {
                let (a, h) = (side.weights[i], side.relative(potentials[which], i));
                let log = side.mass.ln() + a.ln() - k * (h + shift);
                let p = dual.mass * marginals[which][i];
                [relative_entropy(p, log), (p - log.exp()).abs()]
            });
            let by_prices = 0.5 * apart * ranges[which];
            if side.rho.is_finite() { by_prices.min(side.rho * divergence) } else { by_prices }
        };
        of(0) + of(1)
    }

    /// Of the weights of the first cloud times those of the second, summed.
    pub(crate) fn mass_product(&self) -> f64 {
        self.side(0).mass * self.side(1).mass
    }

    /// `sum_i p_i log a_i` of a marginal `p`, with the weights as given.
    pub(crate) fn log_weights(&self, which: usize, marginal: &[f64]) -> f64 {
        let side = self.side(which);
        let [logs, mass] = side.span.sums(|i| [marginal[i] * side.weights[i].ln(), marginal[i]]);
        logs + side.mass.ln() * mass
    }

    /// L1 distance of `mass` times a distribution from the weights as given.
    pub(crate) fn gap(&self, which: usize, distribution: &[f64], mass: f64) -> f64 {
        let side = self.side(which);
        side.span.sum(|i| (mass * distribution[i] - side.mass * side.weights[i]).abs())
    }

    /// `tau` of a side: what potentials at points of weight zero are multiplied by.
    pub(crate) fn tau(&self, which: usize) -> f64 {
        1.0 - self.side(which).slack
    }
}

/// `p log(p / e) - p + e`, `log` that of `e`, or a little more.
fn relative_entropy(p: f64, log: f64) -> f64 {
    let e = log.exp();
    let x = e / p - 1.0;
    if p == 0.0 {
        e
    } else if x.abs() < 1e-3 {
        // Where nearly all cancels: p (x - log(1 + x)).
        p * x * x / (2.0 * (1.0 - x.abs()))
    } else {
        p * (p.ln() - log) - p + e
    }
}

/// The marginals that a plan should have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal<'a> {
    pub(crate) a: &'a [f64],
    pub(crate) b: &'a [f64],
    /// The points of both clouds, among those of all processes.
    pub(crate) spans: [&'a Span; 2],
    pub(crate) unbalanced: Option<&'a Unbalanced>,
}

impl<'a> Goal<'a> {
    pub(crate) fn targets(&self) -> [Target<'a>; 2] {
        match self.unbalanced {
            None => [Target::fixed(self.a), Target::fixed(self.b)],
            Some(unbalanced) => [unbalanced.target(0), unbalanced.target(1)],
        }
    }

    /// The dual value, if the plan has mass 1; `offset` is what the coordinates add to it.
    pub(crate) fn value(&self, f: &[f64], g: &[f64], epsilon: f64, offset: f64) -> f64 {
        match self.unbalanced {
            None => {
                let [x, y] = self.spans;
                let prices = x.sum(|i| self.a[i] * f[i]) + y.sum(|j| self.b[j] * g[j]);
                epsilon * prices + offset
            }
            Some(unbalanced) => unbalanced.dual(f, g, 0.0).value,
        }
    }
}
