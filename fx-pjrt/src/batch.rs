//! `Padding`: batches of any size by programs for a few sizes.
//!
//! Invariant: a batch is padded only if no value of a sample depends on another sample.

use fx_nn::ir::{NodeRef, Op, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::tensor::Object;
use fx_nn::value::Dim;
use fx_nn::{OpInfo, OpKind};
use fx_stablehlo::shard::{DimSharding, Mesh, ShardRules, Sharding, explain_sharding, shard};

/// How a batch is padded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Padding {
    /// The size of the batch, and the one that the program takes.
    size: usize,
    bucket: usize,
    /// Which placeholders have samples along their first dim.
    inputs: Vec<usize>,
    /// Everything else that the program was made for.
    like: Vec<String>,
    /// Whether each result has samples along its first dim.
    results: Vec<bool>,
}

/// How a call's batch is padded; `None` if there is none, or no bucket has room for it.
///
/// # Errors
/// Returns an error if a value of a sample may depend on other samples.
pub(crate) fn padding(
    gm: &GraphModule,
    inputs: &[&Value],
    buckets: &[usize],
) -> Result<Option<Padding>> {
    let first_dim = |value: &&Value| {
        let tensor = value.downcast_ref::<Tensor>()?;
        tensor.dims().ok()?.first().copied()
    };
    let Some(size) = inputs.iter().find_map(first_dim) else {
        return Ok(None);
    };
    let Some(bucket) = buckets
        .iter()
        .copied()
        .filter(|bucket| *bucket >= size)
        .min()
    else {
        return Ok(None);
    };
    let batched = (0..inputs.len()).filter(|at| first_dim(&inputs[*at]) == Some(size));
    let mut made = Padding {
        size,
        bucket,
        inputs: batched.collect(),
        like: Vec::new(),
        results: Vec::new(),
    };
    let padded = made.padded(inputs)?;
    let known = padded.iter().map(|value| ValueMeta::of(value).to_string());
    made.like = known.collect();
    // A batch that fills its bucket is computed as it is.
    if bucket > size {
        made.results = made.results_of(gm, inputs, &padded)?;
    }
    Ok(Some(made))
}

impl Padding {
    /// The arguments with zeros after the samples.
    pub fn padded(&self, inputs: &[&Value]) -> Result<Vec<Value>> {
        let all = inputs.iter().enumerate().map(|(at, value)| {
            let tensor = value.downcast_ref::<Tensor>();
            let Some(tensor) = tensor.filter(|_| self.inputs.contains(&at)) else {
                return Ok((*value).clone());
            };
            if self.bucket == self.size {
                return Ok((*value).clone());
            }
            let mut shape = tensor.dims()?.to_vec();
            shape[0] = self.bucket - self.size;
            if tensor.is_fake() {
                shape[0] = self.bucket;
                return Tensor::fake(Spec::tensor(shape, tensor.dtype()?)).map(Value::of);
            }
            let zeros = Tensor::full(shape, 0, tensor.dtype()?)?;
            Ok(Value::of(ops::cat(&[tensor.clone(), zeros], 0)?))
        });
        all.collect()
    }

    /// The results without what was computed of zeros.
    pub fn cut(&self, results: &mut [Tensor]) -> Result<()> {
        for (result, is_batched) in results.iter_mut().zip(&self.results) {
            if *is_batched {
                *result = result.narrow(0, 0, self.size)?;
            }
        }
        Ok(())
    }

    /// Whether a program for one serves the other.
    pub fn shares_program(&self, other: &Padding) -> bool {
        (self.bucket, &self.inputs, &self.like) == (other.bucket, &other.inputs, &other.like)
    }

    pub fn describe(&self) -> String {
        format!(", batches padded to {}", self.bucket)
    }

    /// Which results have samples along their first dim. Two things show that no sample depends on another: each may be
    /// computed on a device of its own without communication, and padding changes no other size and no number.
    fn results_of(
        &self,
        gm: &GraphModule,
        inputs: &[&Value],
        padded: &[Value],
    ) -> Result<Vec<bool>> {
        if gm.meta::<Mesh>().is_some() {
            return Err(Error::msg("it is split over devices"));
        }
        let mesh = Mesh::new([("batch", self.bucket)])?;
        let split = self.split(gm, padded, &mesh)?;
        let mut exact = gm.opened()?;
        let specs = inputs.iter().map(|value| Spec::of((*value).clone()));
        exact.infer_shapes(&specs.collect::<Vec<_>>())?;
        if split.graph().len() != exact.graph().len() {
            return Err(Error::msg("the graph is another one for the batch itself"));
        }
        let nodes = split.graph().nodes().zip(exact.graph().nodes());
        for (of_bucket, of_batch) in nodes.filter(|(node, _)| *node.op() != Op::Output) {
            self.same(&split, of_bucket, of_batch)?;
        }
        let output = split.graph().output_node();
        let output = output.ok_or_else(|| Error::msg("the graph has no output node"))?;
        let mut results = Vec::new();
        for argument in output.args() {
            argument.for_each_node(&mut |id| results.push(id));
        }
        let is_batched = results.into_iter().map(|id| {
            let node = split.graph().node(id)?;
            let axes: Vec<bool> = sharded_dims(node).collect();
            match axes.iter().skip(1).any(|is_batched| *is_batched) {
                true => Err(Error::msg(format_args!(
                    "%{} has samples along another dim than the first",
                    node.name()
                ))),
                false => Ok(axes.first().copied().unwrap_or(false)),
            }
        });
        is_batched.collect()
    }

    /// The graph for the bucket, a sample on each device.
    fn split(&self, gm: &GraphModule, padded: &[Value], mesh: &Mesh) -> Result<GraphModule> {
        let mut opened = gm.opened()?;
        let specs: Vec<Spec> = padded.iter().cloned().map(Spec::of).collect();
        opened.infer_shapes(&specs)?;
        let mut rules = ShardRules::new();
        for (at, node) in opened.graph().placeholders().enumerate() {
            let rank = node.meta::<ValueMeta>().and_then(ValueMeta::tensor);
            let Some(rank) = rank.map(|meta| meta.shape.len()) else {
                continue;
            };
            let first = match self.inputs.contains(&at) {
                true => DimSharding::axes(["batch"]),
                false => DimSharding::replicated(),
            };
            let rest = (1..rank).map(|_| DimSharding::replicated());
            let dims = [first].into_iter().take(rank).chain(rest);
            rules = rules.rule(node.target().to_string(), dims);
        }
        let report = shard(&mut opened, mesh, &rules)?;
        if let Some((node, function)) = report.without_rule.first() {
            return Err(Error::msg(format_args!(
                "nothing is known of how {function} (%{node}) treats samples"
            )));
        }
        if let Some(moved) = report.reshards.first() {
            return Err(Error::msg(format_args!("samples meet each other: {moved}")));
        }
        if !explain_sharding(&opened, mesh)?.collectives.is_empty() {
            return Err(Error::msg(
                "a value depends on several samples, such as a mean over the batch",
            ));
        }
        Ok(opened)
    }

    /// An error if a node is not the same for the bucket as for the batch, but for the samples.
    fn same(&self, gm: &GraphModule, of_bucket: NodeRef<'_>, of_batch: NodeRef<'_>) -> Result<()> {
        let name = of_bucket.name();
        let (a, b) = (of_bucket.meta::<ValueMeta>(), of_batch.meta::<ValueMeta>());
        let (Some(a), Some(b)) = (a, b) else {
            return Err(Error::msg(format_args!(
                "the shape of %{name} is not known"
            )));
        };
        if let (Some(a), Some(b)) = (a.tensor(), b.tensor()) {
            let sharded: Vec<bool> = sharded_dims(of_bucket).collect();
            let dims = a.shape.iter().zip(&b.shape).enumerate();
            let mut dims = dims.map(|(at, (a, b))| match sharded.get(at) {
                // A merged dim has samples too, and more than one element of each.
                Some(true) => self.is_batch(a, b),
                _ => a == b,
            });
            return match a.shape.len() == b.shape.len() && dims.all(|is_same| is_same) {
                true => Ok(()),
                false => Err(Error::msg(format_args!(
                    "%{name} is {a} for the bucket, and {b} for the batch"
                ))),
            };
        }
        if of_bucket.op() == of_batch.op() && self.alike(a, b) {
            return Ok(());
        }
        // A size may say how values are viewed, which is compared there, and nothing else.
        for user in of_bucket.users() {
            let call = user.op().is_call().then(|| gm.call(user)).transpose()?;
            let function = call.and_then(|call| call.function());
            let kind = function
                .map(OpInfo::of)
                .transpose()?
                .and_then(|info| info.kind);
            let is_number = user.meta::<ValueMeta>().is_some_and(is_numbers);
            if !matches!(kind, Some(OpKind::View)) && !is_number {
                return Err(Error::msg(format_args!(
                    "%{name} depends on the size of the batch, and %{} on it",
                    user.name()
                )));
            }
        }
        Ok(())
    }

    /// Whether a size is the bucket's where the other is the batch's.
    fn is_batch(&self, a: &Dim, b: &Dim) -> bool {
        let is = |dim: &Dim, size: usize| dim.as_number() == i64::try_from(size).ok();
        is(a, self.bucket) && is(b, self.size)
    }

    /// Whether values that are no single tensors are the same, but for the samples.
    fn alike(&self, a: &ValueMeta, b: &ValueMeta) -> bool {
        match (a, b) {
            (ValueMeta::Single(a), ValueMeta::Single(b)) => {
                let mut dims = a.shape.iter().zip(&b.shape);
                a.shape.len() == b.shape.len() && dims.all(|(a, b)| a == b || self.is_batch(a, b))
            }
            (ValueMeta::List(a), ValueMeta::List(b))
            | (ValueMeta::Tuple(a), ValueMeta::Tuple(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.alike(a, b))
            }
            (ValueMeta::Dict(a), ValueMeta::Dict(b)) => {
                let mut both = a.iter().zip(b);
                a.len() == b.len() && both.all(|((_, a), (_, b))| self.alike(a, b))
            }
            (a, b) => a == b,
        }
    }
}

/// Which dims of a node's value have the samples.
fn sharded_dims(node: NodeRef<'_>) -> impl Iterator<Item = bool> {
    let dims = node.meta::<Sharding>().map_or(&[][..], Sharding::dims);
    dims.iter().map(|dim| !dim.axes.is_empty())
}

/// Whether a value is a number, or several.
fn is_numbers(meta: &ValueMeta) -> bool {
    match meta {
        ValueMeta::Int(_) | ValueMeta::Float(_) | ValueMeta::Bool(_) => true,
        ValueMeta::List(items) | ValueMeta::Tuple(items) => items.iter().all(is_numbers),
        _ => false,
    }
}
