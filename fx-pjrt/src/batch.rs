//! `Padding`: batches of any size by programs for a few sizes.
//!
//! Invariant: a batch is padded only if no value of a sample depends on another sample.

use fx_nn::ir::{Op, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::tensor::Object;
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
        made.results = made.results_of(gm, &padded)?;
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
                return Spec::tensor(shape, tensor.dtype()?).fake_value();
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

    /// Which results have samples along their first dim: what splitting the batch over two devices would split.
    fn results_of(&self, gm: &GraphModule, padded: &[Value]) -> Result<Vec<bool>> {
        if !self.bucket.is_multiple_of(2) {
            return Err(Error::msg(format_args!(
                "the bucket {} is odd, and whether samples are independent is seen by halves",
                self.bucket
            )));
        }
        if gm.meta::<Mesh>().is_some() {
            return Err(Error::msg("it is split over devices"));
        }
        let mut opened = gm.opened()?;
        let specs: Vec<Spec> = padded.iter().cloned().map(Spec::of).collect();
        opened.infer_shapes(&specs)?;
        let mesh = Mesh::new([("batch", 2)])?;
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
        let report = shard(&mut opened, &mesh, &rules)?;
        if let Some((node, function)) = report.without_rule.first() {
            return Err(Error::msg(format_args!(
                "nothing is known of how {function} (%{node}) treats samples"
            )));
        }
        if let Some(moved) = report.reshards.first() {
            return Err(Error::msg(format_args!("samples meet each other: {moved}")));
        }
        let costs = explain_sharding(&opened, &mesh)?;
        if !costs.collectives.is_empty() {
            return Err(Error::msg(
                "a value depends on several samples, such as a mean over the batch",
            ));
        }
        let output = opened.graph().nodes().find(|node| *node.op() == Op::Output);
        let output = output.ok_or_else(|| Error::msg("the graph has no output node"))?;
        let mut results = Vec::new();
        for argument in output.args() {
            argument.for_each_node(&mut |id| results.push(id));
        }
        let is_batched = results.into_iter().map(|id| {
            let node = opened.graph().node(id)?;
            let sharding = node.meta::<Sharding>();
            let dims = sharding.map_or(&[][..], Sharding::dims);
            if dims.iter().skip(1).any(|dim| !dim.axes.is_empty()) {
                return Err(Error::msg(format_args!(
                    "%{} has samples along another dim than the first",
                    node.name()
                )));
            }
            Ok(dims.first().is_some_and(|dim| !dim.axes.is_empty()))
        });
        is_batched.collect()
    }
}
