//! The common parts of encoders: their sizes, attention of all positions, images cut into patches,
//! and their results.

use fx_core::prelude::*;
use fx_core::value::DType;

use super::activation::Activation;
use super::config::Fields;
use crate::tensor::Tensor;
use crate::weights::Checkpoint;
use crate::{nn, ops};

/// The sizes of an encoder's layers.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Sizes {
    /// The width between layers.
    pub hidden_size: usize,
    /// Number of layers.
    pub num_hidden_layers: usize,
    /// Number of attention heads.
    pub num_attention_heads: usize,
    /// The activation between the two linear layers.
    pub hidden_act: Activation,
    /// The epsilon that layer norms add to the variance.
    pub layer_norm_eps: f64,
}

impl Sizes {
    /// Reads the sizes; the first three have defaults if `defaults` is given.
    pub(super) fn of(
        fields: &mut Fields,
        defaults: Option<[usize; 3]>,
        activation: &'static str,
        eps: f64,
    ) -> Self {
        let mut size = |at: usize, name| fields.size_or(name, defaults.map(|sizes| sizes[at]));
        let hidden_size = size(0, "hidden_size");
        let num_hidden_layers = size(1, "num_hidden_layers");
        let num_attention_heads = size(2, "num_attention_heads");
        heads_divide(fields, num_attention_heads, hidden_size);
        Sizes {
            hidden_size,
            num_hidden_layers,
            num_attention_heads,
            hidden_act: Activation::of(fields, "hidden_act", activation),
            layer_norm_eps: fields.number_or("layer_norm_eps", eps),
        }
    }

    /// A layer norm over the width.
    pub(super) fn layer_norm(&self) -> Result<nn::LayerNorm> {
        layer_norm(self.hidden_size, self.layer_norm_eps)
    }

    /// The width of a head.
    pub(super) fn head_dim(&self) -> usize {
        (self.hidden_size / self.num_attention_heads).max(1)
    }

    /// As many layers as there are, each made by `new`.
    pub(super) fn layers<T>(&self, new: impl Fn() -> Result<T>) -> Result<Vec<T>> {
        (0..self.num_hidden_layers).map(|_| new()).collect()
    }
}

/// Records a problem if the heads do not divide the width.
pub(super) fn heads_divide(fields: &mut Fields, heads: usize, width: usize) {
    if !width.is_multiple_of(heads) {
        fields.problem(format!("{heads} heads do not divide a width of {width}"));
    }
}

/// A layer norm over the last dim.
pub(super) fn layer_norm(width: usize, eps: f64) -> Result<nn::LayerNorm> {
    Ok(nn::LayerNorm {
        eps,
        ..nn::LayerNorm::new(width)?
    })
}

/// How images are cut into patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Images {
    /// Height and width of an image.
    pub image_size: [usize; 2],
    /// Height and width of a patch.
    pub patch_size: [usize; 2],
    /// Number of image channels.
    pub num_channels: usize,
}

impl Images {
    pub(super) fn of(
        fields: &mut Fields,
        image_size: impl Into<Option<usize>>,
        patch_size: impl Into<Option<usize>>,
    ) -> Self {
        let images = Images {
            image_size: fields.pair_or("image_size", image_size),
            patch_size: fields.pair_or("patch_size", patch_size),
            num_channels: fields.size_or("num_channels", 3),
        };
        if images.patches() == 0 {
            fields.problem(format!(
                "`patch_size` is {:?}, larger than the `image_size` {:?}",
                images.patch_size, images.image_size
            ));
        }
        images
    }

    /// Number of patches of an image.
    pub(super) fn patches(&self) -> usize {
        let [height, width] = self.image_size;
        (height / self.patch_size[0]).saturating_mul(width / self.patch_size[1])
    }

    /// A convolution that makes a vector of each patch.
    pub(super) fn conv(&self, width: usize, bias: bool) -> Result<nn::Conv2d> {
        let [height, side] = self.patch_size;
        let conv = nn::Conv2d::new(self.num_channels, width, (height, side))?;
        Ok(conv.stride((height, side)).bias(bias))
    }
}

/// The vectors `[N, patches, width]` of the patches of images, which are converted to the model's type.
pub(super) fn patches_of(pixel_values: &Tensor, projection: &nn::Conv2d) -> Result<Tensor> {
    let pixel_values = pixel_values.type_as(&projection.weight)?;
    let patches = projection.forward(&pixel_values)?;
    patches.flatten(2, -1)?.transpose(1, 2)
}

/// softmax(q kᵀ / sqrt(head_dim)) v for `q`, `k` and `v` `[N, T, heads · head_dim]`, where `mask` holds.
pub(super) fn attend(
    [q, k, v]: [Tensor; 3],
    head_dim: usize,
    mask: Option<&Tensor>,
) -> Result<Tensor> {
    let [n, t, _] = q.shape()?.unpack()?;
    let heads = |x: &Tensor| x.view((n, t, -1, head_dim))?.transpose(1, 2);
    let (q, k, v) = (heads(&q)?, heads(&k)?, heads(&v)?);
    let y = ops::scaled_dot_product_attention(&q, &k, &v, mask, 0.0, false, None, false)?;
    y.transpose(1, 2)?.reshape((n, t, -1))
}

/// Attention of all positions to those that a mask shows, without the layer over its heads.
#[derive(Module, Clone, Debug)]
pub struct SelfAttention {
    /// Queries.
    pub query: nn::Linear,
    /// Keys.
    pub key: nn::Linear,
    /// Values.
    pub value: nn::Linear,
    head_dim: usize,
}

impl SelfAttention {
    pub(super) fn new(sizes: &Sizes, bias: bool) -> Result<Self> {
        let width = sizes.hidden_size;
        Ok(SelfAttention {
            query: nn::Linear::new(width, width)?.bias(bias),
            key: nn::Linear::new(width, width)?.bias(bias),
            value: nn::Linear::new(width, width)?.bias(bias),
            head_dim: sizes.head_dim(),
        })
    }
}

#[trace(path = "fx_nn::models::hf::encoder::SelfAttention")]
impl SelfAttention {
    /// Applies the attention to `x` `[N, T, width]`; `mask` broadcasts to `[N, heads, T, T]`.
    ///
    /// # Errors
    /// Returns an error if the shapes do not fit.
    pub fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let q = self.query.forward(x)?;
        let k = self.key.forward(x)?;
        let v = self.value.forward(x)?;
        attend([q, k, v], self.head_dim, mask)
    }
}

/// A linear layer under the name that checkpoints have for it.
#[derive(Module, Clone, Debug)]
pub struct Dense {
    /// The layer.
    pub dense: nn::Linear,
}

impl Dense {
    pub(super) fn new(inputs: usize, outputs: usize) -> Result<Self> {
        Ok(Dense {
            dense: nn::Linear::new(inputs, outputs)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::encoder::Dense")]
impl Dense {
    /// Applies the layer to `[.., inputs]`.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.dense.forward(x)
    }
}

/// Attention of all patches to all patches, and a linear layer over its heads.
#[derive(Module, Clone, Debug)]
pub struct Attention {
    /// The attention.
    pub attention: SelfAttention,
    /// Over its heads.
    pub output: Dense,
}

impl Attention {
    pub(super) fn new(sizes: &Sizes, qkv_bias: bool) -> Result<Self> {
        Ok(Attention {
            attention: SelfAttention::new(sizes, qkv_bias)?,
            output: Dense::new(sizes.hidden_size, sizes.hidden_size)?,
        })
    }
}

#[trace(path = "fx_nn::models::hf::encoder::Attention")]
impl Attention {
    /// Applies the attention to `[N, T, width]`.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.output.forward(&self.attention.forward(x, None)?)
    }
}

/// Two linear layers, with the activation between them.
#[derive(Module, Clone, Debug)]
pub struct Mlp {
    /// To the inner width.
    pub fc1: nn::Linear,
    /// And back.
    pub fc2: nn::Linear,
    activation: Activation,
}

impl Mlp {
    pub(super) fn new(sizes: &Sizes, inside: usize) -> Result<Self> {
        Ok(Mlp {
            fc1: nn::Linear::new(sizes.hidden_size, inside)?,
            fc2: nn::Linear::new(inside, sizes.hidden_size)?,
            activation: sizes.hidden_act,
        })
    }
}

#[trace(path = "fx_nn::models::hf::encoder::Mlp")]
impl Mlp {
    /// Applies the layers to `[.., width]`.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.activation.apply(&self.fc1.forward(x)?)?;
        self.fc2.forward(&x)
    }
}

/// The convolution that makes a vector of each patch, under the name that checkpoints have for it.
#[derive(Module, Clone, Debug)]
pub struct PatchEmbeddings {
    /// The convolution.
    pub projection: nn::Conv2d,
}

/// Images as rows of vectors: one for the whole image, then one for each patch, with their positions.
#[derive(Module, Clone, Debug)]
pub struct ImageEmbeddings {
    /// `[1, 1, width]`: stands for the whole image.
    pub cls_token: Tensor,
    /// `[1, width]`: for training; none in most models.
    pub mask_token: Option<Tensor>,
    /// Each patch as a vector.
    pub patch_embeddings: PatchEmbeddings,
    /// `[1, patches + 1, width]`.
    pub position_embeddings: Tensor,
    image_size: [usize; 2],
}

impl ImageEmbeddings {
    pub(super) fn new(images: &Images, width: usize, mask_token: bool) -> Result<Self> {
        let mask_token = mask_token.then(|| Tensor::zeros((1, width))?.into_parameter());
        Ok(ImageEmbeddings {
            cls_token: Tensor::zeros((1, 1, width))?.into_parameter()?,
            mask_token: mask_token.transpose()?,
            patch_embeddings: PatchEmbeddings {
                projection: images.conv(width, true)?,
            },
            position_embeddings: Tensor::zeros((1, images.patches() + 1, width))?
                .into_parameter()?,
            image_size: images.image_size,
        })
    }

    /// Adapts the positions to images of another height and width: bicubic interpolation, computed
    /// in `float32`, as Hugging Face's models do on every call. The positions are frozen then. Call
    /// this before the model is traced.
    ///
    /// # Errors
    /// Returns an error if a patch is larger than such an image.
    pub fn interpolate_pos_encoding(&mut self, image_size: [usize; 2]) -> Result<()> {
        let &[_, _, height, side] = self.patch_embeddings.projection.weight.dims()? else {
            return Err(Error::msg("the weights of `projection` are not images"));
        };
        let grid = |[h, w]: [usize; 2]| [h / height.max(1), w / side.max(1)];
        let ([rows, columns], to) = (grid(self.image_size), grid(image_size));
        if to.contains(&0) {
            return Err(Error::msg(format_args!(
                "images of {image_size:?} are smaller than a patch of {:?}: give a larger size",
                [height, side]
            )));
        }
        if to != [rows, columns] {
            let own = self.position_embeddings.dtype()?;
            let positions = self.position_embeddings.detach()?.to_dtype(DType::F32)?;
            let (first, patches) = (positions.i((.., ..1))?, positions.i((0, 1..))?);
            let width = patches.size(1)?;
            let patches = patches.reshape((rows, -1))?;
            let patches = ops::matmul(&bicubic(rows, to[0])?, &patches)?;
            let patches = patches.reshape((to[0], columns, width))?;
            let patches = ops::matmul(&bicubic(columns, to[1])?, &patches)?;
            let patches = patches.reshape((1, -1, width))?;
            self.position_embeddings = ops::cat(&[first, patches], 1)?.to_dtype(own)?;
        }
        self.image_size = image_size;
        Ok(())
    }
}

/// The weight of each of `from` points in a row for each of `to` points between them, `[to, from]`:
/// the cubic convolution of PyTorch's `interpolate`, whose points are the centres of pixels.
fn bicubic(from: usize, to: usize) -> Result<Tensor> {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    let mut weights = vec![0f32; from * to];
    for (row, weights) in weights.chunks_exact_mut(from).enumerate() {
        let at = (row as f64 + 0.5) * from as f64 / to as f64 - 0.5;
        let part = at - at.floor();
        let four = [
            far(1.0 + part),
            near(part),
            near(1.0 - part),
            far(2.0 - part),
        ];
        for (point, weight) in (at.floor() as i64 - 1..).zip(four) {
            weights[point.clamp(0, from as i64 - 1) as usize] += weight as f32;
        }
    }
    Tensor::from_vec(weights, (to, from))
}

#[trace(path = "fx_nn::models::hf::encoder::ImageEmbeddings")]
impl ImageEmbeddings {
    /// The vectors `[N, patches + 1, width]` of images `[N, channels, height, width]`.
    ///
    /// # Errors
    /// Returns an error if images have a different size (see
    /// [`ImageEmbeddings::interpolate_pos_encoding`]) or number of channels.
    pub fn forward(&self, pixel_values: &Tensor) -> Result<Tensor> {
        let [n, _, h, w] = pixel_values.shape()?.unpack()?;
        let [height, width] = self.image_size.map(|side| side as i64);
        assert!(h == height, "images must be {height} pixels high");
        assert!(w == width, "images must be {width} pixels wide");
        let patches = patches_of(pixel_values, &self.patch_embeddings.projection)?;
        let cls_token = self.cls_token.expand((n, -1, -1))?;
        ops::cat(&[cls_token, patches], 1)? + &self.position_embeddings
    }
}

/// The results of an encoder.
#[derive(Tree, Clone, Debug)]
pub struct BaseModelOutputWithPooling {
    /// `[N, T, hidden_size]`: the state of each position.
    pub last_hidden_state: Tensor,
    /// `[N, pooler_output_size]`: the state of the whole; `None` if the model has no pooler.
    pub pooler_output: Option<Tensor>,
}

/// The tensors of a model without a head, from a checkpoint that may have it inside a model with
/// one.
pub(super) fn without_head(checkpoint: Checkpoint, inside: &str) -> Checkpoint {
    let has_head = checkpoint.names().any(|name| name.starts_with(inside));
    match has_head {
        true => checkpoint.prefix(inside),
        false => checkpoint,
    }
}
