//! Colours that mean numbers, and the bar that tells which.

use kuva::plot::ColorMap;
use kuva::render::render::{Scene, TextAnchor};
use kuva::render::render_utils::{compute_tick_step, generate_ticks};

use crate::canvas::{Fill, Style, block, line, write};
use crate::text;

/// Pixels of the letters at a bar.
const SIZE: u32 = 11;
/// Pixels across the colours, and between the parts of a bar.
const COLOURS_WIDTH: f64 = 14.0;
const GAP: f64 = 6.0;
/// Pixels from one number to the next, at least.
const APART: f64 = 14.0;
/// Shades of a bar.
const SHADES: u32 = 64;

/// A scale of colours from one number to another.
pub(crate) struct Bar {
    name: String,
    map: ColorMap,
    ends: [f64; 2],
    /// Whether there are numbers beyond the ends, which have the colours of the ends.
    beyond: [bool; 2],
}

impl Bar {
    /// From the lowest to the highest of the values.
    pub(crate) fn whole(name: &str, map: ColorMap, values: &[f64]) -> Self {
        let range = |[low, high]: [f64; 2], x: &f64| [low.min(*x), high.max(*x)];
        let ends = values.iter().fold([f64::INFINITY, f64::NEG_INFINITY], range);
        Bar { name: name.to_owned(), map, ends, beyond: [false; 2] }
    }

    /// Without the lowest and the highest two percent: few values that are far from the others would leave one colour to
    /// all of these.
    pub(crate) fn most(name: &str, map: ColorMap, values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (rest, last) = (sorted.len() / 50, sorted.len() - 1);
        let ends = [sorted[rest], sorted[last - rest]];
        let beyond = [sorted[0] < ends[0], sorted[last] > ends[1]];
        Bar { name: name.to_owned(), map, ends, beyond }
    }

    pub(crate) fn colour(&self, value: f64) -> String {
        let [low, high] = self.ends;
        // Halves, because a difference of two finite numbers may overflow.
        let part = (0.5 * value - 0.5 * low) / (0.5 * high - 0.5 * low);
        self.map.map(if high > low { part.clamp(0.0, 1.0) } else { 0.5 })
    }

    /// Places of numbers from 0 below to 1 above, and what is written there.
    fn ticks(&self, height: f64) -> Vec<(f64, String)> {
        let [low, high] = self.ends;
        let half = 0.5 * high - 0.5 * low;
        if half <= 0.0 {
            return vec![(0.5, number(low, low.abs()))];
        }
        let step = compute_tick_step(low, high, 5);
        let mut ticks = Vec::new();
        for (place, end, beyond, sign) in
            [(0.0, low, self.beyond[0], '≤'), (1.0, high, self.beyond[1], '≥')]
        {
            if beyond {
                ticks.push((place, format!("{sign} {}", number(end, 0.1 * step))));
            }
        }
        let inside = generate_ticks(low, high, 5).into_iter().filter(|x| (low..=high).contains(x));
        for value in inside {
            let place = (0.5 * value - 0.5 * low) / half;
            if ticks.iter().all(|(other, _)| (place - other).abs() * height >= APART) {
                ticks.push((place, number(value, step)));
            }
        }
        ticks
    }

    /// Pixels from left to right.
    pub(crate) fn width(&self, height: f64) -> f64 {
        let ticks = self.ticks(height);
        let widest = ticks.iter().map(|(_, words)| text::width(words, f64::from(SIZE)));
        f64::from(SIZE) + COLOURS_WIDTH + 3.0 * GAP + widest.fold(0.0, f64::max)
    }

    /// With its name on the left and numbers on the right.
    pub(crate) fn draw(&self, scene: &mut Scene, [x, y]: [f64; 2], height: f64) {
        let upwards = Style::new(SIZE, TextAnchor::Middle).upwards();
        let name = text::fit(&self.name, height, f64::from(SIZE));
        if !name.is_empty() {
            write(scene, [x + 0.5 * f64::from(SIZE), y + 0.5 * height], &name, upwards);
        }
        let left = x + f64::from(SIZE) + GAP;
        let [low, high] = self.ends;
        let shade = height / f64::from(SHADES);
        for k in 0..SHADES {
            let part = 1.0 - (f64::from(k) + 0.5) / f64::from(SHADES);
            let colour = self.colour((1.0 - part) * low + part * high);
            // Overlapping, so that no gap is seen.
            let tall = if k + 1 < SHADES { shade + 0.5 } else { shade };
            let corner = [left, y + f64::from(k) * shade];
            block(scene, corner, [COLOURS_WIDTH, tall], Fill::Colour(&colour));
        }
        block(scene, [left, y], [COLOURS_WIDTH, height], Fill::Outline("#555555"));
        let right = left + COLOURS_WIDTH;
        for (place, words) in self.ticks(height) {
            let level = y + (1.0 - place) * height;
            line(scene, [right, level], [right + 4.0, level], "#555555", 1.0);
            let style = Style::new(SIZE, TextAnchor::Start);
            write(scene, [right + GAP, level], &words, style);
        }
    }
}

/// A number with the digits that tell it from its neighbours, a step away.
pub(crate) fn number(value: f64, step: f64) -> String {
    let step = if step > 0.0 { step } else { 1.0 };
    // What is left of zero after rounding.
    let value = if value.abs() < 1e-9 * step { 0.0 } else { value };
    let (size, fine) = (value.abs().max(step).log10().floor(), step.log10().floor());
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few digits")]
    let digits = |count: f64| count.clamp(0.0, 17.0) as usize;
    // A step of 2.5 has one digit more than one of 2.
    let more = f64::from(u8::from(((step / 10.0_f64.powf(fine)).fract() - 0.5).abs() < 1e-6));
    if size < 5.0 && fine >= -4.0 {
        format!("{value:.*}", digits(more - fine))
    } else {
        format!("{value:.*e}", digits(size - fine + more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_of_their_step() {
        let cases = [
            (0.5, 0.25, "0.50"),
            (2.0, 1.0, "2"),
            (-0.0, 0.5, "0.0"),
            (2.5e-7, 2.5e-7, "2.5e-7"),
            (1e-20, 0.1, "0.0"),
            (1_250_000.0, 250_000.0, "1.25e6"),
            (0.0, 0.0, "0"),
            (120.0, 20.0, "120"),
        ];
        for (value, step, words) in cases {
            assert_eq!(number(value, step), words, "{value} {step}");
        }
    }

    #[test]
    fn what_lies_beyond_the_ends_is_said() {
        let mut values: Vec<f64> = (0..100).map(f64::from).collect();
        values.push(1e6);
        let bar = Bar::most("v", ColorMap::Viridis, &values);
        let words: Vec<String> = bar.ticks(200.0).into_iter().map(|(_, words)| words).collect();
        assert!(
            words.contains(&"≤ 2".to_owned()) && words.contains(&"≥ 98".to_owned()),
            "{words:?}"
        );
        assert_eq!(bar.colour(1e6), bar.colour(98.0));
        // The whole range of numbers, and a single one.
        let bar = Bar::whole("v", ColorMap::Viridis, &[-f64::MAX, f64::MAX]);
        assert!(bar.ticks(100.0).iter().all(|(place, _)| (0.0..=1.0).contains(place)));
        assert_eq!(Bar::whole("v", ColorMap::Viridis, &[3.0]).ticks(100.0).len(), 1);
    }
}
