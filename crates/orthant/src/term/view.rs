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

use super::plan::TermPlan;
use super::site::{Arrival, Site};
use crate::anchors::Lattice;
use crate::comm::Partition;
use crate::error::{Error, Result};
use crate::kernel::{HalfKernel, LogPass, Nearly, Separable};
use crate::measure::Points;
use crate::numerics::simd::{self, Float};
use crate::rows::LogRows;
use crate::words::{Part, Side};

/// Chunks of rows that are as long as a cloud.
const VIEW_CHUNKS: usize = 32;

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
    pub(super) sums: Vec<f64>,
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
pub(crate) type Partners = Vec<(usize, f64)>;

/// Points of a cloud to look from, as kernels take them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Seat<'a> {
    /// Those of the cloud itself.
    Part(Part),
    /// Others, in the coordinates of the kernel.
    At(&'a Points<'a>),
}

impl Seat<'_> {
    pub(super) fn points<'a>(&'a self, site: &'a Site<'_>, cloud: Side) -> Points<'a> {
        match self {
            Seat::Part(part) => site.points(cloud, *part),
            Seat::At(points) => points.borrowed(),
        }
    }
}

/// New points, and which of them the kernel of the plan is for: those in the box of the cloud. Beyond it the kernel of the
/// cost takes over.
struct Guests<'a> {
    arrival: Arrival<'a>,
    near: Vec<usize>,
    far: Vec<usize>,
}

impl TermPlan<'_> {
    /// Means of columns of values of the support of the other cloud, as points of a cloud see it.
    pub(crate) fn view(&self, cloud: Side, at: At<'_>, columns: &[Vec<f64>]) -> Result<View> {
        let view = match at {
            At::New(points) => self.view_from(cloud, &self.guests(cloud, points)?, columns)?,
            At::Part(part) => self.seen(cloud, Seat::Part(part), columns)?,
        };
        self.check_partners(cloud, at, &view.sums)?;
        Ok(view)
    }

    /// The potential of a cloud as a function of position, in the KL form and in the units of the user.
    pub(crate) fn potential_at(&self, cloud: Side, points: &Points<'_>) -> Result<Vec<f64>> {
        let site = self.kernel.site();
        let guests = self.guests(cloud, points)?;
        let View { mut sums, .. } = self.view_from(cloud, &guests, &[])?;
        self.check_partners(cloud, At::New(points), &sums)?;
        let constant = if cloud == Side::Y { site.constant() } else { 0.0 };
        let shift = self.scaling.shifts[cloud.other() as usize];
        let tau = site.unbalanced().map_or(1.0, |u| u.tau(cloud as usize));
        for (i, sum) in sums.iter_mut().enumerate() {
            let offset = guests.arrival.offsets.as_ref().map_or(0.0, |p| p[i]);
            *sum = tau * (constant + offset - site.options().epsilon * (*sum + shift));
        }
        if sums.iter().all(|p| p.is_finite()) {
            Ok(sums)
        } else {
            Err(Error::Overflow { what: "a potential" })
        }
    }

    /// The largest partners of points of a cloud in the support of the other, with their probabilities.
    pub(crate) fn partners(&self, cloud: Side, at: At<'_>, count: usize) -> Result<Vec<Partners>> {
        let (state, g) = (&self.scaling.state, self.opposite(cloud));
        let points = match at {
            At::Part(part) => {
                return self.kernel.partners(state, cloud, &Seat::Part(part), g, count);
            }
            At::New(points) => points,
        };
        let Guests { arrival, near, far } = self.guests(cloud, points)?;
        let mut all = vec![Vec::new(); points.len()];
        let mut put = |places: &[usize], found: Vec<Partners>| {
            for (i, found) in places.iter().zip(found) {
                all[*i] = found;
            }
        };
        if !near.is_empty() {
            let points = arrival.points.select(&near);
            put(&near, self.kernel.partners(state, cloud, &Seat::At(&points), g, count)?);
        }
        if !far.is_empty() {
            let points = arrival.points.select(&far);
            put(&far, partners(&*self.exact_rows(cloud, &points)?, g, count, None));
        }
        Ok(all)
    }

    /// Through the kernel of the plan.
    fn seen(&self, cloud: Side, seat: Seat<'_>, columns: &[Vec<f64>]) -> Result<View> {
        self.kernel.view(&self.scaling.state, cloud, &seat, self.opposite(cloud), columns)
    }

    /// What new points see.
    fn view_from(&self, cloud: Side, guests: &Guests<'_>, columns: &[Vec<f64>]) -> Result<View> {
        let Guests { arrival: Arrival { points, .. }, near, far } = guests;
        if far.is_empty() {
            return self.seen(cloud, Seat::At(points), columns);
        }
        let mut all = View::new(points.len(), columns.len());
        if !near.is_empty() {
            let seen = self.seen(cloud, Seat::At(&points.select(near)), columns);
            all.put(near, &seen.map_err(|error| at_place(error, near))?);
        }
        let points = points.select(far);
        let rows = self.exact_rows(cloud, &points)?;
        all.put(far, &exact_view(&*rows, self.opposite(cloud), columns));
        Ok(all)
    }

    /// The kernel of the squared Euclidean cost over the other cloud, at points in the coordinates of the plan's.
    fn exact_rows<'a>(
        &'a self,
        cloud: Side,
        points: &'a Points<'_>,
    ) -> Result<Box<dyn LogRows + 'a>> {
        let rows = self.kernel.site().exact_rows(cloud, points.borrowed())?;
        Ok(rows.expect("only features of the squared Euclidean cost have points beyond"))
    }

    /// Brings new points into the coordinates of the kernel.
    fn guests<'a>(&self, cloud: Side, points: &'a Points<'_>) -> Result<Guests<'a>> {
        let site = self.kernel.site();
        let arrival = site.arrive(cloud, points)?;
        self.kernel.check_new(cloud, points)?;
        let all = 0..points.len();
        if self.kernel.reaches_everywhere() {
            return Ok(Guests { arrival, near: all.collect(), far: Vec::new() });
        }
        let ends = site.ends(cloud);
        let inside = |i: &usize| {
            ends.iter().enumerate().all(|(a, [low, high])| {
                let x = arrival.points.coordinate(*i, a);
                *low <= x && x <= *high
            })
        };
        let (near, far) = all.partition(inside);
        Ok(Guests { arrival, near, far })
    }

    /// A point that sees nothing has neither partners nor a potential.
    fn check_partners(&self, cloud: Side, at: At<'_>, sums: &[f64]) -> Result<()> {
        let Some(i) = sums.iter().position(|s| !s.is_finite()) else { return Ok(()) };
        let index = match at {
            At::New(_) => None,
            At::Part(part) => self.kernel.site().measure(cloud).indices(part == Part::Support),
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

/// Values of one column after the other as padded rows.
fn padded_columns(columns: &[Vec<f64>], stride: usize) -> Vec<f64> {
    let mut out = vec![0.0; columns.len() * stride];
    for (out, column) in out.chunks_exact_mut(stride).zip(columns) {
        out[..column.len()].copy_from_slice(column);
    }
    out
}

/// Over the points of the other cloud themselves.
pub(super) fn exact_view(rows: &dyn LogRows, g: &[f64], columns: &[Vec<f64>]) -> View {
    let mut pass = LogPass::new(rows, Partition::of_few(rows.rows(), VIEW_CHUNKS));
    seen(&mut pass, rows, g, &padded_columns(columns, simd::padded(g.len())))
}

/// Over features: first what these see of the other cloud.
pub(super) fn feature_view(
    rows: &dyn LogRows,
    others: &dyn LogRows,
    g: &[f64],
    columns: &[Vec<f64>],
) -> View {
    let mut pass = LogPass::of(others);
    let mut z = vec![0.0; others.rank()];
    pass.column_sums(others, g, &mut z);
    let means =
        if columns.is_empty() { Vec::new() } else { pass.column_means(others, g, &z, columns) };
    seen(&mut LogPass::of(rows), rows, &z, &means)
}

/// What the rows see, of padded columns of values.
fn seen(pass: &mut LogPass, rows: &dyn LogRows, z: &[f64], columns: &[f64]) -> View {
    let mut padded = vec![0.0; pass.stride()];
    padded[..z.len()].copy_from_slice(z);
    let mut view = View::new(rows.rows(), columns.len() / pass.stride());
    if columns.is_empty() {
        pass.row_sums::<f64>(rows, &padded, &mut view.sums);
    } else {
        pass.row_means(rows, &padded, columns, &mut view.sums, &mut view.means);
    }
    view
}

/// Over the nodes of a lattice.
pub(super) fn lattice_view(
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
pub(super) fn partners(
    rows: &dyn LogRows,
    g: &[f64],
    count: usize,
    nearly: Option<&Nearly<'_>>,
) -> Vec<Partners> {
    let mut pass = LogPass::new(rows, Partition::of_few(rows.rows(), VIEW_CHUNKS));
    let mut z = vec![f64::NEG_INFINITY; pass.stride()];
    z[..g.len()].copy_from_slice(g);
    let mut out = vec![Vec::new(); rows.rows()];
    pass.partners(rows, &z, count, nearly, &mut out);
    out
}
