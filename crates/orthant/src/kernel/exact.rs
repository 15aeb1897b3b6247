//! Exact kernels: rows `log k(x_i, y_j)` over the points of the other cloud.
//!
//! The message from the second cloud is its potential `g`, the one back is `log K^T u`. So a whole
//! iteration is one pass over the rows, stored ([`Stored`](super::Stored), the dense method) or
//! evaluated on the way ([`Recomputed`](super::Recomputed), the online method).

use super::{
    Arranged, Between, Builds, ExactHalf, HalfKernel, Kernel, Marginal, Ordered, Pass, Target,
};
use crate::comm::Span;
use crate::error::{Error, Result};
use crate::words::Side;

/// The kernel between two clouds.
struct Exact<S> {
    x: S,
    /// The points of the second cloud, all of them.
    columns: Span,
    g: Vec<f64>,
    /// `log K^T u`.
    message: Vec<f64>,
}

impl<S: HalfKernel> Exact<S> {
    fn new(x: S) -> Self {
        let columns = x.rank();
        Exact {
            x,
            columns: Span::alone(columns),
            g: vec![f64::NEG_INFINITY; columns],
            message: vec![0.0; columns],
        }
    }
}

/// An exact kernel: all pairs of points.
pub(crate) trait AllPairs: Kernel + Pass {
    /// Mean of `log k` under the plan: `-<P, C> / eps`.
    fn expected_log(&mut self) -> f64;
}

/// The kernel with these rows, of a cloud with itself or between two.
pub(crate) fn exact<'s, S: ExactHalf + 's>(side: S, is_self: bool) -> Box<dyn AllPairs + 's> {
    if is_self { Box::new(ExactSelf::new(side)) } else { Box::new(Exact::new(side)) }
}

impl<S: ExactHalf> AllPairs for Exact<S> {
    fn expected_log(&mut self) -> f64 {
        self.x.expected_log(&self.g)
    }
}

/// Makes sure that `side` can work with a message; potentials are always complete.
fn prepare<S: HalfKernel>(side: &mut S, message: &[f64]) -> Result<()> {
    if side.needs_rebuild(message) { side.rebuild(message) } else { Ok(()) }
}

/// `f_i <- next(f_i, w_i - tau s_i)` at the points of a span, with sums `s` (logarithms); returns the change of the
/// marginal.
fn advance(
    f: &mut [f64],
    s: &[f64],
    a: Target<'_>,
    span: &Span,
    next: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mass = a.relaxed.map_or(0.0, |relaxed| relaxed.log_mass(s, span));
    let log = |i: usize| match a.relaxed {
        None => a.weights[i].ln(),
        Some(relaxed) => relaxed.log_marginal(i, s[i]) - mass,
    };
    let marginal = |i: usize| a.relaxed.map_or_else(|| a.weights[i], |_| log(i).exp());
    let error = span.sum(|i| ((f[i] + s[i]).exp() - marginal(i)).abs());
    for (i, (f, s)) in f.iter_mut().zip(s).enumerate() {
        *f = next(*f, log(i) - s);
    }
    error
}

impl<S: HalfKernel> Kernel for Exact<S> {
    fn spans(&self) -> [&Span; 2] {
        [self.x.span(), &self.columns]
    }

    fn start(&mut self, f: &[f64]) -> Result<()> {
        self.x.set_potential(f);
        self.x.message(f, &mut self.message);
        Ok(())
    }

    fn update_y(&mut self, b: Ordered<'_>) -> Result<f64> {
        if let Some(j) = self.message.iter().position(|s| !s.is_finite()) {
            return Err(Error::Breakdown {
                iteration: 0,
                cloud: Side::Y,
                row: j + 1,
                value: self.message[j].exp(),
                remedy: "the kernel must be positive",
            });
        }
        Ok(advance(&mut self.g, &self.message, b.get(), &self.columns, |_, new| new))
    }

    fn update_x(&mut self, a: Ordered<'_>) -> Result<f64> {
        prepare(&mut self.x, &self.g)?;
        let error = self.x.update(&self.g, a, &mut self.message)?;
        // Every column matters here: it is a point.
        self.x.complete(&mut self.message);
        Ok(error)
    }

    fn messages(&mut self) -> (&mut [f64], &[f64]) {
        (&mut self.g, &self.message)
    }

    fn go_back(&mut self, z: &[f64]) {
        self.g.copy_from_slice(z);
    }

    fn between(&mut self) -> Option<&mut dyn Between> {
        Some(self)
    }

    fn potentials(&self, f: &mut [f64], g: &mut [f64]) {
        self.x.potential(f);
        g.copy_from_slice(&self.g);
    }

    fn marginals(&mut self, a: Target<'_>, b: Target<'_>) -> Result<[Marginal; 2]> {
        prepare(&mut self.x, &self.g)?;
        let (mut f, mut s) = (vec![0.0; self.rows()], vec![0.0; self.rows()]);
        self.x.potential(&mut f);
        self.x.log_apply(&self.g, &mut s)?;
        let y = Marginal::of(&self.g, &self.message, b, &self.columns);
        Ok([Marginal::of(&f, &s, a, self.x.span()), y])
    }

    fn builds(&self) -> Builds {
        self.x.builds()
    }
}

impl<S: HalfKernel> Between for Exact<S> {
    fn products(
        &mut self,
        f: &[f64],
        g: &[f64],
        whole: bool,
        rows: &mut [f64],
        columns: &mut [f64],
    ) -> Result<()> {
        prepare(&mut self.x, g)?;
        self.x.set_potential(f);
        if whole {
            self.x.message(f, columns);
            return self.x.log_apply(g, rows);
        }
        self.x.exchange(g, rows, columns)?;
        self.x.complete(columns);
        Ok(())
    }

    fn depth(&self) -> f64 {
        self.x.depth()
    }

    fn column_sums(&mut self, out: &mut [f64]) -> Result<()> {
        out.copy_from_slice(&self.message);
        Ok(())
    }
}

impl<S: HalfKernel> Pass for Exact<S> {
    fn begin(&mut self, f: &[f64], b: Target<'_>, z: &mut [f64]) -> Result<()> {
        self.start(f)?;
        self.update_y(Arranged::same(b).ordered())?;
        z.copy_from_slice(&self.g);
        Ok(())
    }

    fn pass(&mut self, z: &[f64], a: Target<'_>) -> Result<&[f64]> {
        self.g.copy_from_slice(z);
        self.update_x(Arranged::same(a).ordered())?;
        Ok(&self.message)
    }

    fn share(&self) -> f64 {
        1.0
    }

    fn potentials<'k>(&'k self, f: &'k mut [f64]) -> (&'k [f64], &'k [f64], f64) {
        self.x.potential(f);
        (f, &self.g, 0.0)
    }

    fn finish(&mut self, b: Target<'_>) -> Result<()> {
        self.update_y(Arranged::same(b).ordered())?;
        Ok(())
    }
}

/// The kernel of a cloud with itself.
struct ExactSelf<S> {
    x: S,
    f: Vec<f64>,
    /// `log K u`.
    sums: Vec<f64>,
}

impl<S: HalfKernel> ExactSelf<S> {
    fn new(x: S) -> Self {
        let rows = x.rows();
        ExactSelf { x, f: vec![0.0; rows], sums: vec![0.0; rows] }
    }

    fn apply(&mut self) -> Result<()> {
        prepare(&mut self.x, &self.f)?;
        self.x.log_apply(&self.f, &mut self.sums)
    }

    /// The logarithm of the mass of the plan.
    fn log_mass(&self) -> f64 {
        let (f, sums) = (&self.f, &self.sums);
        self.x.span().log_sum(|i| f[i] + sums[i])
    }

    /// The mean of the potential and the next one; returns the change of the marginal.
    fn average(&mut self, a: Target<'_>) -> f64 {
        let mean = |old: f64, new: f64| 0.5 * (old + new);
        advance(&mut self.f, &self.sums, a, self.x.span(), mean)
    }
}

impl<S: ExactHalf> AllPairs for ExactSelf<S> {
    fn expected_log(&mut self) -> f64 {
        self.x.set_potential(&self.f);
        self.x.expected_log(&self.f)
    }
}

impl<S: HalfKernel> Pass for ExactSelf<S> {
    fn begin(&mut self, f: &[f64], _: Target<'_>, z: &mut [f64]) -> Result<()> {
        self.start(f)?;
        z.copy_from_slice(&self.f);
        Ok(())
    }

    fn pass(&mut self, z: &[f64], _: Target<'_>) -> Result<&[f64]> {
        self.f.copy_from_slice(z);
        self.apply()?;
        Ok(&self.sums)
    }

    fn share(&self) -> f64 {
        0.5
    }

    fn potentials<'k>(&'k self, _: &'k mut [f64]) -> (&'k [f64], &'k [f64], f64) {
        // The best along a common shift of both potentials: that of the plan of mass 1.
        let log_mass = self.log_mass();
        (&self.f, &self.f, -log_mass)
    }

    fn finish(&mut self, a: Target<'_>) -> Result<()> {
        self.average(a);
        Ok(())
    }
}

impl<S: HalfKernel> Kernel for ExactSelf<S> {
    fn spans(&self) -> [&Span; 2] {
        [self.x.span(); 2]
    }

    fn start(&mut self, f: &[f64]) -> Result<()> {
        self.f.copy_from_slice(f);
        self.apply()?;
        // A plan of mass 1: the mean with the next scaling is then of a sane size.
        let half_mass = 0.5 * self.log_mass();
        for f in &mut self.f {
            *f -= half_mass;
        }
        Ok(())
    }

    fn update_x(&mut self, _: Ordered<'_>) -> Result<f64> {
        Ok(0.0)
    }

    fn update_y(&mut self, a: Ordered<'_>) -> Result<f64> {
        self.apply()?;
        Ok(self.average(a.get()))
    }

    fn potentials(&self, f: &mut [f64], g: &mut [f64]) {
        f.copy_from_slice(&self.f);
        g.copy_from_slice(&self.f);
    }

    fn marginals(&mut self, a: Target<'_>, _: Target<'_>) -> Result<[Marginal; 2]> {
        self.apply()?;
        let marginal = Marginal::of(&self.f, &self.sums, a, self.x.span());
        Ok([marginal.clone(), marginal])
    }

    fn builds(&self) -> Builds {
        self.x.builds()
    }
}
