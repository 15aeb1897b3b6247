//! The hot kernels: the only code written for the machine and not for the reader.
//!
//! Kernels are generic over the instruction set, which [`pulp`] chooses at run time. Those with sums
//! across a row use its vectors; those that treat every entry alike are plain loops, which the
//! compiler turns into vectors once the instruction set is known. The tests compare all of them with
//! scalar loops, on this machine's instruction set and on the baseline. Lengths are multiples of
//! [`LANES`]; storage is padded.

mod affine;
mod aligned;
mod exp;
mod log;
mod panels;
mod separable;
mod sweep;

pub(crate) use affine::{Start, affine};
pub(crate) use aligned::Aligned;
pub(crate) use exp::{ColumnSums, exp_row, exp_slice, max_sum};
pub(crate) use log::ln_row;
pub(crate) use panels::{
    BothPanels, In, Norm, PANEL, PANEL_STEP, TILE_ROWS, add_rows, exp_tile, join_panels, mean_log,
};
pub(crate) use separable::{gather, multiply, powers, scatter};
pub(crate) use sweep::{accumulate, dot, fused_block, scale_row};

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

use pulp::{Simd, WithSimd};

/// Chunk of numbers that the kernels work on. Rows of features are padded to a multiple of it.
pub(crate) const LANES: usize = 8;

/// `len` rounded up to a multiple of [`LANES`].
pub(crate) fn padded(len: usize) -> usize {
    len.next_multiple_of(LANES)
}

/// Runs a kernel with the best instruction set of this machine whose vectors have at most [`LANES`] numbers.
#[inline]
fn dispatch<O: WithSimd>(op: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    return match sets().v3 {
        Some(simd) => Simd::vectorize(simd, op),
        None => Simd::vectorize(pulp::Scalar, op),
    };
    #[cfg(not(target_arch = "x86_64"))]
    pulp::Arch::new().dispatch(op)
}

/// Runs a kernel with the widest vectors of this machine. Its lengths are multiples of [`PANEL_STEP`].
#[inline]
fn dispatch_wide<O: WithSimd>(op: O) -> O::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = sets().v4 {
        return Simd::vectorize(simd, op);
    }
    dispatch(op)
}

/// The instruction sets that this machine has.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
struct Sets {
    v3: Option<pulp::x86::V3>,
    v4: Option<pulp::x86::V4>,
}

/// They are found once: each is a dozen questions, which would take a tenth of the time of a short row.
#[cfg(target_arch = "x86_64")]
#[inline]
fn sets() -> Sets {
    static SETS: OnceLock<Sets> = OnceLock::new();
    *SETS.get_or_init(|| Sets { v3: pulp::x86::V3::try_new(), v4: pulp::x86::V4::try_new() })
}

/// Whether plain loops may use fused multiply-add: where it is an instruction, not a function call.
#[inline(always)]
const fn fused<S: Simd>() -> bool {
    S::F32_LANES >= 8 || cfg!(target_arch = "aarch64")
}

/// The two floating-point types that features can be stored in.
pub(crate) trait Float:
    bytemuck::Pod + Send + Sync + Default + std::fmt::Debug + std::ops::Neg<Output = Self>
{
    const ZERO: Self;
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;

    /// A vector of the instruction set `S`.
    type Vector<S: Simd>: Copy;
    /// A padded slice as vectors.
    fn vectors<S: Simd>(slice: &[Self]) -> &[Self::Vector<S>];
    /// A padded slice as vectors.
    fn vectors_mut<S: Simd>(slice: &mut [Self]) -> &mut [Self::Vector<S>];
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;
    /// `a * b + c`, fused where the machine can.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;
    fn add<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn sub<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn mul<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn abs<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    fn sqrt<S: Simd>(simd: S, a: Self::Vector<S>) -> Self::Vector<S>;
    fn sum<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    fn max<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;
    fn reduce_max<S: Simd>(simd: S, a: Self::Vector<S>) -> Self;
    /// `a - b`.
    fn minus(a: Self, b: Self) -> Self;
    /// `exp(x)` for `x <= 0`, zero below [`Float::FLUSH`].
    fn exp_nonpositive<const FMA: bool>(x: Self) -> Self;
    /// `exp(x)` for `|x| < 80`.
    fn exp_near<const FMA: bool>(x: Self) -> Self;

    /// Stored features below `exp(FLUSH)` of their row's largest become exactly zero: no subnormal
    /// numbers arise in the products.
    const FLUSH: f64;
    /// A message may drift by this much from the reference of the stored features before they are
    /// stored anew. What was flushed stays below `exp(FLUSH + 2 DRIFT)` of its row: 1e-17 in single
    /// precision, nothing at all in double.
    const DRIFT: f64;
    /// Terms below `exp(-CUTOFF)` of a sum cannot be told from its rounding, many of them together.
    const CUTOFF: f64;
    /// Largest exponent of a power where terms of `exp(-CUTOFF)` of the largest must not be lost: what is flushed is
    /// smaller than they are, at both ends of the range.
    const POWERS: f64;
    /// What to do when numbers leave the range.
    const REMEDY: &'static str;
    /// Parts of a mass below this cannot be told from its rounding.
    const ROUNDING: f64;
    /// Factors further than this (in logarithms) from their weights are kept as logarithms.
    const FAR: f64;
}

impl Float for f32 {
    const ZERO: f32 = 0.0;
    const FLUSH: f64 = -69.0;
    const DRIFT: f64 = 15.0;
    const FAR: f64 = 25.0;
    const CUTOFF: f64 = 20.0;
    const POWERS: f64 = 20.0;
    const ROUNDING: f64 = 1e-6;
    const REMEDY: &'static str = "use double precision or a larger epsilon";
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    type Vector<S: Simd> = S::f32s;
    #[inline(always)]
    fn vectors<S: Simd>(slice: &[f32]) -> &[S::f32s] {
        let (vectors, rest) = S::as_simd_f32s(slice);
        debug_assert!(rest.is_empty(), "a padded length");
        vectors
    }
    #[inline(always)]
    fn vectors_mut<S: Simd>(slice: &mut [f32]) -> &mut [S::f32s] {
        let (vectors, rest) = S::as_mut_simd_f32s(slice);
        debug_assert!(rest.is_empty(), "a padded length");
        vectors
    }
    #[inline(always)]
    fn splat<S: Simd>(simd: S, x: f32) -> S::f32s {
        simd.splat_f32s(x)
    }
    #[inline(always)]
    fn mul_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(a, b, c)
    }
    #[inline(always)]
    fn add<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.add_f32s(a, b)
    }
    #[inline(always)]
    fn mul<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.mul_f32s(a, b)
    }
    #[inline(always)]
    fn sum<S: Simd>(simd: S, a: S::f32s) -> f32 {
        simd.reduce_sum_f32s(a)
    }
    #[inline(always)]
    fn sub<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.sub_f32s(a, b)
    }
    #[inline(always)]
    fn abs<S: Simd>(simd: S, a: S::f32s) -> S::f32s {
        simd.abs_f32s(a)
    }
    #[inline(always)]
    fn sqrt<S: Simd>(simd: S, a: S::f32s) -> S::f32s {
        simd.sqrt_f32s(a)
    }
    #[inline(always)]
    fn max<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.max_f32s(a, b)
    }
    #[inline(always)]
    fn reduce_max<S: Simd>(simd: S, a: S::f32s) -> f32 {
        simd.reduce_max_f32s(a)
    }
    #[inline(always)]
    fn minus(a: f32, b: f32) -> f32 {
        a - b
    }
    #[inline(always)]
    fn exp_nonpositive<const FMA: bool>(x: f32) -> f32 {
        exp::exp_f32::<FMA>(x)
    }
    #[inline(always)]
    fn exp_near<const FMA: bool>(x: f32) -> f32 {
        exp::exp_f32::<FMA>(x)
    }
}

impl Float for f64 {
    const ZERO: f64 = 0.0;
    const FLUSH: f64 = -665.0;
    const DRIFT: f64 = 200.0;
    const FAR: f64 = 250.0;
    const CUTOFF: f64 = 40.0;
    const POWERS: f64 = 200.0;
    const ROUNDING: f64 = 1e-12;
    const REMEDY: &'static str = "use a larger epsilon";
    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }

    type Vector<S: Simd> = S::f64s;
    #[inline(always)]
    fn vectors<S: Simd>(slice: &[f64]) -> &[S::f64s] {
        let (vectors, rest) = S::as_simd_f64s(slice);
        debug_assert!(rest.is_empty(), "a padded length");
        vectors
    }
    #[inline(always)]
    fn vectors_mut<S: Simd>(slice: &mut [f64]) -> &mut [S::f64s] {
        let (vectors, rest) = S::as_mut_simd_f64s(slice);
        debug_assert!(rest.is_empty(), "a padded length");
        vectors
    }
    #[inline(always)]
    fn splat<S: Simd>(simd: S, x: f64) -> S::f64s {
        simd.splat_f64s(x)
    }
    #[inline(always)]
    fn mul_add<S: Simd>(simd: S, a: S::f64s, b: S::f64s, c: S::f64s) -> S::f64s {
        simd.mul_add_e_f64s(a, b, c)
    }
    #[inline(always)]
    fn add<S: Simd>(simd: S, a: S::f64s, b: S::f64s) -> S::f64s {
        simd.add_f64s(a, b)
    }
    #[inline(always)]
    fn mul<S: Simd>(simd: S, a: S::f64s, b: S::f64s) -> S::f64s {
        simd.mul_f64s(a, b)
    }
    #[inline(always)]
    fn sum<S: Simd>(simd: S, a: S::f64s) -> f64 {
        simd.reduce_sum_f64s(a)
    }
    #[inline(always)]
    fn sub<S: Simd>(simd: S, a: S::f64s, b: S::f64s) -> S::f64s {
        simd.sub_f64s(a, b)
    }
    #[inline(always)]
    fn abs<S: Simd>(simd: S, a: S::f64s) -> S::f64s {
        simd.abs_f64s(a)
    }
    #[inline(always)]
    fn sqrt<S: Simd>(simd: S, a: S::f64s) -> S::f64s {
        simd.sqrt_f64s(a)
    }
    #[inline(always)]
    fn max<S: Simd>(simd: S, a: S::f64s, b: S::f64s) -> S::f64s {
        simd.max_f64s(a, b)
    }
    #[inline(always)]
    fn reduce_max<S: Simd>(simd: S, a: S::f64s) -> f64 {
        simd.reduce_max_f64s(a)
    }
    #[inline(always)]
    fn minus(a: f64, b: f64) -> f64 {
        a - b
    }
    #[inline(always)]
    fn exp_nonpositive<const FMA: bool>(x: f64) -> f64 {
        if x < Self::FLUSH { 0.0 } else { exp::exp_f64::<FMA>(x) }
    }
    #[inline(always)]
    fn exp_near<const FMA: bool>(x: f64) -> f64 {
        exp::exp_f64::<FMA>(x)
    }
}

/// Largest of some positive numbers, by independent comparisons.
pub(crate) fn largest(values: &[f64]) -> f64 {
    let mut most = [0.0; 8];
    for chunk in values.chunks(most.len()) {
        for (most, v) in most.iter_mut().zip(chunk) {
            *most = if v > most { *v } else { *most };
        }
    }
    most.into_iter().fold(0.0, f64::max)
}

/// Sum of some numbers, by independent additions.
pub(crate) fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; LANES];
    for chunk in values.chunks(LANES) {
        for (sum, v) in sums.iter_mut().zip(chunk) {
            *sum += v;
        }
    }
    sums.into_iter().sum()
}

/// Runs a kernel on the baseline instruction set, for the tests.
#[cfg(test)]
fn run_baseline<O: WithSimd>(op: O) -> O::Output {
    op.with_simd(pulp::Scalar)
}
