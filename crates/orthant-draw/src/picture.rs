//! Pictures of one panel or several, and their files.

use std::path::Path;

use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::legend::{LegendEntry, LegendShape};
use kuva::render::render::{Primitive, Scene, TextAnchor, render_legend_at};
use kuva::render::theme::Theme;

use crate::canvas::{Style, blank, write};
use crate::error::{Error, Result};
use crate::panel::{LETTER, MARK, Panel};
use crate::text::fit;

/// Pixels of a PNG for one of an SVG.
const PIXELS: f32 = 2.0;
/// Pixels around panels, between them, of the title and of a row of a legend.
const AROUND: f64 = 10.0;
const BETWEEN: f64 = 15.0;
const TITLE: u32 = 20;
const ROW: f64 = 20.0;

/// Something to look at.
pub struct Picture {
    scene: Scene,
}

impl From<Panel> for Picture {
    fn from(panel: Panel) -> Self {
        Picture { scene: panel.scene(true) }
    }
}

impl Picture {
    /// Panels side by side, row after row.
    pub fn grid(title: &str, columns: usize, panels: Vec<Panel>) -> Result<Self> {
        let scenes = panels.into_iter().map(|panel| panel.scene(true)).collect();
        Self::arranged(title, columns, scenes, &[])
    }

    /// The same with one legend below for all of them: lines, dashed ones and crosses, by their colours.
    pub fn multiples(title: &str, columns: usize, panels: Vec<Panel>) -> Result<Self> {
        let mut keys: Vec<(usize, LegendEntry)> = Vec::new();
        for (colour, key) in panels.iter().flat_map(|panel| &panel.keys) {
            if keys.iter().all(|(_, other)| other.label != key.label) {
                keys.push((*colour, key.clone()));
            }
        }
        // Lines before crosses, which are about them.
        keys.sort_by_key(|(colour, key)| (*colour, matches!(key.shape, LegendShape::Marker(_))));
        let entries: Vec<LegendEntry> = keys.into_iter().map(|(_, key)| key).collect();
        let scenes = panels.into_iter().map(|panel| panel.scene(false)).collect();
        Self::arranged(title, columns, scenes, &entries)
    }

    /// Columns are as wide as their widest panel, rows as high as their highest.
    fn arranged(
        title: &str,
        columns: usize,
        panels: Vec<Scene>,
        legend: &[LegendEntry],
    ) -> Result<Self> {
        if panels.is_empty() {
            return Err(Error::Empty);
        }
        let columns = columns.clamp(1, panels.len());
        let mut widths = vec![0.0_f64; columns];
        let mut heights = vec![0.0_f64; panels.len().div_ceil(columns)];
        for (k, panel) in panels.iter().enumerate() {
            widths[k % columns] = widths[k % columns].max(panel.width);
            heights[k / columns] = heights[k / columns].max(panel.height);
        }
        let along = |sizes: &[f64]| sizes.iter().map(|size| size + BETWEEN).sum::<f64>();
        let width = 2.0 * AROUND + along(&widths) - BETWEEN;
        let above = AROUND + if title.is_empty() { 0.0 } else { 2.0 * f64::from(TITLE) };
        let below = above + along(&heights);
        let (rows, across, column) = legend_rows(legend, width - 2.0 * AROUND);
        let mut scene = blank(width, below + ROW * rows as f64 + AROUND);
        if !title.is_empty() {
            let title = fit(title, width - 2.0 * AROUND, f64::from(TITLE));
            let middle = [0.5 * width, 0.5 * above + 4.0];
            write(&mut scene, middle, &title, Style::new(TITLE, TextAnchor::Middle));
        }
        for (k, panel) in panels.into_iter().enumerate() {
            let x = AROUND + along(&widths[..k % columns]);
            let y = above + along(&heights[..k / columns]);
            put(&mut scene, panel, [x, y]);
        }
        for (k, entry) in legend.iter().enumerate() {
            let place = [k % across, k / across].map(|i| i as f64);
            let x = AROUND + place[0] * column;
            let y = below + place[1] * ROW;
            let (one, theme) = (std::slice::from_ref(entry), Theme::default());
            render_legend_at(one, None, None, false, &mut scene, x, y, width, 12, &theme);
        }
        Ok(Picture { scene })
    }

    /// As a vector graphic, that a page can make smaller.
    pub fn svg(&self) -> String {
        let svg = SvgBackend::new().render_scene(&self.scene);
        let Scene { width, height, .. } = self.scene;
        svg.replacen("<svg ", &format!("<svg viewBox=\"0 0 {width} {height}\" "), 1)
    }

    /// As pixels.
    pub fn png(&self) -> Result<Vec<u8>> {
        let renderer = RasterBackend::new().with_scale(PIXELS);
        renderer.render_scene(&self.scene).map_err(Error::Render)
    }

    /// The bytes of a file of this name: `.svg` or `.png`.
    pub fn encode(&self, path: &Path) -> Result<Vec<u8>> {
        match path.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
            Some("svg") => Ok(self.svg().into_bytes()),
            Some("png") => self.png(),
            _ => Err(Error::Format(path.display().to_string())),
        }
    }
}

/// Rows of a legend, entries in a row, and how wide an entry is.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few columns")]
fn legend_rows(legend: &[LegendEntry], width: f64) -> (usize, usize, f64) {
    let longest = legend.iter().map(|entry| entry.label.chars().count()).max().unwrap_or(0);
    let column = LETTER * longest as f64 + MARK;
    let across = ((width / column) as usize).max(1);
    (legend.len().div_ceil(across), across, column)
}

/// One scene in another.
fn put(scene: &mut Scene, part: Scene, [x, y]: [f64; 2]) {
    scene.defs.extend(part.defs);
    let transform = Some(format!("translate({x},{y})"));
    scene.add(Primitive::GroupStart { transform, title: None, extra_attrs: None });
    scene.elements.extend(part.elements);
    scene.add(Primitive::GroupEnd);
}
