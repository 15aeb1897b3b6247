//! What an experiment is: cases, how one is run, and what is drawn of all.

use std::path::Path;

use orthant_support::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::page::Section;

/// The settings of an experiment, from which everything else follows.
pub(crate) trait Study: Serialize + DeserializeOwned {
    /// All that a run depends on; written out, it is the key of the run.
    type Case: Serialize + DeserializeOwned;
    /// What came of a run.
    type Outcome: Serialize + DeserializeOwned;
    /// What runs need, made once, and only if something is to be run.
    type Data;

    /// Why the settings make no sense.
    fn check(&self) -> Result<(), String>;

    /// All runs, in order.
    fn cases(&self) -> Vec<Self::Case>;

    /// A guess of the time of a run, on two cores of today.
    fn seconds(&self, case: &Self::Case) -> f64;

    /// A few words on a run, for the progress bar.
    fn words(&self, case: &Self::Case) -> String;

    /// Clouds of points, from seeds or from files of this folder.
    fn data(&self, folder: Option<&Path>) -> Result<Self::Data, Failure>;

    /// One run.
    fn run(&self, data: &Self::Data, case: &Self::Case) -> Result<Self::Outcome, Failure>;

    /// Figures, a table and what is to be seen, of the runs that there are.
    fn section(&self, done: &[(Self::Case, Self::Outcome)]) -> Result<Section, Failure>;
}
