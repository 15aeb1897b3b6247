//! Names at points, where they hide neither each other nor a point.

use kuva::render::layout::{ComputedLayout, Layout};
use kuva::render::render::{Scene, TextAnchor};

use crate::canvas::{Style, line, write};
use crate::text;

/// Pixels of a letter, of a line, around a point, and around names beside the clouds.
const SIZE: u32 = 11;
const LINE: f64 = 14.0;
const POINT: f64 = 5.0;
pub(crate) const GAP: f64 = 12.0;

/// Points with names, in the units of the axes.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) points: Vec<[f64; 2]>,
    pub(crate) names: Vec<String>,
}

/// Where a name is written: the middle of the left or the right end.
struct Place {
    at: [f64; 2],
    anchor: TextAnchor,
}

impl Names {
    fn widths(&self) -> Vec<f64> {
        self.names.iter().map(|name| text::width(name, f64::from(SIZE))).collect()
    }

    /// Names beside their points, if all of them have room there.
    pub(crate) fn beside(&self, layout: &Layout) -> Option<Placed> {
        let computed = ComputedLayout::from_layout(layout);
        let points: Vec<[f64; 2]> = self.pixels(&computed);
        let [left, top] = [computed.margin_left, computed.margin_top];
        let area = [left, top, left + computed.plot_width(), top + computed.plot_height()];
        let mut taken: Vec<[f64; 4]> = Vec::new();
        let mut places = Vec::new();
        for ([x, y], width) in points.iter().zip(self.widths()) {
            // To the right, to the left, above and below.
            let corners = [
                [x + POINT + 2.0, y - 0.5 * LINE],
                [x - POINT - 2.0 - width, y - 0.5 * LINE],
                [x - 0.5 * width, y - POINT - LINE],
                [x - 0.5 * width, y + POINT],
                [x + POINT, y - POINT - LINE],
                [x + POINT, y + POINT],
                [x - POINT - width, y - POINT - LINE],
                [x - POINT - width, y + POINT],
            ];
            let free = |[u, v]: &[f64; 2]| {
                let box_ = [*u, *v, u + width, v + LINE];
                let inside = box_[0] >= area[0]
                    && box_[1] >= area[1]
                    && box_[2] <= area[2]
                    && box_[3] <= area[3];
                let meets = |other: &[f64; 4]| {
                    box_[0] < other[2]
                        && other[0] < box_[2]
                        && box_[1] < other[3]
                        && other[1] < box_[3]
                };
                let hides = |[x, y]: &[f64; 2]| {
                    meets(&[x - POINT + 1.0, y - POINT + 1.0, x + POINT - 1.0, y + POINT - 1.0])
                };
                inside && !taken.iter().any(meets) && !points.iter().any(hides)
            };
            let [u, v] = corners.into_iter().find(free)?;
            taken.push([u, v, u + width, v + LINE]);
            places.push(Place { at: [u, v + 0.5 * LINE], anchor: TextAnchor::Start });
        }
        Some(Placed { places, points: Vec::new() })
    }

    /// Pixels that columns of names need on either side, and from above to below.
    pub(crate) fn room(&self) -> [f64; 2] {
        let widest = self.widths().into_iter().fold(0.0, f64::max);
        [widest + 2.0 * GAP, LINE * self.names.len().div_ceil(2) as f64 + 2.0 * GAP]
    }

    /// Limits of axes that leave so many pixels free on either side.
    pub(crate) fn limits(&self, layout: &Layout, equal: bool, side: f64) -> [[f64; 2]; 2] {
        let computed = ComputedLayout::from_layout(layout);
        let pixels = [computed.plot_width() - 2.0 * side, computed.plot_height() - 2.0 * GAP];
        let range = |axis: usize| {
            let all = self.points.iter().map(|p| p[axis]);
            all.fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], x| [l.min(x), h.max(x)])
        };
        let ranges = [range(0), range(1)];
        // What a pixel is in the units of the axes.
        let mut units = [0, 1].map(|axis| {
            let [low, high] = ranges[axis];
            if high > low { (high - low) / pixels[axis].max(1.0) } else { 0.0 }
        });
        let largest = units[0].max(units[1]);
        for unit in &mut units {
            if equal || *unit == 0.0 {
                *unit = if largest > 0.0 { largest } else { 0.01 };
            }
        }
        let all = [computed.plot_width(), computed.plot_height()];
        [0, 1].map(|axis| {
            let middle = 0.5 * ranges[axis][0] + 0.5 * ranges[axis][1];
            let half = 0.5 * units[axis] * all[axis];
            [middle - half, middle + half]
        })
    }

    /// Names in two columns, of the points that are further left and of those that are further right.
    pub(crate) fn columns(&self, layout: &Layout) -> Placed {
        let computed = ComputedLayout::from_layout(layout);
        let points = self.pixels(&computed);
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]));
        let (left, right) = order.split_at(points.len().div_ceil(2));
        let edge = computed.margin_left + computed.plot_width();
        let [low, high] = [0.0, computed.plot_height()].map(|y| computed.margin_top + y);
        let mut placed: Vec<Option<Place>> = points.iter().map(|_| None).collect();
        for (side, x) in [(left, computed.margin_left + 0.5 * GAP), (right, edge - 0.5 * GAP)] {
            let anchor = if x < 0.5 * edge { TextAnchor::Start } else { TextAnchor::End };
            let mut side = side.to_vec();
            side.sort_by(|&a, &b| points[a][1].total_cmp(&points[b][1]));
            let wanted: Vec<f64> = side.iter().map(|&k| points[k][1]).collect();
            let ends = [low + 0.5 * LINE, high - 0.5 * LINE];
            for (k, y) in side.into_iter().zip(spread(&wanted, ends)) {
                placed[k] = Some(Place { at: [x, y], anchor });
            }
        }
        Placed { places: placed.into_iter().flatten().collect(), points }
    }

    fn pixels(&self, computed: &ComputedLayout) -> Vec<[f64; 2]> {
        self.points.iter().map(|p| [computed.map_x(p[0]), computed.map_y(p[1])]).collect()
    }

    pub(crate) fn draw(&self, scene: &mut Scene, placed: &Placed) {
        for (place, name) in placed.places.iter().zip(&self.names) {
            write(scene, place.at, name, Style::new(SIZE, place.anchor));
        }
        // From names that are far from their points, a line leads to these.
        for ((place, [x, y]), width) in placed.places.iter().zip(&placed.points).zip(self.widths())
        {
            let [u, v] = place.at;
            let start = if matches!(place.anchor, TextAnchor::Start) {
                u + width + 3.0
            } else {
                u - width - 3.0
            };
            let (dx, dy) = (x - start, y - v);
            let length = dx.hypot(dy).max(1.0);
            let part = (1.0 - POINT / length).max(0.0);
            line(scene, [start, v], [start + part * dx, v + part * dy], "#999999", 0.7);
        }
    }
}

/// Where all names are; and the points that lines lead to.
pub(crate) struct Placed {
    places: Vec<Place>,
    points: Vec<[f64; 2]>,
}

/// Heights a line of text apart that are nearest to those wanted, which ascend, between the ends: a regression in which
/// lines that would meet are moved together.
fn spread(wanted: &[f64], [low, high]: [f64; 2]) -> Vec<f64> {
    // Sums and counts of lines that touch, each without the lines above it.
    let mut blocks: Vec<(f64, usize)> = Vec::new();
    for (k, y) in wanted.iter().enumerate() {
        let mut block = (y - LINE * k as f64, 1);
        while let Some((sum, count)) =
            blocks.pop_if(|(sum, count)| *sum / *count as f64 >= block.0 / block.1 as f64)
        {
            block = (block.0 + sum, block.1 + count);
        }
        blocks.push(block);
    }
    let most = high - LINE * wanted.len().saturating_sub(1) as f64;
    let tops = blocks.into_iter().flat_map(|(sum, count)| {
        std::iter::repeat_n((sum / count as f64).min(most).max(low), count)
    });
    tops.enumerate().map(|(k, top)| top + LINE * k as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_spread_between_the_ends() {
        let even = spread(&[50.0, 50.0, 50.0, 99.0], [0.0, 100.0]);
        assert!(even.windows(2).all(|w| w[1] - w[0] >= LINE - 1e-9), "{even:?}");
        assert!(even[0] >= 0.0 && even[3] <= 100.0, "{even:?}");
        assert_eq!(spread(&[10.0, 60.0], [0.0, 100.0]), [10.0, 60.0]);
        // The mean stays where it was.
        assert_eq!(spread(&[50.0; 3], [0.0, 100.0]), [50.0 - LINE, 50.0, 50.0 + LINE]);
    }
}
