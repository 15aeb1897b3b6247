//! The toy of the paper's kind of training: it must really learn, in a time that tests have.

use orthant_gan::ring::{MODES, coverage};
use orthant_gan::{Config, Data, Trainer};

/// Eight Gaussians on a ring. A sample is of a Gaussian if it is within three deviations of its centre; a Gaussian is
/// covered if it has 5% of all samples, of 12.5% that would be its part. Samples that are spread over the whole ring would
/// leave each with 4.8%, and be near one in 38 of 100 cases.
#[test]
fn all_eight_gaussians_are_covered() {
    let config = Config::parse("ring.toml", include_str!("../configs/ring.toml")).unwrap();
    let steps = config.training.steps;
    let mut trainer = Trainer::new(config, Data::Ring).unwrap();
    let before = coverage(&trainer.generator().points(4000, 1).unwrap());
    assert!(before.near < 0.3, "nothing is learned yet: {before:?}");
    for _ in 0..steps {
        trainer.step().unwrap();
    }
    let after = coverage(&trainer.generator().points(4000, 1).unwrap());
    assert_eq!(after.covered(), MODES, "{after:?}");
    assert!(after.near > 0.6, "{after:?}");
}
