//! The rules of steps: `RMSprop` and Adam, over plain numbers, so that a checkpoint has all of their state.

use crate::config::Optimiser;

/// Keeps divisions finite.
const TINY: f32 = 1e-8;

/// An optimiser of some arrays.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stepper {
    optimiser: Optimiser,
    beta1: f64,
    beta2: f64,
    /// Steps done.
    pub(crate) count: u64,
    /// Of each array the means of the gradient (Adam only) and of its square.
    pub(crate) moments: Vec<[Vec<f32>; 2]>,
}

impl Stepper {
    /// An optimiser of arrays of these sizes.
    pub(crate) fn new(
        optimiser: Optimiser,
        [beta1, beta2]: [f64; 2],
        sizes: impl Iterator<Item = usize>,
    ) -> Self {
        let moments = |size| match optimiser {
            Optimiser::RmsProp => [Vec::new(), vec![0.0; size]],
            Optimiser::Adam => [vec![0.0; size], vec![0.0; size]],
        };
        Stepper { optimiser, beta1, beta2, count: 0, moments: sizes.map(moments).collect() }
    }

    /// Begins a step of all arrays.
    pub(crate) fn begin(&mut self) {
        self.count += 1;
    }

    /// Moves the array of this number against its gradient.
    #[expect(clippy::cast_possible_truncation, reason = "weights are in single precision")]
    pub(crate) fn descend(
        &mut self,
        array: usize,
        rate: f64,
        weights: &mut [f32],
        gradient: &[f32],
    ) {
        let [first, second] = &mut self.moments[array];
        let (beta1, beta2) = (self.beta1 as f32, self.beta2 as f32);
        let weights = weights.iter_mut().zip(gradient);
        match self.optimiser {
            Optimiser::RmsProp => {
                let rate = rate as f32;
                for ((w, g), v) in weights.zip(second) {
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *w -= rate * g / (v.sqrt() + TINY);
                }
            }
            Optimiser::Adam => {
                let correction = |beta: f64| 1.0 - beta.powi(self.count.min(1 << 30) as i32);
                let rate = (rate / correction(self.beta1)) as f32;
                let scale = (1.0 / correction(self.beta2)) as f32;
                for (((w, g), m), v) in weights.zip(first).zip(second) {
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *w -= rate * *m / ((*v * scale).sqrt() + TINY);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three steps on gradients 1, -2, 0.5 from weight 1 with rate 0.1, in double precision from the definitions.
    #[test]
    fn steps_are_those_of_the_formulas() {
        let gradients = [1.0_f32, -2.0, 0.5];
        for (optimiser, formula) in
            [(Optimiser::RmsProp, rmsprop as fn(&[f64]) -> f64), (Optimiser::Adam, adam)]
        {
            let mut stepper = Stepper::new(optimiser, [0.5, 0.99], [1].into_iter());
            let mut weight = [1.0];
            for g in gradients {
                stepper.begin();
                stepper.descend(0, 0.1, &mut weight, &[g]);
            }
            let expected = formula(&gradients.map(f64::from));
            assert!((f64::from(weight[0]) - expected).abs() < 1e-6, "{} {expected}", weight[0]);
        }
    }

    fn rmsprop(gradients: &[f64]) -> f64 {
        let (mut w, mut v) = (1.0, 0.0);
        for g in gradients {
            v = 0.99 * v + 0.01 * g * g;
            w -= 0.1 * g / (f64::sqrt(v) + 1e-8);
        }
        w
    }

    /// With means as explicit sums and not recursions.
    fn adam(gradients: &[f64]) -> f64 {
        let mut w = 1.0;
        for t in 1..=gradients.len() {
            let mean = |beta: f64, power: i32| {
                let terms = gradients[..t].iter().rev().enumerate();
                let sum: f64 = terms.map(|(k, g)| beta.powf(k as f64) * g.powi(power)).sum();
                (1.0 - beta) * sum / (1.0 - beta.powf(t as f64))
            };
            w -= 0.1 * mean(0.5, 1) / (mean(0.99, 2).sqrt() + 1e-8);
        }
        w
    }
}
