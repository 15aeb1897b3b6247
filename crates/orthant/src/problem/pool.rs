//! One feature map for many clouds, and the features of each of them, evaluated once.

use std::sync::Arc;
use std::time::Instant;

use super::stage::{Placement, Stage};
use super::{
    Aim, Ground, Problem, Scaling, Setting, Start, Storage, Terms, check_maps, check_memory,
    check_rho, feature_ground,
};
use crate::control::{Cancel, Clocked, Observer, begin};
use crate::coordinates::{Frame, Gauge};
use crate::error::{Error, Result};
use crate::features::{FeatureMap, Mapped, stride};
use crate::kernel::{Rest, Stored};
use crate::measure::{Measure, Points};
use crate::numerics::simd::Float;
use crate::options::{Anchors, Cost, Features, Method, Options, Precision};
use crate::results::{Solution, Used};
use crate::words::{Cloud, Phase, Term, clouds};

/// A feature map that does not depend on which two of the clouds meet.
#[derive(Debug)]
pub(crate) struct Pool {
    map: Arc<dyn FeatureMap>,
    storage: Storage,
    used: Used,
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

impl Pool {
    /// The map of the options for clouds that are parts of `all`, if theirs is such a map.
    pub(crate) fn new(all: &Measure<'_>, options: &Options<'_>) -> Result<Option<Self>> {
        let (storage, features) = match &options.method {
            Method::Factored(features) => (Storage::Factored, features),
            Method::Dense(Cost::Features(features)) => (Storage::Dense, features),
            Method::Online(Cost::Features(features)) => (Storage::Online, features),
            _ => return Ok(None),
        };
        if let Features::Gaussian(Anchors::Lattice { .. } | Anchors::Adaptive) = features {
            return Ok(None);
        }
        let (terms, aim) = (Terms::Own, Aim::Own);
        let clock = &options.clock();
        let setting = Setting { mu: all, nu: all, options, terms, aim, error: None, clock };
        let (map, used, coordinates) = match feature_ground(features, storage, setting)? {
            Ground::Maps { maps: [map, _], used, frame, .. } => {
                (map, used, Coordinates::User(frame))
            }
            Ground::Euclidean { mut stages, used } => {
                let stage = stages[Term::SelfX as usize].take();
                match stage.map(|stage| (stage.gauge, stage.features)) {
                    Some((gauge, Placement::Map(map))) => (map, used, Coordinates::Gauge(gauge)),
                    _ => return Ok(None),
                }
            }
            Ground::Matrix(_) | Ground::Explicit(..) => return Ok(None),
        };
        Ok(Some(Pool { map, storage, used, coordinates }))
    }

    /// Whether there are features to store.
    pub(crate) fn has_features(&self) -> bool {
        self.storage == Storage::Factored
    }

    /// Bytes of the features of some clouds.
    pub(crate) fn bytes(&self, measures: &[Measure<'_>], options: &Options<'_>) -> f64 {
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
    /// A term, or one cloud with itself, with the map of a pool.
    pub(crate) fn pooled(
        pool: &Pool,
        mu: &'p Measure<'p>,
        nu: &'p Measure<'p>,
        options: &'p Options<'p>,
        terms: Terms,
    ) -> Result<Self> {
        let begun = Instant::now();
        check_rho(mu, nu, options, Terms::All)?;
        let (n, m) = (mu.support().len() as f64, nu.support().len() as f64);
        match pool.storage {
            Storage::Factored => {
                let numbers = (n + m) * pool.map.rank() as f64;
                check_memory(pool.storage, numbers, options)?;
            }
            Storage::Dense => check_memory(pool.storage, n * m, options)?,
            _ => {}
        }
        let used = pool.used;
        let ground = match &pool.coordinates {
            Coordinates::Gauge(gauge) => {
                let mut stages = [None, None, None];
                for &term in terms.list() {
                    let mut stage = Stage::new(gauge.clone(), term, mu, nu)?;
                    stage.features = Placement::Map(pool.map.clone());
                    stages[term as usize] = Some(stage);
                }
                Ground::Euclidean { stages: Box::new(stages), used }
            }
            Coordinates::User(frame) => {
                let maps = [pool.map.clone(), pool.map.clone()];
                Ground::Maps { maps, shared: true, used, frame: frame.clone() }
            }
        };
        check_maps(&ground, mu, nu)?;
        Ok(Problem {
            mu,
            nu,
            options,
            ground,
            storage: pool.storage,
            reason: None,
            pick: None,
            aim: Aim::Own,
            tight: None,
            polishes: false,
            round: 0,
            spent: 0,
            clock: options.clock(),
            prepared: begun.elapsed(),
        })
    }

    /// Solves a term with features from a shelf: those of the clouds with these numbers.
    pub(crate) fn solve_from<T: Float>(
        &self,
        shelf: &mut Shelf<'_, T>,
        numbers: [usize; 2],
        term: Term,
        start: Start<'_>,
        observer: &mut dyn Observer,
    ) -> Result<(Solution, Scaling)> {
        let of_second = |error| match error {
            Error::Breakdown { iteration, row, value, remedy, .. } => {
                Error::Breakdown { iteration, cloud: Cloud::Y, row, value, remedy }
            }
            other => other,
        };
        let mut observer = Clocked { clock: &self.clock, observer, stopped: false };
        self.clock.run(|| {
            begin(&mut observer, Phase::Features)?;
            self.solve_by(term, start, |task, _| {
                let y = match clouds(term) {
                    [x, y] if x == y => None,
                    _ => Some(shelf.take(numbers[1]).map_err(of_second)?),
                };
                let sides = (shelf.take(numbers[0])?, y);
                let keep = |(x, y)| {
                    shelf.put(numbers[0], x);
                    if let Some(y) = y {
                        shelf.put(numbers[1], y);
                    }
                };
                self.factored_on(task, sides, keep, &mut observer)
            })
        })
    }
}

/// The points of clouds where a map takes them.
pub(crate) struct Places<'m>(Vec<Points<'m>>);

impl<'m> Places<'m> {
    pub(crate) fn new(pool: &Pool, measures: &'m [Measure<'_>]) -> Self {
        Places(measures.iter().map(|measure| pool.locate(measure)).collect())
    }
}

/// Stored features of many clouds.
///
/// What they are stored around is the last message of the cloud's term with itself, its first solve. Every other
/// solve begins there: what it finds does not depend on those before it, nor on whether the features are kept.
pub(crate) struct Shelf<'f, T> {
    map: &'f dyn FeatureMap,
    places: &'f Places<'f>,
    slots: Vec<Slot<'f, T>>,
    keeps: bool,
    cancel: &'f Cancel,
}

struct Slot<'f, T> {
    side: Option<Stored<'f, T>>,
    rest: Option<Rest>,
}

impl<'f, T: Float> Shelf<'f, T> {
    /// A shelf that keeps features, or one that evaluates them again for every solve.
    pub(crate) fn new(
        pool: &'f Pool,
        places: &'f Places<'f>,
        keeps: bool,
        cancel: &'f Cancel,
    ) -> Self {
        let slots = places.0.iter().map(|_| Slot { side: None, rest: None }).collect();
        Shelf { map: &*pool.map, places, slots, keeps, cancel }
    }

    fn take(&mut self, number: usize) -> Result<Stored<'f, T>> {
        let slot = &mut self.slots[number];
        let mut side = slot.side.take().unwrap_or_else(|| {
            let rows = Mapped::new(self.map, self.places.0[number].borrowed());
            Stored::new(Box::new(self.cancel.guard(rows)))
        });
        if let Some(rest) = &slot.rest {
            side.return_to(rest)?;
        }
        Ok(side)
    }

    fn put(&mut self, number: usize, side: Stored<'f, T>) {
        let slot = &mut self.slots[number];
        slot.rest.get_or_insert_with(|| side.rest());
        slot.side = self.keeps.then_some(side);
    }
}
