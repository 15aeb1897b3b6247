//! From what is asked to the kernels of the terms.

use std::sync::Arc;

use rayon::prelude::*;

use super::Terms;
use super::aim::Aim;
use super::choose::{self, stores_pairs};
use super::given::{Given, form_of};
use super::limits::{Matrices, check_features, check_lattice, check_memory, check_nystrom};
use crate::anchors::{Draw, Lattice, MOST_AXES};
use crate::control::Clock;
use crate::coordinates::{Frame, Gauge};
use crate::error::{Error, Result};
use crate::features::{
    ArcCosine, Basis, FeatureMap, FeatureMatrix, Gaussian, Landmarks, Linear, landmarks,
    lattice_map,
};
use crate::ground::GroundCost;
use crate::kernel::Factors;
use crate::measure::{Measure, coordinates};
use crate::options::{Anchors, Cost, Features, Method, Options, SampleSizes};
use crate::results::{Kernels, MethodUsed};
use crate::rows::CostMatrix;
use crate::sampling::Pairs;
use crate::term::gauged::{Axes, Gauged, GaugedTerm};
use crate::term::lattices::most_nodes;
use crate::term::{
    ExactKernel, FeatureKernel, FeatureSource, Form, LatticeKernel, NystromKernel, PairCost,
    SampledKernel, Site, Space, TermKernel, thinned,
};
use crate::words::{Part, Shape, Side, Term, clouds};

/// Random features, where nobody says how many.
pub(crate) const DEFAULT_RANK: usize = 1000;

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'s, 'p> {
    pub(super) mu: &'s Measure<'p>,
    pub(super) nu: &'s Measure<'p>,
    pub(super) options: &'s Options,
    pub(super) given: &'s Given<'p>,
    pub(super) terms: Terms,
    pub(super) aim: Aim,
    /// The error that kernels may have, if it is not what the aim says.
    pub(super) error: Option<f64>,
    pub(super) clock: &'s Clock,
}

impl<'s, 'p> Setting<'s, 'p> {
    pub(super) fn measures(&self, clouds: [Side; 2]) -> [&'s Measure<'p>; 2] {
        clouds.map(|cloud| if cloud == Side::X { self.mu } else { self.nu })
    }

    /// Points of positive weight.
    fn sizes(&self) -> [f64; 2] {
        [self.mu, self.nu].map(|measure| measure.support().len() as f64)
    }

    /// Refuses to store the kernel of the largest problem to be solved, if that is more than is allowed.
    fn check_pairs(&self) -> Result<()> {
        let [n, m] = self.sizes();
        let pairs = if self.terms == Terms::All { n.max(m) * n.max(m) } else { n * m };
        check_memory(Matrices::Kernel, pairs, self.options)
    }

    fn site(&self, term: Term, space: Space<'p>) -> Site<'p> {
        Site::new(term, [self.mu, self.nu], self.options, self.clock.cancel(), space)
    }

    /// What is asked of samples, if the clouds are to be sampled; of a cost without features that may be chosen.
    fn sampled_sizes(&self) -> Option<SampleSizes> {
        match self.options.method {
            Method::Sampled(sizes) => Some(sizes),
            Method::Auto => {
                let sizes = self.terms.list().iter().flat_map(|&term| {
                    self.measures(clouds(term)).map(|m| m.support().len() as f64)
                });
                choose::may_sample(sizes, self.options).then(SampleSizes::default)
            }
            _ => None,
        }
    }

    /// A term in coordinates that all terms can share.
    pub(super) fn common(&self, term: Term) -> Result<Gauged> {
        let Setting { mu, nu, options, .. } = *self;
        let [x, y] = [mu, nu].map(|measure| options.cost.mapped_measure(measure));
        let gauge = Gauge::common(&x, &y, options.epsilon)?.after(&options.cost);
        Gauged::new(gauge, term, [mu, nu])
    }

    /// The terms of a squared Euclidean cost, each in its best coordinates.
    pub(super) fn gauged(&self) -> Result<ByTerm<Gauged>> {
        let Setting { mu, nu, options, terms, .. } = *self;
        let epsilon = options.epsilon;
        let [x, y] = &[mu, nu].map(|measure| options.cost.mapped_measure(measure));
        let mut all = ByTerm::default();
        for &term in terms.list() {
            let gauge = match term {
                Term::Cross if options.gauge => Gauge::cross(x, y, epsilon)?,
                Term::Cross => Gauge::common(x, y, epsilon)?,
                Term::SelfX => Gauge::own(x, epsilon)?,
                Term::SelfY => Gauge::own(y, epsilon)?,
            };
            all.put(term, Gauged::new(gauge.after(&options.cost), term, [mu, nu])?);
        }
        let errors = match self.error {
            Some(error) => [Some(error); 3],
            None => self.aim.kernel_errors(&all.0, options.accuracy, epsilon),
        };
        for (gauged, error) in all.0.iter_mut().zip(errors) {
            if let Some(gauged) = gauged {
                gauged.error = error;
            }
        }
        Ok(all)
    }

    /// These terms, to choose for.
    pub(super) fn list<'g>(&'g self, all: &'g ByTerm<Gauged>) -> Vec<GaugedTerm<'g>> {
        let of = |(term, gauged)| {
            let clouds = clouds(term);
            GaugedTerm { gauged, clouds, measures: self.measures(clouds) }
        };
        all.iter().map(of).collect()
    }
}

/// Something for each term that is solved.
#[derive(Debug)]
pub(super) struct ByTerm<T>([Option<T>; 3]);

impl<T> Default for ByTerm<T> {
    fn default() -> Self {
        ByTerm([None, None, None])
    }
}

impl<T> ByTerm<T> {
    fn put(&mut self, term: Term, of: T) {
        self.0[term as usize] = Some(of);
    }

    pub(super) fn get(&self, term: Term) -> Option<&T> {
        self.0[term as usize].as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Term, &T)> {
        let terms = [Term::Cross, Term::SelfX, Term::SelfY].into_iter();
        terms.zip(&self.0).filter_map(|(term, of)| Some((term, of.as_ref()?)))
    }

    /// The first of them; there is always one.
    fn first(&self) -> &T {
        self.iter().next().expect("a term is solved").1
    }

    fn try_map<U>(self, mut each: impl FnMut(Term, T) -> Result<U>) -> Result<ByTerm<U>> {
        let mut all = ByTerm::default();
        for (term, of) in [Term::Cross, Term::SelfX, Term::SelfY].into_iter().zip(self.0) {
            if let Some(of) = of {
                all.put(term, each(term, of)?);
            }
        }
        Ok(all)
    }
}

/// The kernels of the terms, and what they are called.
#[derive(Debug)]
pub(crate) struct TermKernels<'p> {
    terms: ByTerm<Box<dyn TermKernel + 'p>>,
    pub(super) used: MethodUsed,
    /// Whether the terms of a divergence have one kernel or an approximation of it each.
    pub(super) kernels: Kernels,
    /// Whether one map serves both clouds.
    pub(super) one_map: bool,
    /// What was given that no cloud has a kernel with itself by, and the remedy.
    without_selves: Option<[&'static str; 2]>,
}

impl<'p> TermKernels<'p> {
    fn new(terms: ByTerm<Box<dyn TermKernel + 'p>>, used: MethodUsed, kernels: Kernels) -> Self {
        TermKernels { terms, used, kernels, one_map: true, without_selves: None }
    }

    /// Those of features, term by term.
    pub(super) fn of_features(
        terms: Terms,
        used: MethodUsed,
        mut kernel: impl FnMut(Term) -> Result<FeatureKernel<'p>>,
    ) -> Result<Self> {
        let mut kernels: ByTerm<Box<dyn TermKernel + 'p>> = ByTerm::default();
        for &term in terms.list() {
            kernels.put(term, Box::new(kernel(term)?));
        }
        Ok(TermKernels::new(kernels, used, Kernels::Shared))
    }

    pub(super) fn get(&self, term: Term) -> &(dyn TermKernel + 'p) {
        &**self.terms.get(term).expect("a term that is solved")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(dyn TermKernel + 'p)> {
        self.terms.iter().map(|(_, kernel)| &**kernel)
    }

    /// That of the first term: they are of one kind.
    pub(super) fn first(&self) -> &(dyn TermKernel + 'p) {
        &**self.terms.first()
    }

    /// Whether the kernel is defined on each cloud alone.
    pub(super) fn check_shared(&self) -> Result<()> {
        match self.without_selves {
            Some([given, remedy]) => Err(Error::NoSelfTerms { given, remedy }),
            None => Ok(()),
        }
    }

    /// The same kernel, that of the cross term, for the terms of other measures.
    pub(super) fn between<'q>(
        &'q self,
        terms: Terms,
        measures: [&Measure<'q>; 2],
        options: &Options,
        clock: &Clock,
    ) -> Result<TermKernels<'q>> {
        let mut others = ByTerm::default();
        for &term in terms.list() {
            let kernel = self.get(Term::Cross);
            let site = kernel.site().moved(term, measures, options, clock.cancel())?;
            others.put(term, kernel.on(site)?);
        }
        Ok(TermKernels { terms: others, ..*self })
    }

    /// Coordinates, anchors and nodes as they would be for an epsilon that is `ratio` times as large, for other measures.
    #[cfg(test)]
    pub(super) fn redone<'q>(
        &self,
        measures: [&Measure<'q>; 2],
        options: &Options,
        ratio: f64,
    ) -> TermKernels<'q> {
        let mut others = ByTerm::default();
        for (term, kernel) in self.terms.iter() {
            let site = kernel.site().redone(term, measures, options, ratio);
            others.put(term, kernel.scaled_on(site, ratio));
        }
        TermKernels { terms: others, ..*self }
    }
}

/// Which kernel of the squared Euclidean cost.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(crate) enum KernelChoice {
    /// All pairs.
    Exact {
        stored: bool,
    },
    Random {
        draw: Draw,
        rank: usize,
    },
    /// Around the midpoints of coupled pairs.
    Adaptive {
        rank: usize,
    },
    Lattice {
        stored: bool,
    },
    Nystrom {
        landmarks: Landmarks,
        count: usize,
    },
    /// All pairs of samples of the clouds.
    Sampled(SampleSizes),
}

/// What the features of the options are, before there are kernels.
pub(super) enum Design {
    Choice(KernelChoice),
    /// Maps of points. For features of the squared Euclidean cost, `frame` is where to take that cost.
    Maps {
        maps: [Arc<dyn FeatureMap>; 2],
        shared: bool,
        used: MethodUsed,
        frame: Option<Frame>,
    },
}

/// The kernels that the options name, and which one it is if it is of those that can be improved.
pub(super) fn named<'p>(
    setting: Setting<'_, 'p>,
) -> Result<(TermKernels<'p>, Option<KernelChoice>)> {
    let Setting { mu, nu, options, .. } = setting;
    let [n, m] = setting.sizes();
    let rank = options.rank.unwrap_or(DEFAULT_RANK);
    match &options.method {
        Method::Dense(cost) => {
            setting.check_pairs()?;
            Ok((of_cost(cost, true, setting)?, None))
        }
        Method::Online(cost) => Ok((of_cost(cost, false, setting)?, None)),
        Method::Factored(features) => {
            let choice = match features {
                Features::Gaussian(Anchors::Adaptive) => Some(KernelChoice::Adaptive { rank }),
                Features::Gaussian(Anchors::Lattice { stored }) => {
                    Some(KernelChoice::Lattice { stored: *stored })
                }
                _ => None,
            };
            if !matches!(choice, Some(KernelChoice::Lattice { .. })) {
                let rank = features.rank(mu.dim(), rank) as f64;
                check_features(n + m, rank, mu.dim(), options)?;
            }
            let design = design(features, setting)?;
            Ok((of_design(design, Form::Features, setting)?, choice))
        }
        Method::Nystrom(landmarks) => {
            let count = rank.min(mu.support().len() + nu.support().len());
            check_nystrom(n + m, count as f64, options)?;
            let choice = KernelChoice::Nystrom { landmarks: *landmarks, count };
            let kernels = chosen(choice, Form::Features, setting.gauged()?, setting, None)?;
            Ok((kernels, None))
        }
        Method::Sampled(sizes) => {
            let choice = KernelChoice::Sampled(*sizes);
            Ok((chosen(choice, Form::Features, setting.gauged()?, setting, None)?, None))
        }
        Method::Auto => unreachable!("automatic choices are made first"),
    }
}

/// Refuses a cost that the points, the method or matrices that are given do not go with.
pub(super) fn check_cost(setting: Setting<'_, '_>) -> Result<()> {
    let Setting { mu, nu, options, given, .. } = setting;
    let cost = &options.cost;
    if cost.is_default() {
        return Ok(());
    }
    let refused = |what, remedy| Err(Error::NotFor { what, task: cost.name(), remedy });
    if !given.is_empty() {
        return refused("matrices of costs or features", "give the matrices or the cost");
    }
    let own_cost = "these features define a cost of their own: leave the method to Method::Auto, or leave the cost";
    let exact = "use Method::Auto, Method::dense(), Method::online() or Method::sampled()";
    match &options.method {
        Method::Dense(Cost::Features(_)) | Method::Online(Cost::Features(_)) => {
            return refused("a cost of features", own_cost);
        }
        Method::Factored(_) if !cost.is_squared_distance() => {
            return refused("positive features", exact);
        }
        Method::Nystrom(_) if !cost.is_squared_distance() => {
            return refused("the Nystrom approximation", exact);
        }
        Method::Factored(Features::Gaussian(Anchors::Paper { .. })) => {
            return refused("the paper's anchors", "use Method::gaussian() or Method::lattice()");
        }
        Method::Factored(features) if !matches!(features, Features::Gaussian(_)) => {
            return refused("features of another kernel", own_cost);
        }
        _ => {}
    }
    for (cloud, measure) in [(Side::X, mu), (Side::Y, nu)] {
        cost.check(measure.points())
            .map_err(|error| Error::InCloud { cloud, source: Box::new(error) })?;
    }
    Ok(())
}

/// The kernels of a cost that is no squared distance, and why if the choice was automatic.
pub(super) fn of_pairs<'p>(setting: Setting<'_, 'p>) -> Result<(TermKernels<'p>, Option<String>)> {
    let Setting { mu, nu, options, .. } = setting;
    if mu.dim() != nu.dim() {
        return Err(Error::Dimensions { x: mu.dim(), y: nu.dim() });
    }
    let sizes = setting.sampled_sizes();
    let (stored, reason) = match &options.method {
        Method::Auto if sizes.is_some() => (false, Some(choose::SAMPLED.to_owned())),
        Method::Auto => {
            let sizes = setting.terms.list().iter().map(|&term| {
                let [x, y] = setting.measures(clouds(term)).map(|m| m.support().len() as f64);
                x * y
            });
            let stored = stores_pairs(sizes, options);
            (stored, Some(format!("all pairs: {} has no features", options.cost.name())))
        }
        method => (form_of(method) == Form::Pairs { stored: true }, None),
    };
    if stored {
        setting.check_pairs()?;
    }
    let mut terms: ByTerm<Box<dyn TermKernel + 'p>> = ByTerm::default();
    for &term in setting.terms.list() {
        let cost = pair_cost(term, setting)?;
        let site = setting.site(term, Space::Pairs(cost));
        terms.put(term, over_pairs(site, stored, sizes));
    }
    let (used, kernels) = match sizes {
        Some(_) => (MethodUsed::Sampled, Kernels::PerTerm),
        None => (MethodUsed::over_pairs(stored), Kernels::Exact),
    };
    Ok((TermKernels::new(terms, used, kernels), reason))
}

/// The kernel of a cost over all pairs, of the clouds or of samples of them.
fn over_pairs<'p>(
    site: Site<'p>,
    stored: bool,
    sizes: Option<SampleSizes>,
) -> Box<dyn TermKernel + 'p> {
    match sizes {
        Some(sizes) => Box::new(SampledKernel::new(site, sizes)),
        None => Box::new(ExactKernel::new(site, stored)),
    }
}

/// The cost of a term, checked: that of a function pair by pair.
fn pair_cost(term: Term, setting: Setting<'_, '_>) -> Result<PairCost> {
    let Setting { options: Options { epsilon, cost, .. }, clock, .. } = setting;
    let measures = setting.measures(clouds(term));
    let [x, y] = measures.map(Measure::points);
    let mut range = cost.range([x, y]);
    if let GroundCost::Function(_) = cost {
        let [left, right] = [x, y].map(coordinates);
        let dim = x.dim();
        let at =
            |i: usize, j: usize| cost.of_pair(&left[i * dim..][..dim], &right[j * dim..][..dim]);
        let ends = (0..x.len()).into_par_iter().map(|i| -> Result<[f64; 2]> {
            clock.cancel().check();
            let mut ends = [f64::INFINITY, f64::NEG_INFINITY];
            for j in 0..y.len() {
                let value = at(i, j);
                if !value.is_finite() {
                    return Err(Error::Cost { row: i + 1, column: j + 1, value });
                }
                if term != Term::Cross
                    && (value - at(j, i)).abs() > 1e-12 * value.abs().max(at(j, i).abs())
                {
                    return Err(Error::NotSymmetric { row: i + 1, column: j + 1 });
                }
                ends = [ends[0].min(value), ends[1].max(value)];
            }
            Ok(ends)
        });
        let ends: Vec<[f64; 2]> = ends.collect::<Result<_>>()?;
        let least = ends.iter().fold(f64::INFINITY, |least, e| least.min(e[0]));
        let most = ends.iter().fold(f64::NEG_INFINITY, |most, e| most.max(e[1]));
        range = most - least;
    }
    if range > 1e9 * epsilon || !range.is_finite() {
        return Err(Error::CostsTooWide { epsilon: *epsilon, spread: range });
    }
    Ok(PairCost { cost: cost.clone(), range })
}

/// The kernels of the matrices that are given, if any are.
pub(super) fn of_given<'p>(setting: Setting<'_, 'p>) -> Result<Option<TermKernels<'p>>> {
    let Setting { options, given, .. } = setting;
    given.check(&options.method)?;
    let form = form_of(&options.method);
    if let Some(matrix) = &given.costs {
        let sampled = matches!(options.method, Method::Sampled(_));
        let stored = form != Form::Pairs { stored: false } && !sampled;
        if stored {
            setting.check_pairs()?;
        }
        return of_costs(matrix, stored, setting).map(Some);
    }
    let Some(matrices) = &given.features else { return Ok(None) };
    match form {
        Form::Features => {
            let points: f64 = setting.sizes().iter().sum();
            check_memory(Matrices::Features, points * matrices[0].rank() as f64, options)?;
        }
        Form::Pairs { stored: true } => setting.check_pairs()?,
        Form::Pairs { stored: false } => {}
    }
    check_rows(matrices, setting)?;
    let source = FeatureSource::Given(matrices.clone());
    let kernels =
        TermKernels::of_features(setting.terms, form.used(MethodUsed::Explicit), |term| {
            Ok(FeatureKernel::new(setting.site(term, Space::Features), source.clone(), form))
        })?;
    Ok(Some(kernels))
}

/// Whether matrices of features have a row for each point, and as many features.
fn check_rows([xi, zeta]: &[FeatureMatrix<'_>; 2], setting: Setting<'_, '_>) -> Result<()> {
    if xi.rank() != zeta.rank() {
        return Err(Error::Ranks { x: xi.rank(), y: zeta.rank() });
    }
    let both = [
        ("the first feature matrix", xi, setting.mu),
        ("the second feature matrix", zeta, setting.nu),
    ];
    for (what, matrix, measure) in both {
        let (rows, columns) = (measure.weights().len(), matrix.rank());
        if matrix.rows() != rows {
            return Err(Error::Shape {
                what,
                expected: Shape { rows, columns },
                got: Shape { rows: matrix.rows(), columns },
            });
        }
    }
    Ok(())
}

fn of_cost<'p>(cost: &Cost, stored: bool, setting: Setting<'_, 'p>) -> Result<TermKernels<'p>> {
    match cost {
        Cost::SquaredEuclidean => {
            let (choice, form) = (KernelChoice::Exact { stored }, Form::Pairs { stored });
            chosen(choice, form, setting.gauged()?, setting, None)
        }
        Cost::Features(features) => {
            of_design(design(features, setting)?, Form::Pairs { stored }, setting)
        }
    }
}

fn of_costs<'p>(
    matrix: &CostMatrix<'p>,
    stored: bool,
    setting: Setting<'_, 'p>,
) -> Result<TermKernels<'p>> {
    let Setting { mu, nu, options: &Options { epsilon, .. }, .. } = setting;
    let expected = Shape { rows: mu.weights().len(), columns: nu.weights().len() };
    if matrix.shape() != expected {
        return Err(Error::Shape { what: "the cost matrix", expected, got: matrix.shape() });
    }
    let spread = matrix.spread();
    if spread > 1e9 * epsilon || !spread.is_finite() {
        return Err(Error::CostsTooWide { epsilon, spread });
    }
    let sizes = match setting.options.method {
        Method::Sampled(sizes) => Some(sizes),
        _ => None,
    };
    let used = sizes.map_or(MethodUsed::over_pairs(stored), |_| MethodUsed::Sampled);
    let mut terms: ByTerm<Box<dyn TermKernel + 'p>> = ByTerm::default();
    for &term in setting.terms.list() {
        let site = setting.site(term, Space::Matrix(matrix.clone()));
        terms.put(term, over_pairs(site, stored, sizes));
    }
    let remedy = "solve the three terms with a matrix each";
    Ok(TermKernels {
        without_selves: Some(["a cost matrix", remedy]),
        ..TermKernels::new(terms, used, Kernels::Shared)
    })
}

fn of_design<'p>(design: Design, form: Form, setting: Setting<'_, 'p>) -> Result<TermKernels<'p>> {
    let (maps, shared, used, frame) = match design {
        Design::Choice(choice) => return chosen(choice, form, setting.gauged()?, setting, None),
        Design::Maps { maps, shared, used, frame } => (maps, shared, used, frame),
    };
    check_maps(&maps, frame.as_ref(), setting.mu, setting.nu)?;
    let source = FeatureSource::Maps(maps);
    let kernels = TermKernels::of_features(setting.terms, form.used(used), |term| {
        let space = frame.clone().map_or(Space::Features, Space::Framed);
        Ok(FeatureKernel::new(setting.site(term, space), source.clone(), form))
    })?;
    let remedy = "use one map for both clouds";
    let without_selves = (!shared).then_some(["a pair of feature maps", remedy]);
    Ok(TermKernels { one_map: shared, without_selves, ..kernels })
}

/// Whether the maps are defined at all points.
pub(super) fn check_maps(
    maps: &[Arc<dyn FeatureMap>; 2],
    frame: Option<&Frame>,
    mu: &Measure<'_>,
    nu: &Measure<'_>,
) -> Result<()> {
    if let Some(frame) = frame {
        // They need potentials too.
        for outside in [mu.outside(), nu.outside()].into_iter().flatten() {
            frame.check_extent(outside)?;
        }
    }
    for (cloud, measure) in [(Side::X, mu), (Side::Y, nu)] {
        maps[cloud as usize]
            .check(measure.points())
            .map_err(|error| Error::InCloud { cloud, source: Box::new(error) })?;
    }
    Ok(())
}

fn check_rank(map: &dyn FeatureMap) -> Result<()> {
    match map.rank() {
        0 => Err(Error::Option { name: "the rank of a map", expected: "at least 1", value: 0.0 }),
        _ => Ok(()),
    }
}

/// The kernels of a squared Euclidean cost. Anchors are placed around pairs of the plans of all terms, if there are any.
pub(super) fn chosen<'p>(
    choice: KernelChoice,
    form: Form,
    mut gauged: ByTerm<Gauged>,
    setting: Setting<'_, 'p>,
    plans: Option<&[([Side; 2], &Pairs)]>,
) -> Result<TermKernels<'p>> {
    let Setting { options, terms, clock, .. } = setting;
    let per_term = matches!(
        choice,
        KernelChoice::Exact { .. } | KernelChoice::Lattice { .. } | KernelChoice::Sampled(_)
    );
    if !per_term && terms == Terms::All {
        // One map serves all terms of a divergence, so they must share their coordinates.
        for &term in terms.list() {
            gauged.put(term, setting.common(term)?);
        }
    }
    let boxed = |kernel| -> Box<dyn TermKernel + 'p> { kernel };
    let (kernels, used, sharing) = match choice {
        KernelChoice::Exact { stored } => {
            let kernels = gauged.try_map(|term, gauged| {
                let site = setting.site(term, Space::gauged(gauged));
                Ok(boxed(Box::new(ExactKernel::new(site, stored))))
            })?;
            (kernels, MethodUsed::over_pairs(stored), Kernels::Exact)
        }
        KernelChoice::Sampled(sizes) => {
            let kernels = gauged.try_map(|term, gauged| {
                let site = setting.site(term, Space::gauged(gauged));
                Ok(boxed(Box::new(SampledKernel::new(site, sizes))))
            })?;
            (kernels, MethodUsed::Sampled, Kernels::PerTerm)
        }
        KernelChoice::Random { .. } | KernelChoice::Adaptive { .. } => {
            let map = map_of(choice, gauged.first(), setting, plans);
            let kernels = gauged.try_map(|term, gauged| {
                let site = setting.site(term, Space::gauged(gauged));
                let source = FeatureSource::Maps([map.clone(), map.clone()]);
                Ok(boxed(Box::new(FeatureKernel::new(site, source, form))))
            })?;
            (kernels, MethodUsed::Gaussian, Kernels::Shared)
        }
        KernelChoice::Lattice { stored } => {
            let kernels = gauged.try_map(|term, gauged| {
                let clouds = clouds(term);
                let measures = setting.measures(clouds);
                let found = lattice(&GaugedTerm { gauged: &gauged, clouds, measures }, options)?;
                let lattice = found.guarded(clock.cancel());
                let points = measures[0].support().len() + measures[1].support().len();
                let error = gauged.error;
                let site = setting.site(term, Space::gauged(gauged));
                if stored || form != Form::Features {
                    let numbers = lattice.rank() as f64 * points as f64;
                    let what =
                        if form == Form::Features { Matrices::Features } else { Matrices::Kernel };
                    check_memory(what, numbers, options)?;
                    let map = Arc::new(lattice_map(&lattice));
                    let kernel = FeatureKernel::on_lattice(site, map, lattice, form);
                    return Ok(boxed(Box::new(kernel)));
                }
                check_lattice(&lattice, points, options)?;
                Ok(boxed(Box::new(LatticeKernel::new(site, lattice, error))))
            })?;
            (kernels, MethodUsed::Lattice, Kernels::PerTerm)
        }
        KernelChoice::Nystrom { landmarks, count } => {
            let cross = gauged.first();
            let epsilon = cross.gauge.epsilon();
            let clouds = [Side::X, Side::Y].map(|cloud| cross.points(cloud, Part::Support));
            let (seed, cancel) = (options.seed, clock.cancel());
            let chosen = landmarks::choose(&clouds, epsilon, count, landmarks, seed, cancel);
            let basis = Basis::nystrom(chosen, epsilon, cancel);
            let factors = Arc::new(Factors::new(basis, clouds));
            let kernels = gauged.try_map(|term, gauged| {
                let site = setting.site(term, Space::gauged(gauged));
                Ok(boxed(Box::new(NystromKernel::new(site, factors.clone()))))
            })?;
            (kernels, MethodUsed::Nystrom, Kernels::Shared)
        }
    };
    let sharing = if form == Form::Features { sharing } else { Kernels::Exact };
    Ok(TermKernels::new(kernels, form.used(used), sharing))
}

/// One map for all terms, in the coordinates of the first.
pub(super) fn map_of(
    choice: KernelChoice,
    gauged: &Gauged,
    setting: Setting<'_, '_>,
    plans: Option<&[([Side; 2], &Pairs)]>,
) -> Arc<dyn FeatureMap> {
    let Setting { mu, nu, options, terms, clock, .. } = setting;
    let weights = [mu, nu].map(|m| m.support().weights);
    match choice {
        KernelChoice::Random { draw, rank } => {
            let axes = Axes::new(gauged, weights.map(Some));
            let mut map = gauged.random(&axes, draw, rank, options.seed);
            if terms == Terms::Cross && !matches!(options.method, Method::Auto) {
                // A common factor cancels in a divergence, but not in a term alone. (Certificates find a better one.)
                let log = gauged.mean_log_ratio(&map, weights, options.seed, clock.cancel());
                if log.is_finite() {
                    map.scale(-0.5 * log);
                }
            }
            Arc::new(map)
        }
        KernelChoice::Adaptive { rank } => {
            let midpoints = if let Some(plans) = plans {
                gauged.midpoints_of(plans)
            } else {
                let list: Vec<[Side; 2]> = terms.list().iter().map(|t| clouds(*t)).collect();
                gauged.likely_midpoints(&list, weights, options.seed)
            };
            Arc::new(gauged.adaptive(&midpoints, rank, options.seed))
        }
        KernelChoice::Exact { .. }
        | KernelChoice::Lattice { .. }
        | KernelChoice::Nystrom { .. }
        | KernelChoice::Sampled(_) => unreachable!("these are no maps of random anchors"),
    }
}

/// The lattice for a term: of the rank asked for, or of the accuracy.
fn lattice(term: &GaugedTerm<'_>, options: &Options) -> Result<Lattice> {
    let dim = term.measures[0].dim();
    if dim > MOST_AXES {
        return Err(Error::LatticeDimension { dim, most: MOST_AXES });
    }
    let most = most_nodes(term.measures.iter().map(|m| m.support().len()).sum());
    match options.lattice_rank() {
        None => term.lattice(options).ok_or(Error::LatticeSize { most }),
        Some(rank) => {
            let [low, high] = term.midpoints();
            let weighted = |k: usize| thinned::Weighted {
                points: term.gauged.points(term.clouds[k], Part::Support),
                weights: term.measures[k].support().weights,
            };
            let clouds = [weighted(0), weighted(1)];
            thinned::of_rank(&low, &high, term.gauged.gauge.epsilon(), rank, most, clouds)
                .ok_or(Error::LatticeRank { rank })
        }
    }
}

/// What the features of the options are.
pub(super) fn design(features: &Features, setting: Setting<'_, '_>) -> Result<Design> {
    let Setting { mu, nu, options, .. } = setting;
    let shared = |map: Arc<dyn FeatureMap>, used, frame| {
        if mu.dim() != nu.dim() {
            return Err(Error::Dimensions { x: mu.dim(), y: nu.dim() });
        }
        Ok(Design::Maps { maps: [map.clone(), map], shared: true, used, frame })
    };
    let Options { epsilon, seed, .. } = *options;
    let rank = options.rank.unwrap_or(DEFAULT_RANK);
    match features {
        Features::Gaussian(Anchors::Random(draw)) => {
            Ok(Design::Choice(KernelChoice::Random { draw: *draw, rank }))
        }
        Features::Gaussian(Anchors::Lattice { stored }) => {
            Ok(Design::Choice(KernelChoice::Lattice { stored: *stored }))
        }
        Features::Gaussian(Anchors::Adaptive) => {
            Ok(Design::Choice(KernelChoice::Adaptive { rank }))
        }
        Features::Gaussian(Anchors::Paper { centred }) => {
            let map = Gaussian::paper(mu, nu, epsilon, rank, seed, *centred)?;
            let frame = map.frame().clone();
            shared(Arc::new(map), MethodUsed::Gaussian, Some(frame))
        }
        Features::ArcCosine { order, kappa, sigma } => {
            let map = ArcCosine::new(mu.dim(), *order, *kappa, *sigma, rank, seed)?;
            shared(Arc::new(map), MethodUsed::ArcCosine, None)
        }
        Features::Linear => shared(Arc::new(Linear::new(mu.dim())?), MethodUsed::Linear, None),
        Features::Map(map) => {
            check_rank(&**map)?;
            shared(map.clone(), MethodUsed::Map, None)
        }
        Features::Pair(x, y) => {
            check_rank(&**x)?;
            if x.rank() != y.rank() {
                return Err(Error::Ranks { x: x.rank(), y: y.rank() });
            }
            let maps = [x.clone(), y.clone()];
            Ok(Design::Maps { maps, shared: false, used: MethodUsed::Map, frame: None })
        }
    }
}
