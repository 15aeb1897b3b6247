//! What points see of the other cloud through the kernel of the plan: potentials, means and partners, anywhere.
//!
//! At a point `x` of a cloud, or anywhere else, the plan has the conditional distribution
//!
//! ```text
//! p(y_j | x) = k(x, y_j) v_j / sum_l k(x, y_l) v_l
//! ```
//!
//! which needs the potential of the other cloud alone. With features `k(x, y) = sum_k phi_k(x) psi_k(y)` it is a mixture
//! over the features, and so is a mean of values `w_j` a mean of means,
//!
//! ```text
//! sum_j p(y_j | x) w_j = sum_k p(k | x) W_k,     W_k = sum_j psi_k(y_j) v_j w_j / sum_j psi_k(y_j) v_j
//! ```
//!
//! in linear time, and never outside what the values span.
//!
//! Features of the squared Euclidean cost are made for pairs of the clouds: beyond the box of a cloud nothing is known
//! of their kernel. There the exact one takes over, which takes all points of the other cloud.

use super::stage::{Placement, Stage};
use super::{Ground, Problem, Scaling, Storage, log_pass};
use crate::anchors::Lattice;
use crate::coordinates::{Frame, check_reach};
use crate::error::{Error, Result};
use crate::features::{Mapped, SquaredEuclidean};
use crate::kernel::{LogPass, Nearly, Separable, Side};
use crate::measure::{Points, extremes};
use crate::numerics::Partition;
use crate::numerics::simd::{self, Float};
use crate::rows::{FeatureCost, Guarded, LogRows};
use crate::words::{Cloud, Part, Term};

/// The one term that has a plan of two clouds.
const TERM: Term = Term::Cross;
/// Chunks of rows that are as long as a cloud.
const CHUNKS: usize = 32;

/// Where to look from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum At<'a> {
    /// From points of the cloud itself.
    Part(Part),
    /// From others, in the coordinates of the user.
    New(&'a Points<'a>),
}

/// What points see.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// `log sum_j k(x, y_j) v_j`.
    sums: Vec<f64>,
    /// Means of columns of values, a row a point.
    pub(crate) means: Vec<f64>,
}

impl View {
    fn new(points: usize, columns: usize) -> Self {
        View { sums: vec![0.0; points], means: vec![0.0; points * columns] }
    }

    /// How many they are.
    pub(crate) fn points(&self) -> usize {
        self.sums.len()
    }

    /// Takes over what points at these places see.
    fn put(&mut self, places: &[usize], seen: &View) {
        let width = self.means.len() / self.sums.len();
        for (k, &i) in places.iter().enumerate() {
            self.sums[i] = seen.sums[k];
            self.means[i * width..(i + 1) * width]
                .copy_from_slice(&seen.means[k * width..(k + 1) * width]);
        }
    }
}

/// The largest partners of a point, with their probabilities.
type Partners = Vec<(usize, f64)>;

/// New points in the coordinates of the kernel.
struct Arrival<'a> {
    points: Points<'a>,
    /// What the gauge adds to the potential, in the user's units; nothing where it is zero.
    offsets: Option<Vec<f64>>,
    /// Points where the kernel of the plan is to be used, and where that of the cost.
    near: Vec<usize>,
    far: Vec<usize>,
}

impl Problem<'_> {
    /// Means of columns of values of the support of the other cloud, as points of a cloud see it.
    pub(crate) fn view(
        &self,
        scaling: &Scaling,
        cloud: Cloud,
        at: At<'_>,
        columns: &[Vec<f64>],
    ) -> Result<View> {
        let view = match at {
            At::New(points) => {
                self.view_from(scaling, cloud, &self.arrival(cloud, points)?, columns)?
            }
            At::Part(part) => self.view_of(scaling, cloud, part, columns)?,
        };
        self.check_partners(cloud, at, &view.sums)?;
        Ok(view)
    }

    /// The potential of a cloud as a function of position, in the KL form and in the units of the user.
    pub(crate) fn potential_at(
        &self,
        scaling: &Scaling,
        cloud: Cloud,
        points: &Points<'_>,
    ) -> Result<Vec<f64>> {
        let arrival = self.arrival(cloud, points)?;
        let View { mut sums, .. } = self.view_from(scaling, cloud, &arrival, &[])?;
        self.check_partners(cloud, At::New(points), &sums)?;
        let constant = if cloud == Cloud::Y { self.constant(TERM) } else { 0.0 };
        let shift = scaling.shifts[cloud.other() as usize];
        let tau = self.unbalanced(TERM).map_or(1.0, |u| u.tau(cloud as usize));
        for (i, sum) in sums.iter_mut().enumerate() {
            let offset = arrival.offsets.as_ref().map_or(0.0, |p| p[i]);
            *sum = tau * (constant + offset - self.options.epsilon * (*sum + shift));
        }
        if sums.iter().all(|p| p.is_finite()) {
            Ok(sums)
        } else {
            Err(Error::Overflow { what: "a potential" })
        }
    }

    /// The largest partners of points of a cloud in the support of the other, with their probabilities.
    pub(crate) fn partners(
        &self,
        scaling: &Scaling,
        cloud: Cloud,
        at: At<'_>,
        count: usize,
    ) -> Result<Vec<Partners>> {
        if self.storage == Storage::Nystrom {
            return Err(Error::SignedPlan);
        }
        let (other, g) = opposite(scaling, cloud);
        let rows = match (at, &self.ground) {
            (At::New(points), _) => {
                let arrival = self.arrival(cloud, points)?;
                let mut all = vec![Vec::new(); points.len()];
                let mut put = |places: &[usize], found: Vec<Partners>| {
                    for (i, found) in places.iter().zip(found) {
                        all[*i] = found;
                    }
                };
                if !arrival.near.is_empty() {
                    let points = arrival.points.select(&arrival.near);
                    put(&arrival.near, self.partners_from(scaling, cloud, &points, count)?);
                }
                if !arrival.far.is_empty() {
                    let points = arrival.points.select(&arrival.far);
                    let rows = self.exact_rows(cloud, &points)?;
                    put(&arrival.far, partners(&rows, g, count, None));
                }
                return Ok(all);
            }
            (At::Part(part), Ground::Matrix(_)) => self.entries(TERM, cloud, part, other),
            (At::Part(part), Ground::Explicit(..)) => Box::new(FeatureCost::new(
                self.features(TERM, cloud, part),
                self.features(TERM, other, Part::Support),
            )),
            (At::Part(part), _) => {
                return self.partners_from(scaling, cloud, &self.located(cloud, part), count);
            }
        };
        Ok(partners(&*rows, g, count, None))
    }

    /// Points of a cloud in the coordinates of the kernel.
    fn located(&self, cloud: Cloud, part: Part) -> Points<'_> {
        match self.stage(TERM) {
            Some(stage) => stage.points(cloud, part).borrowed(),
            None => self.points(cloud, part),
        }
    }

    /// [`Problem::view`] at points of the cloud.
    fn view_of(
        &self,
        scaling: &Scaling,
        cloud: Cloud,
        part: Part,
        columns: &[Vec<f64>],
    ) -> Result<View> {
        let (other, g) = opposite(scaling, cloud);
        match &self.ground {
            Ground::Matrix(_) => {
                Ok(exact_view(&*self.entries(TERM, cloud, part, other), g, columns))
            }
            Ground::Explicit(..) => {
                let rows = self.features(TERM, cloud, part);
                let others = self.features(TERM, other, Part::Support);
                Ok(feature_view(&*rows, &*others, g, columns))
            }
            Ground::Euclidean { .. } | Ground::Maps { .. } => self
                .view_through(scaling, cloud, &self.located(cloud, part), columns)
                .map_err(|error| self.in_user_rows(error, part, [cloud, other])),
        }
    }

    /// [`Problem::view`] at new points.
    fn view_from(
        &self,
        scaling: &Scaling,
        cloud: Cloud,
        arrival: &Arrival<'_>,
        columns: &[Vec<f64>],
    ) -> Result<View> {
        let Arrival { points, near, far, .. } = arrival;
        if far.is_empty() {
            return self.view_through(scaling, cloud, points, columns);
        }
        let mut all = View::new(points.len(), columns.len());
        if !near.is_empty() {
            let seen = self.view_through(scaling, cloud, &points.select(near), columns);
            all.put(near, &seen.map_err(|error| at_place(error, near))?);
        }
        let points = points.select(far);
        let (_, g) = opposite(scaling, cloud);
        all.put(far, &exact_view(&self.exact_rows(cloud, &points)?, g, columns));
        Ok(all)
    }

    /// Through the kernel of the plan, from points in its coordinates.
    fn view_through(
        &self,
        scaling: &Scaling,
        cloud: Cloud,
        points: &Points<'_>,
        columns: &[Vec<f64>],
    ) -> Result<View> {
        let (other, g) = opposite(scaling, cloud);
        let others = self.located(other, Part::Support);
        let map = match &self.ground {
            Ground::Maps { maps, .. } => [cloud, other].map(|c| &*maps[c as usize]),
            _ => match &self.euclidean().features {
                Placement::Exact => {
                    return Ok(exact_view(&self.exact_rows(cloud, points)?, g, columns));
                }
                Placement::Lattice(first) => {
                    let lattice = scaling.lattice.as_ref().unwrap_or(first);
                    return lattice_view(lattice, points, &others, g, columns);
                }
                Placement::Nystrom(factors) => {
                    let (sums, means) = factors.means(points, other, g, columns)?;
                    return Ok(View { sums, means });
                }
                Placement::Map(map) => [&**map; 2],
            },
        };
        let [rows, others] = [Mapped::new(map[0], points.borrowed()), Mapped::new(map[1], others)]
            .map(|rows| self.options.cancel.guard(rows));
        let mut view = feature_view(&rows, &others, g, columns);
        view.sums.iter_mut().for_each(|s| *s -= scaling.shift);
        Ok(view)
    }

    /// [`Problem::partners`] through the kernel of the plan, from points in its coordinates.
    fn partners_from(
        &self,
        scaling: &Scaling,
        cloud: Cloud,
        points: &Points<'_>,
        count: usize,
    ) -> Result<Vec<Partners>> {
        let (other, g) = opposite(scaling, cloud);
        let others = self.located(other, Part::Support);
        let map = match &self.ground {
            Ground::Maps { maps, .. } => [cloud, other].map(|c| &*maps[c as usize]),
            _ => match &self.euclidean().features {
                Placement::Map(map) => [&**map; 2],
                Placement::Lattice(first) if scaling.listed.is_none() => {
                    let lattice = scaling.lattice.as_ref().unwrap_or(first);
                    let View { sums, .. } = lattice_view(lattice, points, &others, g, &[])?;
                    let log = |i: usize, j: usize| {
                        lattice.log_kernel(|a| points.coordinate(i, a), |a| others.coordinate(j, a))
                    };
                    // Entries are within the ratio of those of the exact kernel, which are quick.
                    let ratio = lattice.ratio();
                    let slack =
                        if ratio < 1.0 { ratio.ln_1p() - (-ratio).ln_1p() } else { f64::INFINITY };
                    let nearly = Nearly { slack: slack + 1e-9, log: &log, sums: &sums };
                    return Ok(partners(&self.exact_rows(cloud, points)?, g, count, Some(&nearly)));
                }
                Placement::Lattice(_) => [scaling.listed.as_ref().expect("just seen") as _; 2],
                Placement::Exact | Placement::Nystrom(_) => {
                    return Ok(partners(&self.exact_rows(cloud, points)?, g, count, None));
                }
            },
        };
        let rows = FeatureCost::new(
            Box::new(self.options.cancel.guard(Mapped::new(map[0], points.borrowed()))),
            Box::new(Mapped::new(map[1], others)),
        );
        Ok(partners(&rows, g, count, None))
    }

    /// The stage of a squared Euclidean cost.
    fn euclidean(&self) -> &Stage {
        self.stage(TERM).expect("of costs that are functions of the points, all others have maps")
    }

    /// The kernel of the squared Euclidean cost over the other cloud, at points in the coordinates of the plan's.
    fn exact_rows<'a>(
        &'a self,
        cloud: Cloud,
        points: &'a Points<'_>,
    ) -> Result<Guarded<'a, SquaredEuclidean<'a>>> {
        let others = self.located(cloud.other(), Part::Support);
        let (frame, epsilon) = match &self.ground {
            Ground::Maps { frame: Some(frame), .. } => {
                (frame.clone(), frame.epsilon(self.options.epsilon)?)
            }
            _ => (Frame::unit(points.dim()), self.euclidean().gauge.epsilon()),
        };
        let rows = SquaredEuclidean::new(&frame, epsilon, points.borrowed(), &others);
        Ok(self.options.cancel.guard(rows))
    }

    /// Brings new points into the coordinates of the kernel.
    fn arrival<'a>(&self, cloud: Cloud, points: &'a Points<'_>) -> Result<Arrival<'a>> {
        let dim = self.measure(cloud).dim();
        if points.dim() != dim {
            return Err(Error::Dimensions { x: points.dim(), y: dim });
        }
        let all = |points, offsets| {
            let near = (0..Points::len(&points)).collect();
            Ok(Arrival { points, offsets, near, far: Vec::new() })
        };
        let (points, offsets, ends) = match &self.ground {
            Ground::Matrix(_) => return Err(Error::NoNewPoints { given: "a cost matrix" }),
            Ground::Explicit(..) => return Err(Error::NoNewPoints { given: "a feature matrix" }),
            Ground::Maps { maps, frame, .. } => {
                if let Some(frame) = frame {
                    let epsilon = frame.epsilon(self.options.epsilon)?;
                    check_reach(frame, points, 0..points.len(), epsilon)?;
                }
                maps[cloud as usize].check(points)?;
                if frame.is_none() || self.is_exact() {
                    return all(points.borrowed(), None);
                }
                (points.borrowed(), None, extremes(self.measure(cloud).points()))
            }
            Ground::Euclidean { .. } => {
                let stage = self.euclidean();
                let placed = stage.gauge.place_new(cloud as usize, points)?;
                if let Placement::Exact = stage.features {
                    return all(placed.points, placed.offsets);
                }
                (placed.points, placed.offsets, stage.ends(cloud))
            }
        };
        let inside = |i: &usize| {
            ends.iter().enumerate().all(|(a, [low, high])| {
                let x = points.coordinate(*i, a);
                *low <= x && x <= *high
            })
        };
        let (near, far): (Vec<usize>, Vec<usize>) = (0..points.len()).partition(inside);
        Ok(Arrival { points, offsets, near, far })
    }

    /// A point that sees nothing has neither partners nor a potential.
    fn check_partners(&self, cloud: Cloud, at: At<'_>, sums: &[f64]) -> Result<()> {
        let Some(i) = sums.iter().position(|s| !s.is_finite()) else { return Ok(()) };
        let index = match at {
            At::New(_) => None,
            At::Part(part) => self.measure(cloud).indices(part == Part::Support),
        };
        let point = index.map_or(i, |index| index[i]) + 1;
        Err(Error::NoPartners { point, other: cloud.other() })
    }
}

/// An error at one of some points, as of all.
fn at_place(mut error: Error, places: &[usize]) -> Error {
    if let Error::Breakdown { row, .. } | Error::NotPositive { row, .. } = &mut error {
        *row = places[*row - 1] + 1;
    }
    error
}

/// The other cloud, and its potential.
fn opposite(scaling: &Scaling, cloud: Cloud) -> (Cloud, &[f64]) {
    (cloud.other(), if cloud == Cloud::X { &scaling.g } else { &scaling.f })
}

/// Values of one column after the other as padded rows.
fn padded_columns(columns: &[Vec<f64>], stride: usize) -> Vec<f64> {
    let mut out = vec![0.0; columns.len() * stride];
    for (out, column) in out.chunks_exact_mut(stride).zip(columns) {
        out[..column.len()].copy_from_slice(column);
    }
    out
}

/// Over the points of the other cloud themselves.
fn exact_view(rows: &dyn LogRows, g: &[f64], columns: &[Vec<f64>]) -> View {
    let mut pass = LogPass::new(rows, Partition::of_few(rows.rows(), CHUNKS));
    seen(&mut pass, rows, g, &padded_columns(columns, simd::padded(g.len())))
}

/// Over features: first what these see of the other cloud.
fn feature_view(rows: &dyn LogRows, others: &dyn LogRows, g: &[f64], columns: &[Vec<f64>]) -> View {
    let mut pass = log_pass(others);
    let mut z = vec![0.0; others.rank()];
    pass.column_sums(others, g, &mut z);
    let means =
        if columns.is_empty() { Vec::new() } else { pass.column_means(others, g, &z, columns) };
    seen(&mut log_pass(rows), rows, &z, &means)
}

/// What the rows see, of padded columns of values.
fn seen(pass: &mut LogPass, rows: &dyn LogRows, z: &[f64], columns: &[f64]) -> View {
    let mut padded = vec![0.0; pass.stride()];
    padded[..z.len()].copy_from_slice(z);
    let mut view = View::new(rows.rows(), columns.len() / pass.stride());
    if columns.is_empty() {
        pass.row_sums(rows, &padded, &mut view.sums);
    } else {
        pass.row_means(rows, &padded, columns, &mut view.sums, &mut view.means);
    }
    view
}

/// Over the nodes of a lattice.
fn lattice_view(
    lattice: &Lattice,
    points: &Points<'_>,
    others: &Points<'_>,
    g: &[f64],
    columns: &[Vec<f64>],
) -> Result<View> {
    let mut side = Separable::<f64>::new(others, lattice, f64::CUTOFF);
    let mut z = vec![0.0; lattice.nodes()];
    side.message(g, &mut z);
    // What a node sees of a column is the message of that column over the message.
    let nodes = |column: &Vec<f64>| -> Vec<f64> {
        let mut mean = vec![0.0; z.len()];
        let logs: Vec<f64> = column.iter().zip(g).map(|(w, g)| w.ln() + g).collect();
        side.message(&logs, &mut mean);
        for (mean, z) in mean.iter_mut().zip(&z) {
            *mean = if *z > f64::NEG_INFINITY { (*mean - z).exp() } else { 0.0 };
        }
        mean
    };
    let columns: Vec<Vec<f64>> = columns.iter().map(nodes).collect();
    let mut view = View::new(points.len(), columns.len());
    let mut side = Separable::<f64>::new(points, lattice, f64::CUTOFF);
    side.means(&z, &columns, &mut view.sums, &mut view.means)?;
    Ok(view)
}

/// The largest partners, of rows over the points of the other cloud.
fn partners(
    rows: &dyn LogRows,
    g: &[f64],
    count: usize,
    nearly: Option<&Nearly<'_>>,
) -> Vec<Partners> {
    let mut pass = LogPass::new(rows, Partition::of_few(rows.rows(), CHUNKS));
    let mut z = vec![f64::NEG_INFINITY; pass.stride()];
    z[..g.len()].copy_from_slice(g);
    let mut out = vec![Vec::new(); rows.rows()];
    pass.partners(rows, &z, count, nearly, &mut out);
    out
}
