//! Lines, boxes and words at given pixels, where the plotting library has no plot for them.

use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};

use crate::text::{MIDDLE, plain};

/// Fonts that a reader is likely to have; the widths of the first are those that labels are placed by.
pub(crate) const FONTS: &str = "DejaVu Sans, Arial, Helvetica, sans-serif";

/// How words are written.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub(crate) size: u32,
    pub(crate) anchor: TextAnchor,
    /// From below to above.
    pub(crate) upwards: bool,
    pub(crate) colour: &'static str,
}

impl Style {
    pub(crate) fn new(size: u32, anchor: TextAnchor) -> Self {
        Style { size, anchor, upwards: false, colour: "#222222" }
    }

    pub(crate) fn upwards(self) -> Self {
        Style { upwards: true, ..self }
    }
}

pub(crate) fn blank(width: f64, height: f64) -> Scene {
    let mut scene = Scene::new(width, height);
    scene.font_family = Some(FONTS.to_owned());
    scene
}

/// Words whose capital letters have their middle at a height, or, upwards, at a distance from the left.
pub(crate) fn write(scene: &mut Scene, [x, y]: [f64; 2], words: &str, style: Style) {
    let below = MIDDLE * f64::from(style.size);
    let [x, y] = if style.upwards { [x + below, y] } else { [x, y + below] };
    scene.add(Primitive::Text {
        x,
        y,
        content: plain(words),
        size: style.size,
        anchor: style.anchor,
        rotate: style.upwards.then_some(-90.0),
        bold: false,
        color: Some(style.colour.into()),
    });
}

pub(crate) fn line(
    scene: &mut Scene,
    [x1, y1]: [f64; 2],
    [x2, y2]: [f64; 2],
    colour: &str,
    thick: f64,
) {
    scene.add(Primitive::Line {
        x1,
        y1,
        x2,
        y2,
        stroke: colour.into(),
        stroke_width: thick,
        stroke_dasharray: None,
    });
}

/// A box, filled or with an outline.
pub(crate) fn block(
    scene: &mut Scene,
    [x, y]: [f64; 2],
    [width, height]: [f64; 2],
    fill: Fill<'_>,
) {
    let (fill, stroke) = match fill {
        Fill::Colour(colour) => (Color::from(colour), None),
        Fill::Outline(colour) => (Color::from("none"), Some(Color::from(colour))),
    };
    let stroke_width = stroke.is_some().then_some(1.0);
    scene.add(Primitive::Rect { x, y, width, height, fill, stroke, stroke_width, opacity: None });
}

/// What a box looks like.
#[derive(Clone, Copy)]
pub(crate) enum Fill<'a> {
    Colour(&'a str),
    Outline(&'a str),
}
