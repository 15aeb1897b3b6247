//! One feature map for many clouds, and the features of each of them, evaluated once.

use std::sync::Arc;
use std::time::Instant;

use super::build::{self, Design, Setting, TermKernels};
use super::given::form_of;
use super::limits::{Matrices, check_memory, check_rho};
use super::{Aim, Given, Left, Problem, Scaling, Start, Terms};
use crate::control::{Cancel, Observer};
use crate::coordinates::{Frame, Gauge};
use crate::error::{Error, Result};
use crate::features::{FeatureMap, Mapped, stride};
use crate::kernel::{ReferenceMessage, Stored};
use crate::measure::{Measure, Points};
use crate::numerics::simd::Float;
use crate::options::{Anchors, Features, Options, Precision, features_of};
use crate::results::{MethodUsed, Solution};
use crate::term::gauged::Gauged;
use crate::term::{FeatureKernel, FeatureSource, Form, Site, Space};
use crate::words::{Side, Term, clouds};

/// A feature map that does not depend on which two of the clouds meet.
#[derive(Debug)]
pub(crate) struct SharedMap {
    map: Arc<dyn FeatureMap>,
    form: Form,
    used: MethodUsed,
    coordinates: Coordinates,
}

/// Where the map is defined.
#[derive(Debug)]
enum Coordinates {
    /// In those of a gauge that all clouds share.
    Gauge(Gauge),
    /// In the user's. Features of the squared Euclidean cost have a frame.
    User(Option<Frame>),
}

impl SharedMap {
    /// The map of the options for clouds that are parts of `all`, if theirs is such a map.
    pub(crate) fn new(all: &Measure<'_>, options: &Options) -> Result<Option<Self>> {
        let Some(features) = features_of(&options.method) else { return Ok(None) };
        let form = form_of(&options.method);
        if let Features::Gaussian(Anchors::Lattice { .. } | Anchors::Adaptive) = features {
            return Ok(None);
        }
        let (terms, aim, clock) = (Terms::Own, Aim::Own, &options.clock());
        let (given, error) = (&Given::default(), None);
        let setting = Setting { mu: all, nu: all, options, given, terms, aim, error, clock };
        build::check_cost(setting)?;
        let (map, used, coordinates) = match build::design(features, setting)? {
            Design::Maps { maps: [map, _], used, frame, .. } => {
                (map, used, Coordinates::User(frame))
            }
            Design::Choice(choice) => {
                let gauged = setting.gauged()?;
                let Some(own) = gauged.get(Term::SelfX) else { return Ok(None) };
                let map = build::map_of(choice, own, setting, None);
                (map, MethodUsed::Gaussian, Coordinates::Gauge(own.gauge.clone()))
            }
        };
        let used = form.used(used);
        Ok(Some(SharedMap { map, form, used, coordinates }))
    }

    /// Whether there are features to store.
    pub(crate) fn has_features(&self) -> bool {
        self.form == Form::Features
    }

    /// Bytes of the features of some clouds.
    pub(crate) fn bytes(&self, measures: &[Measure<'_>], options: &Options) -> f64 {
        let points: usize = measures.iter().map(|m| m.support().len()).sum();
        let width = match options.precision {
            Precision::F32 => 4.0,
            Precision::F64 => 8.0,
        };
        width * points as f64 * stride(self.map.rank()) as f64
    }

    /// The points of positive weight where the map takes them.
    fn locate<'m>(&self, measure: &'m Measure<'_>) -> Points<'m> {
        let points = measure.support().points;
        match &self.coordinates {
            Coordinates::Gauge(gauge) => gauge.place(0, points).points,
            Coordinates::User(_) => points.borrowed(),
        }
    }
}

impl<'p> Problem<'p> {
    /// A term, or one cloud with itself, with the map of a shared.
    pub(crate) fn with_map(
        shared: &SharedMap,
        mu: &Measure<'p>,
        nu: &Measure<'p>,
        options: &Options,
        terms: Terms,
    ) -> Result<Self> {
        let (begun, clock) = (Instant::now(), options.clock());
        check_rho(mu, nu, options, Terms::All)?;
        let (n, m) = (mu.support().len() as f64, nu.support().len() as f64);
        match shared.form {
            Form::Features => {
                check_memory(Matrices::Features, (n + m) * shared.map.rank() as f64, options)?;
            }
            Form::Pairs { stored: true } => check_memory(Matrices::Kernel, n * m, options)?,
            Form::Pairs { stored: false } => {}
        }
        let maps = [shared.map.clone(), shared.map.clone()];
        if let Coordinates::User(frame) = &shared.coordinates {
            build::check_maps(&maps, frame.as_ref(), mu, nu)?;
        }
        let source = FeatureSource::Maps(maps);
        let kernels = TermKernels::of_features(terms, shared.used, |term| {
            let space = match &shared.coordinates {
                Coordinates::Gauge(gauge) => {
                    Space::gauged(Gauged::new(gauge.clone(), term, [mu, nu])?)
                }
                Coordinates::User(Some(frame)) => Space::Framed(frame.clone()),
                Coordinates::User(None) => Space::Features,
            };
            let site = Site::new(term, [mu, nu], options, clock.cancel(), space);
            Ok(FeatureKernel::new(site, source.clone(), shared.form))
        })?;
        let problem = Problem::of(mu, nu, options, kernels, clock);
        Ok(Problem { prepared: begun.elapsed(), ..problem })
    }

    /// Solves a term with features from a cache: those of the clouds with these numbers.
    pub(crate) fn solve_from<T: Float>(
        &self,
        cache: &mut FeatureCache<'_, T>,
        numbers: [usize; 2],
        (term, start): (Term, Start<'_>),
        left: &Left,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)> {
        let of_second = |error| match error {
            Error::Breakdown { iteration, row, value, remedy, .. } => {
                Error::Breakdown { iteration, cloud: Side::Y, row, value, remedy }
            }
            other => other,
        };
        let kernel = self.kernel(term);
        self.solve_by(term, start, left, observer, |task, work| {
            let Some(features) = kernel.stored_features() else {
                return kernel.solve(task, work);
            };
            let y = match clouds(term) {
                [x, y] if x == y => None,
                _ => Some(cache.take(numbers[1]).map_err(of_second)?),
            };
            let sides = (cache.take(numbers[0])?, y);
            features.solve_on(task, work, sides, |(x, y)| {
                cache.put(numbers[0], x);
                if let Some(y) = y {
                    cache.put(numbers[1], y);
                }
            })
        })
    }
}

/// The points of clouds where a map takes them.
pub(crate) struct Places<'m>(Vec<Points<'m>>);

impl<'m> Places<'m> {
    pub(crate) fn new(shared: &SharedMap, measures: &'m [Measure<'_>]) -> Self {
        Places(measures.iter().map(|measure| shared.locate(measure)).collect())
    }
}

/// Stored features of many clouds.
///
/// What they are stored around is the last message of the cloud's term with itself, its first solve. Every other
/// solve begins there: what it finds does not depend on those before it, nor on whether the features are kept.
pub(crate) struct FeatureCache<'f, T> {
    map: &'f dyn FeatureMap,
    places: &'f Places<'f>,
    slots: Vec<Slot<'f, T>>,
    keeps: bool,
    cancel: &'f Cancel,
}

struct Slot<'f, T> {
    side: Option<Stored<'f, T>>,
    reference: Option<ReferenceMessage>,
}

impl<'f, T: Float> FeatureCache<'f, T> {
    /// A cache that keeps features, or one that evaluates them again for every solve.
    pub(crate) fn new(
        shared: &'f SharedMap,
        places: &'f Places<'f>,
        keeps: bool,
        cancel: &'f Cancel,
    ) -> Self {
        let slots = places.0.iter().map(|_| Slot { side: None, reference: None }).collect();
        FeatureCache { map: &*shared.map, places, slots, keeps, cancel }
    }

    fn take(&mut self, number: usize) -> Result<Stored<'f, T>> {
        let slot = &mut self.slots[number];
        let mut side = slot.side.take().unwrap_or_else(|| {
            let rows = Mapped::new(self.map, self.places.0[number].borrowed());
            Stored::new(Box::new(self.cancel.guard(rows)))
        });
        if let Some(reference) = &slot.reference {
            side.return_to(reference)?;
        }
        Ok(side)
    }

    fn put(&mut self, number: usize, side: Stored<'f, T>) {
        let slot = &mut self.slots[number];
        slot.reference.get_or_insert_with(|| side.reference_message());
        slot.side = self.keeps.then_some(side);
    }
}
