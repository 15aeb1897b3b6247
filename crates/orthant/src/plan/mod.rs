//! The coupling of two clouds, never stored.

#[cfg(feature = "serde")]
mod kept;
mod maps;

#[cfg(feature = "serde")]
pub use kept::KeptPlan;
pub use maps::{MOST_LABELS, Vote};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Open01};

use crate::control::memory;
use crate::error::{Error, Result};
use crate::gradient::Gradient;
use crate::measure::Measure;
use crate::problem::Problem;
use crate::results::{DENSE_LIMIT, Divergence, Solution};
use crate::term::{Scaling, TermPlan};
use crate::words::{Shape, Side, Term};

/// The plan `P = diag(u) K diag(v)` of a solve: how much mass goes from point `i` of the first cloud to point `j` of
/// the second. Made by [`plan`](crate::plan()) or [`Solver::plan`](crate::Solver::plan).
///
/// It keeps potentials and what the kernel is made of, a few numbers a point; entries are computed when they are
/// asked for, in double precision. `K` is the kernel that was used: for features theirs, for exact methods the exact
/// one. Points are counted from 0, as they were given; those of weight zero have rows and columns of zeros. The plan
/// is taken as it is: before convergence its marginals are not the weights. If a marginal is relaxed
/// ([`rho_x`](crate::options::OptionsBuilder::rho_x)) the plan has the mass that goes with the weights as given.
///
/// | | features, rank `r` | lattice | exact |
/// |---|---|---|---|
/// | an entry | `r` | axes | axes |
/// | a row, a column | `m r`, `n r` | `m`, `n` | `m`, `n` |
/// | marginals | `(n + m) r` | like an iteration | `n m` |
/// | `s` samples | `(n + m) r + s log s` | like some iterations, `+ s log s` | `n m`, and `m` a row that is drawn |
/// | means, maps, votes: a column | `(n + m) r` | like some iterations | `n m` |
/// | all partners | `n m r` | `n m` | `n m` |
///
/// Plans of [`Method::Sampled`](crate::Method::Sampled) are exact ones of points that were drawn in place of the other cloud
/// where sums over it are asked for: marginals, samples, means and maps take the time of the draws. Entries, rows and partners
/// are of all points.
pub struct Plan<'p> {
    problem: Problem<'p>,
    scaling: Scaling,
    solution: Solution,
}

/// The same for the pairs of a sample, and what each needs while it is drawn.
const SAMPLE_LIMIT: u64 = 1 << 36;
const PAIR: f64 = 160.0;

impl<'p> Plan<'p> {
    pub(crate) fn new(problem: Problem<'p>, scaling: Scaling, solution: Solution) -> Self {
        Plan { problem, scaling, solution }
    }

    fn coupling(&self) -> TermPlan<'_> {
        self.problem.plan(Term::Cross, &self.scaling)
    }

    /// The solution that the plan belongs to: values, potentials, errors, why it stopped.
    pub fn solution(&self) -> &Solution {
        &self.solution
    }

    /// The solution alone.
    pub fn into_solution(self) -> Solution {
        self.solution
    }

    /// The derivatives of [`Solution::value_kl`], or of `value`, by points, weights, epsilon, anchors, features and the
    /// kernel. That by the costs is the plan itself.
    pub fn gradient(&self) -> Gradient<'_> {
        Gradient::new(&self.problem, [(Term::Cross, 1.0, &self.scaling, &self.solution)])
    }

    /// Points of the first cloud by points of the second.
    pub fn shape(&self) -> Shape {
        let [rows, columns] = self.problem.measures().map(|m| m.weights().len());
        Shape { rows, columns }
    }

    /// The sum of all entries, computed: 1, or [`Solution::mass`] if a marginal is relaxed.
    pub fn mass(&self) -> Result<f64> {
        let sums = self.coupling().sums(Side::X)?;
        let [mu, _] = self.problem.measures();
        Ok(mu.support().points.span().sum(|i| sums[i]))
    }

    /// `P_ij`. For many entries of a row ask for the [`row`](Plan::row).
    pub fn entry(&self, i: usize, j: usize) -> Result<f64> {
        Ok(match (self.place(Side::X, i)?, self.place(Side::Y, j)?) {
            (Some(i), Some(j)) => self.coupling().entry(i, j),
            _ => 0.0,
        })
    }

    /// The entries `P_i0, P_i1, ...` of row `i`: where the mass of a point of the first cloud goes.
    pub fn row(&self, i: usize) -> Result<Vec<f64>> {
        self.strip(Side::X, i)
    }

    /// The entries `P_0j, P_1j, ...` of column `j`: where the mass of a point of the second cloud comes from.
    pub fn column(&self, j: usize) -> Result<Vec<f64>> {
        self.strip(Side::Y, j)
    }

    /// The `count` largest entries of row `i` with their columns, the largest first; fewer if fewer are positive.
    pub fn top(&self, i: usize, count: usize) -> Result<Vec<(usize, f64)>> {
        let row = self.row(i)?;
        let mut entries: Vec<(usize, f64)> =
            row.into_iter().enumerate().filter(|(_, mass)| *mass > 0.0).collect();
        let order = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if (1..entries.len()).contains(&count) {
            entries.select_nth_unstable_by(count - 1, order);
        }
        entries.truncate(count);
        entries.sort_unstable_by(order);
        Ok(entries)
    }

    /// The sums of the rows and those of the columns, computed: at convergence they are the weights, but for marginals
    /// that are relaxed.
    pub fn marginals(&self) -> Result<[Vec<f64>; 2]> {
        let of = |cloud: Side| {
            let sums = self.coupling().sums(cloud)?;
            Ok(with_zeros(self.measure(cloud), sums))
        };
        Ok([of(Side::X)?, of(Side::Y)?])
    }

    /// `<P, C>`: [`Solution::transport_cost`], and where the cost is defined by features and all pairs were too many
    /// for the solve, now over all pairs.
    pub fn transport_cost(&self) -> f64 {
        self.solution.transport_cost.unwrap_or_else(|| self.coupling().cost())
    }

    /// `count` pairs `[i, j]`, drawn independently with the probabilities `P_ij / mass`: coupled points.
    ///
    /// They are exact draws, up to rounding, also for features and lattices, and need no row of the plan there: a
    /// feature is drawn by its mass, and a point of either cloud given the feature. That takes four passes over the
    /// features, whatever the count, so ask for all pairs at once and take them in turn: they come in random order,
    /// and the first ones of a longer sample are those of a shorter one. For exact kernels a row is drawn, and a
    /// column in it: all pairs once for the marginal, and the rows that were drawn. The same seed gives the same
    /// pairs on any number of threads.
    ///
    /// For flow matching, draw the pairs of all batches at once and take them in `chunks`; another seed gives pairs
    /// that are independent of these.
    ///
    /// Plans of the Nystrom approximation have no samples: [`Error::SignedPlan`].
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<[usize; 2]>> {
        self.check_bytes("the pairs", PAIR * count as f64, SAMPLE_LIMIT, "draw fewer at a time")?;
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = || -> f64 { Open01.sample(&mut rng) };
        let draws: Vec<[f64; 3]> = (0..count).map(|_| [draw(), draw(), draw()]).collect();
        let mut pairs = self.coupling().sample(&draws)?;
        let kept = self.problem.measures().map(|measure| measure.indices(true));
        for (c, kept) in kept.into_iter().enumerate() {
            if let Some(kept) = kept {
                for pair in &mut pairs {
                    pair[c] = kept[pair[c]];
                }
            }
        }
        Ok(pairs)
    }

    /// All `n m` entries, row-major. Refused above [`DENSE_LIMIT`], or above the
    /// [`max_memory`](crate::options::OptionsBuilder::max_memory) of the options.
    pub fn to_dense(&self) -> Result<Vec<f64>> {
        let Shape { rows, columns } = self.shape();
        self.check_bytes(
            "the plan",
            8.0 * rows as f64 * columns as f64,
            DENSE_LIMIT,
            "ask for rows, columns or samples of it, or raise max_memory",
        )?;
        let entries = self.coupling().dense();
        let [mu, nu] = self.problem.measures();
        if mu.outside().is_none() && nu.outside().is_none() {
            return Ok(entries);
        }
        let mut out = vec![0.0; rows * columns];
        let width = nu.support().weights.len();
        let rows = (0..rows).filter(|&i| mu.weights()[i] > 0.0);
        for (i, row) in rows.zip(entries.chunks_exact(width)) {
            let all = with_zeros(nu, row.to_vec());
            out[i * columns..(i + 1) * columns].copy_from_slice(&all);
        }
        Ok(out)
    }

    fn strip(&self, cloud: Side, i: usize) -> Result<Vec<f64>> {
        let other = self.measure(if cloud == Side::X { Side::Y } else { Side::X });
        Ok(match self.place(cloud, i)? {
            Some(i) => with_zeros(other, self.coupling().strip(cloud, i)),
            None => vec![0.0; other.weights().len()],
        })
    }

    fn measure(&self, cloud: Side) -> &Measure<'p> {
        self.problem.measures()[cloud as usize]
    }

    /// Where a point is in its support, if it is there.
    fn place(&self, cloud: Side, index: usize) -> Result<Option<usize>> {
        let measure = self.measure(cloud);
        let len = measure.weights().len();
        if index >= len {
            let what = if cloud == Side::X { "row" } else { "column" };
            return Err(Error::Index { what, index, len });
        }
        Ok(match measure.indices(true) {
            None => Some(index),
            Some(kept) => kept.binary_search(&index).ok(),
        })
    }

    fn check_bytes(
        &self,
        what: &'static str,
        bytes: f64,
        limit: u64,
        remedy: &'static str,
    ) -> Result<()> {
        memory::check(what, bytes, self.problem.max_memory().or(Some(limit)), remedy)?;
        // That much is allowed; it must be there, too.
        memory::check(what, bytes, None, remedy)
    }
}

impl std::fmt::Debug for Plan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan")
            .field("shape", &self.shape())
            .field("method", &self.solution.method)
            .finish_non_exhaustive()
    }
}

/// The plans of the three terms of a divergence, as far as its [gradient](Plans::gradient) goes. Made by
/// [`plans`](crate::plans()) or [`Solver::plans`](crate::Solver::plans).
pub struct Plans<'p> {
    problem: Problem<'p>,
    /// As [`Divergence::terms`] has them.
    scalings: [Scaling; 3],
    divergence: Divergence,
}

impl<'p> Plans<'p> {
    pub(crate) fn new(
        problem: Problem<'p>,
        scalings: [Scaling; 3],
        divergence: Divergence,
    ) -> Self {
        Plans { problem, scalings, divergence }
    }

    /// The divergence and the solutions of its terms.
    pub fn divergence(&self) -> &Divergence {
        &self.divergence
    }

    /// The divergence alone.
    pub fn into_divergence(self) -> Divergence {
        self.divergence
    }

    /// The derivatives of [`Divergence::value`] by points, weights, epsilon, anchors and features. For a gradient flow
    /// start the next divergence [from this one](crate::Solver::warm_start_divergence).
    pub fn gradient(&self) -> Gradient<'_> {
        let [cross, x, y] = &self.scalings;
        let Divergence { cross: of_cross, self_x, self_y, .. } = &self.divergence;
        let terms = [
            (Term::Cross, 1.0, cross, of_cross),
            (Term::SelfX, -0.5, x, self_x),
            (Term::SelfY, -0.5, y, self_y),
        ];
        Gradient::new(&self.problem, terms)
    }
}

impl std::fmt::Debug for Plans<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plans").field("divergence", &self.divergence.value).finish_non_exhaustive()
    }
}

/// Values on the support of a measure, and zeros at its points of weight zero.
fn with_zeros(measure: &Measure<'_>, support: Vec<f64>) -> Vec<f64> {
    let outside = measure.indices(false).map_or(0, <[usize]>::len);
    measure.scatter(support, &vec![0.0; outside])
}
