//! The hot kernels: the only code written for the machine and not for the reader.
//!
//! Every kernel is an ordinary Rust function over fixed-width chunks, compiled twice: once for the
//! baseline instruction set and once with AVX2 and FMA (chosen at run time by [`pulp`]). The tests
//! compare both with a plain scalar loop. Lengths are multiples of [`LANES`]; storage is padded.

mod affine;
mod exp;
mod sweep;

pub(crate) use affine::affine;
pub(crate) use exp::{ColumnSums, exp_row, exp_slice, max_sum};
pub(crate) use sweep::{accumulate, dot, fused_block};

/// Chunk of numbers that the kernels work on. Rows of features are padded to a multiple of it.
pub(crate) const LANES: usize = 8;

/// `len` rounded up to a multiple of [`LANES`].
pub(crate) fn padded(len: usize) -> usize {
    len.next_multiple_of(LANES)
}

/// Splits a padded slice into its chunks.
#[inline(always)]
fn chunks<T>(slice: &[T]) -> &[[T; LANES]] {
    let (chunks, rest) = slice.as_chunks::<LANES>();
    debug_assert!(rest.is_empty(), "a padded length");
    chunks
}

/// Splits a padded slice into its chunks.
#[inline(always)]
fn chunks_mut<T>(slice: &mut [T]) -> &mut [[T; LANES]] {
    let (chunks, rest) = slice.as_chunks_mut::<LANES>();
    debug_assert!(rest.is_empty(), "a padded length");
    chunks
}

/// A kernel that is compiled for several instruction sets.
trait Op {
    type Output;

    /// `FMA`: the instruction set has fused multiply-add. Must be `#[inline(always)]`.
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Runs a kernel with the best instruction set of this machine.
#[inline]
fn dispatch<O: Op>(op: O) -> O::Output {
    struct Dispatch<O>(O);
    impl<O: Op> pulp::WithSimd for Dispatch<O> {
        type Output = O::Output;
        #[inline(always)]
        fn with_simd<S: pulp::Simd>(self, _: S) -> O::Output {
            if S::F32_LANES >= 8 || cfg!(target_arch = "aarch64") {
                self.0.run::<true>()
            } else {
                self.0.run::<false>()
            }
        }
    }
    pulp::Arch::new().dispatch(Dispatch(op))
}

/// The two floating-point types that features can be stored in.
pub(crate) trait Float: Copy + Send + Sync + 'static {
    const ZERO: Self;
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    /// `self * b + c`, fused where the machine can.
    fn fma<const FMA: bool>(self, b: Self, c: Self) -> Self;
    /// `exp(x)` for `x <= 0`, zero below [`Float::FLUSH`].
    fn exp_nonpositive<const FMA: bool>(x: f64) -> Self;

    /// Stored features below `exp(FLUSH)` of their row's largest become exactly zero: no subnormal
    /// numbers arise in the products.
    const FLUSH: f64;
    /// A message may drift by this much from the reference of the stored features before they are
    /// stored anew. What was flushed stays below `exp(FLUSH + 2 DRIFT)` of its row: 1e-17 in single
    /// precision, nothing at all in double.
    const DRIFT: f64;
}

impl Float for f32 {
    const ZERO: f32 = 0.0;
    const FLUSH: f64 = -69.0;
    const DRIFT: f64 = 15.0;
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what is wanted")]
    fn from_f64(x: f64) -> f32 {
        x as f32
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn fma<const FMA: bool>(self, b: f32, c: f32) -> f32 {
        if FMA { f32::mul_add(self, b, c) } else { self * b + c }
    }
    #[inline(always)]
    fn exp_nonpositive<const FMA: bool>(x: f64) -> f32 {
        exp::exp_f32::<FMA>(x)
    }
}

impl Float for f64 {
    const ZERO: f64 = 0.0;
    const FLUSH: f64 = -665.0;
    const DRIFT: f64 = 200.0;
    #[inline(always)]
    fn from_f64(x: f64) -> f64 {
        x
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn fma<const FMA: bool>(self, b: f64, c: f64) -> f64 {
        if FMA { f64::mul_add(self, b, c) } else { self * b + c }
    }
    #[inline(always)]
    fn exp_nonpositive<const FMA: bool>(x: f64) -> f64 {
        if x < Self::FLUSH { 0.0 } else { exp::exp_f64::<FMA>(x) }
    }
}

/// Runs a kernel as the baseline compilation has it, for the tests.
#[cfg(test)]
fn run_baseline<O: Op>(op: O) -> O::Output {
    op.run::<false>()
}
