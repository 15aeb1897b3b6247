//! The Sinkhorn divergence of two batches as an operation of burn, with the envelope theorem as its backward pass.
//!
//! ```text
//! S = W(x, y) - (W(x, x) + W(y, y)) / 2,    kernel phi(x) . phi(y),   dS = -eps sum_ij P_ij d log K_ij
//! ```
//!
//! Potentials of a converged solve need no derivatives, so that nothing goes back through iterations: beside its
//! inputs the operation keeps the potentials, a few numbers a point. All is in logarithms and in double precision
//! inside, so that no batch underflows, whatever the scale of its latents.

use std::sync::Arc;

use burn::Tensor;
use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::ops::FloatTensorOps;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::TensorData;
use orthant::Divergence;

use crate::error::{Error, Result};
pub use crate::kernel::Solve;
use crate::kernel::{Derivatives, Rows};

/// A divergence as a tensor that gradients flow back from, and what is known of its solve.
#[derive(Debug, Clone)]
pub struct Loss {
    /// One number.
    pub tensor: Tensor<1>,
    /// The same in double precision.
    pub value: f64,
    /// Iterations of all three terms.
    pub iterations: usize,
}

/// The divergence of two batches with features that are given as logarithms, `n x r` and `m x r`.
///
/// ```
/// use burn::{Tensor, tensor::Device};
/// use orthant_gan::loss::{Solve, of_log_features};
/// let device = Device::flex().autodiff();
/// // Features of any scale: these have no exponentials in single precision.
/// let x = Tensor::<2>::from_floats([[900.0, 901.0], [900.5, 899.0]], &device).require_grad();
/// let y = Tensor::<2>::from_floats([[-700.0, -702.0], [-700.0, -703.0]], &device).require_grad();
/// let loss = of_log_features(x.clone(), y, Solve::default())?;
/// assert!(loss.value > 0.0);
/// // A factor for all features of a point changes nothing: rows of the gradient sum to zero.
/// let gradient = x.grad(&loss.tensor.backward()).unwrap();
/// assert!(gradient.sum_dim(1).abs().max().into_scalar::<f32>() < 1e-6);
/// # Ok::<(), orthant_gan::Error>(())
/// ```
pub fn of_log_features(x: Tensor<2>, y: Tensor<2>, solve: Solve) -> Result<Loss> {
    let ([_, rank], [_, other]) = (x.dims(), y.dims());
    if rank != other {
        return Err(Error::Data(format!(
            "batches have {rank} and {other} features; give both as many"
        )));
    }
    let (of_x, of_y) = (numbers(x.clone()), numbers(y.clone()));
    let solved = Rows::Logs { x: &of_x, y: &of_y, rank }.divergence(solve)?;
    let (value, iterations) = (solved.value, iterations(&solved));
    let state = Solved { solve, q: None, divergence: solved };
    let (x, y) = (x.into_dispatch(), y.into_dispatch());
    let tensor = <Dispatch as Envelope>::log_features(x, y, Arc::new(state));
    Ok(Loss { tensor: Tensor::from_dispatch(tensor), value, iterations })
}

/// The divergence of two batches of latents, `n x d` and `m x d`, with Lemma 1's features of `r x d` anchors:
///
/// ```text
/// phi_k(x) = (2 q)^{d/4} exp(-2 ||x - u_k||^2 / eps) exp(||u_k||^2 / (eps q)) / sqrt(r)
/// ```
///
/// Gradients reach both batches and the anchors; `q` is a constant.
///
/// ```
/// use burn::{Tensor, tensor::Device};
/// use orthant_gan::loss::{Solve, of_latents};
/// let device = Device::flex().autodiff();
/// let anchors = Tensor::<2>::from_floats([[0.0], [1.0], [-1.0]], &device).require_grad();
/// let x = Tensor::<2>::from_floats([[0.0], [0.5]], &device);
/// let y = Tensor::<2>::from_floats([[0.5], [1.5]], &device).require_grad();
/// let loss = of_latents(x, y.clone(), anchors.clone(), 1.0, Solve::default())?;
/// let gradients = loss.tensor.backward();
/// assert!(y.grad(&gradients).is_some() && anchors.grad(&gradients).is_some());
/// # Ok::<(), orthant_gan::Error>(())
/// ```
pub fn of_latents(
    x: Tensor<2>,
    y: Tensor<2>,
    anchors: Tensor<2>,
    q: f64,
    solve: Solve,
) -> Result<Loss> {
    let [dims_x, dims_y, dims] = [x.dims()[1], y.dims()[1], anchors.dims()[1]];
    if dims_x != dims || dims_y != dims {
        return Err(Error::Data(format!(
            "latents have {dims_x} and {dims_y} coordinates, and anchors {dims}; give all as many"
        )));
    }
    let (of_x, of_y, u) = (numbers(x.clone()), numbers(y.clone()), numbers(anchors.clone()));
    let rows = Rows::Latents { x: &of_x, y: &of_y, dim: dims, anchors: &u, q };
    let solved = rows.divergence(solve)?;
    let (value, iterations) = (solved.value, iterations(&solved));
    let state = Arc::new(Solved { solve, q: Some(q), divergence: solved });
    let [x, y, anchors] = [x, y, anchors].map(Tensor::into_dispatch);
    let tensor = <Dispatch as Envelope>::latents(x, y, anchors, state);
    Ok(Loss { tensor: Tensor::from_dispatch(tensor), value, iterations })
}

/// Iterations of all three terms.
pub(crate) fn iterations(divergence: &Divergence) -> usize {
    divergence.terms().iter().map(|term| term.iterations).sum()
}

/// The numbers of a tensor, row by row.
pub(crate) fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().convert::<f32>().try_into_vec().expect("converted to it")
}

/// What a solve leaves for the backward pass: the potentials of its three terms.
#[derive(Debug)]
pub struct Solved {
    solve: Solve,
    q: Option<f64>,
    divergence: Divergence,
}

impl Solved {
    /// As a tensor of one number.
    fn value<B: Backend>(&self, like: &FloatTensor<B>) -> FloatTensor<B> {
        #[expect(clippy::cast_possible_truncation, reason = "tensors are in single precision")]
        let data = TensorData::from([self.divergence.value as f32]);
        B::float_from_data(data, &like.device())
    }
}

/// Divergences that are solved, as operations of a backend: what they return is the value that is known, and what is
/// registered with it are its derivatives.
#[backend_extension(Autodiff, Flex)]
pub trait Envelope: Backend {
    /// By logarithms of features.
    fn log_features(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        solved: Arc<Solved>,
    ) -> FloatTensor<Self>;

    /// By latents and anchors.
    fn latents(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        anchors: FloatTensor<Self>,
        solved: Arc<Solved>,
    ) -> FloatTensor<Self>;
}

impl Envelope for Flex {
    fn log_features(
        x: FloatTensor<Self>,
        _: FloatTensor<Self>,
        solved: Arc<Solved>,
    ) -> FloatTensor<Self> {
        solved.value::<Self>(&x)
    }

    fn latents(
        x: FloatTensor<Self>,
        _: FloatTensor<Self>,
        _: FloatTensor<Self>,
        solved: Arc<Solved>,
    ) -> FloatTensor<Self> {
        solved.value::<Self>(&x)
    }
}

/// The backward pass of either operation, with as many inputs.
#[derive(Debug)]
struct ByEnvelope<const N: usize>;

impl<const N: usize> Backward<Flex, N> for ByEnvelope<N> {
    type State = (Arc<Solved>, [NodeId; N]);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let (solved, inputs) = ops.state;
        let upstream = values(grads.consume::<Flex>(&ops.node))[0];
        let inputs = inputs.map(|id| checkpointer.retrieve_node_output::<FloatTensor<Flex>>(id));
        let shapes = inputs.each_ref().map(TensorMetadata::shape);
        let device = inputs[0].device();
        let inputs = inputs.map(values);
        let columns = shapes[0].as_slice()[1];
        let [x, y] = [&inputs[0], &inputs[1]];
        let rows = match solved.q {
            None => Rows::Logs { x, y, rank: columns },
            Some(q) => Rows::Latents { x, y, dim: columns, anchors: &inputs[2], q },
        };
        let Derivatives { x, y, anchors } = rows
            .derivatives(solved.solve, &solved.divergence)
            .expect("the same inputs were solved in the forward pass");
        for ((parent, mut values), shape) in
            ops.parents.into_iter().zip([x, y, anchors]).zip(shapes)
        {
            if let Some(node) = parent {
                for v in &mut values {
                    *v *= upstream;
                }
                let tensor = Flex::float_from_data(TensorData::new(values, shape), &device);
                grads.register::<Flex>(node.id, tensor);
            }
        }
    }
}

/// The numbers of a tensor of the backend.
fn values(tensor: FloatTensor<Flex>) -> Vec<f32> {
    tensor.into_data().convert::<f32>().try_into_vec().expect("converted to it")
}

impl<C: CheckpointStrategy> Envelope for Autodiff<Flex, C> {
    fn log_features(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        solved: Arc<Solved>,
    ) -> FloatTensor<Self> {
        match ByEnvelope::<2>.prepare::<C>([x.node(), y.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let inputs = [prep.checkpoint(&x), prep.checkpoint(&y)];
                let value = solved.value::<Flex>(x.primitive());
                prep.finish((solved, inputs), value)
            }
            OpsKind::UnTracked(prep) => prep.finish(solved.value::<Flex>(x.primitive())),
        }
    }

    fn latents(
        x: FloatTensor<Self>,
        y: FloatTensor<Self>,
        anchors: FloatTensor<Self>,
        solved: Arc<Solved>,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), y.node(), anchors.node()];
        match ByEnvelope::<3>.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let inputs = [prep.checkpoint(&x), prep.checkpoint(&y), prep.checkpoint(&anchors)];
                let value = solved.value::<Flex>(x.primitive());
                prep.finish((solved, inputs), value)
            }
            OpsKind::UnTracked(prep) => prep.finish(solved.value::<Flex>(x.primitive())),
        }
    }
}
