//! Vision transformers (Dosovitskiy et al. 2020), torchvision's `vit_b_16`.

use fx_core::{Module, Result, trace};
use indexmap::IndexMap;

use crate::tensor::Tensor;
use crate::{nn, ops};

fn layer_norm(width: usize) -> Result<nn::LayerNorm> {
    Ok(nn::LayerNorm {
        eps: 1e-6,
        ..nn::LayerNorm::new(width)?
    })
}

/// Attention and two linear layers, each with a residual connection.
#[derive(Module, Clone, Debug)]
pub struct EncoderBlock {
    /// Before the attention.
    pub ln_1: nn::LayerNorm,
    /// Of all patches to all.
    pub self_attention: nn::MultiheadAttention,
    /// After the attention.
    pub dropout: nn::Dropout,
    /// Before the linear layers.
    pub ln_2: nn::LayerNorm,
    /// Linear, GELU, dropout, linear, dropout.
    pub mlp: nn::Sequential,
}

impl EncoderBlock {
    fn new(width: usize, heads: usize, mlp: usize, dropout: f64) -> Result<Self> {
        Ok(EncoderBlock {
            ln_1: layer_norm(width)?,
            self_attention: nn::MultiheadAttention {
                batch_first: true,
                ..nn::MultiheadAttention::new(width, heads)?
            },
            dropout: nn::Dropout::new(dropout)?,
            ln_2: layer_norm(width)?,
            mlp: nn::Sequential::new()
                .push(nn::Linear::new(width, mlp)?)
                .push(nn::GELU::new())
                .push(nn::Dropout::new(dropout)?)
                .push(nn::Linear::new(mlp, width)?)
                .push(nn::Dropout::new(dropout)?),
        })
    }
}

#[trace]
impl EncoderBlock {
    /// Applies the block to `[N, patches, width]`.
    ///
    /// # Errors
    /// Returns an error if the shape differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        assert!(
            x.dim()? == 3,
            "Expected (batch_size, seq_length, hidden_dim) got {:?}",
            x.shape()?
        );
        let y = self.ln_1.forward(x)?;
        let (y, _) = self.self_attention.forward(&y, &y, &y, None, false, None)?;
        let x = (self.dropout.forward(&y)? + x)?;
        let y = self.mlp.forward(&self.ln_2.forward(&x)?)?;
        x + y
    }
}

/// Positions added, and the blocks.
#[derive(Module, Clone, Debug)]
pub struct Encoder {
    /// `[1, patches + 1, width]`.
    pub pos_embedding: Tensor,
    /// After the positions.
    pub dropout: nn::Dropout,
    /// `encoder_layer_0` and so on.
    pub layers: IndexMap<String, EncoderBlock>,
    /// At the end.
    pub ln: nn::LayerNorm,
}

#[trace]
impl Encoder {
    /// Applies the blocks to `[N, patches + 1, width]`.
    ///
    /// # Errors
    /// Returns an error if the shape differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        assert!(
            x.dim()? == 3,
            "Expected (batch_size, seq_length, hidden_dim) got {:?}",
            x.shape()?
        );
        let mut x = self.dropout.forward(&(x + &self.pos_embedding)?)?;
        for block in self.layers.values() {
            x = block.forward(&x)?;
        }
        self.ln.forward(&x)
    }
}

/// The classifier.
#[derive(Module, Clone, Debug)]
pub struct Heads {
    /// Over the class token.
    pub head: nn::Linear,
}

#[trace]
impl Heads {
    /// Applies the classifier.
    ///
    /// # Errors
    /// Returns an error if the width differs.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.head.forward(x)
    }
}

/// A transformer over patches of images `[N, 3, image_size, image_size]`; returns scores
/// `[N, classes]`.
#[derive(Module, Clone, Debug)]
pub struct VisionTransformer {
    /// `[1, 1, width]`, put before the patches.
    pub class_token: Tensor,
    /// Each patch as a vector.
    pub conv_proj: nn::Conv2d,
    /// The blocks.
    pub encoder: Encoder,
    /// The classifier.
    pub heads: Heads,
    /// Pixels per side of an image.
    pub image_size: usize,
    /// Pixels per side of a patch.
    pub patch_size: usize,
    /// The width of the vectors.
    pub hidden_dim: usize,
}

/// ViT-B/16 in training mode: 86.6 million parameters for images of 224 pixels a side and 1,000 classes.
///
/// # Errors
/// Returns an error if patches of 16 pixels do not divide the image.
pub fn vit_b_16(image_size: usize, num_classes: usize) -> Result<VisionTransformer> {
    VisionTransformer::new(&Config {
        image_size,
        patch_size: 16,
        num_layers: 12,
        num_heads: 12,
        hidden_dim: 768,
        mlp_dim: 3072,
        num_classes,
    })
}

/// The sizes of a vision transformer.
#[derive(Clone, Debug)]
pub struct Config {
    /// Pixels per side of an image.
    pub image_size: usize,
    /// Pixels per side of a patch.
    pub patch_size: usize,
    /// Number of blocks.
    pub num_layers: usize,
    /// Number of attention heads.
    pub num_heads: usize,
    /// The width of the vectors.
    pub hidden_dim: usize,
    /// The width between the two linear layers.
    pub mlp_dim: usize,
    /// Number of classes.
    pub num_classes: usize,
}

impl VisionTransformer {
    /// A model in training mode.
    ///
    /// # Errors
    /// Returns an error if the patches do not divide the image, or the heads the width.
    pub fn new(config: &Config) -> Result<Self> {
        let &Config {
            image_size,
            patch_size,
            hidden_dim,
            ..
        } = config;
        if patch_size == 0 || !image_size.is_multiple_of(patch_size) {
            return Err(fx_core::Error::msg(format_args!(
                "vit: patches of {patch_size} pixels do not divide an image of {image_size}"
            )));
        }
        let side = image_size / patch_size;
        let layers = (0..config.num_layers).map(|i| {
            let block = EncoderBlock::new(hidden_dim, config.num_heads, config.mlp_dim, 0.0)?;
            Ok((format!("encoder_layer_{i}"), block))
        });
        let positions = (Tensor::randn((1, side * side + 1, hidden_dim))? * 0.02)?;
        Ok(VisionTransformer {
            class_token: Tensor::zeros((1, 1, hidden_dim))?.into_parameter()?,
            conv_proj: nn::Conv2d::new(3, hidden_dim, patch_size)?.stride(patch_size),
            encoder: Encoder {
                pos_embedding: positions.into_parameter()?,
                dropout: nn::Dropout::new(0.0)?,
                layers: layers.collect::<Result<_>>()?,
                ln: layer_norm(hidden_dim)?,
            },
            heads: Heads {
                head: nn::Linear::new(hidden_dim, config.num_classes)?,
            },
            image_size,
            patch_size,
            hidden_dim,
        })
    }
}

#[trace]
impl VisionTransformer {
    /// Scores of the classes.
    ///
    /// # Errors
    /// Returns an error if `x` is not `[N, 3, image_size, image_size]`.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let [n, _, h, w] = x.shape()?.unpack()?;
        let (size, patch) = (self.image_size as i64, self.patch_size as i64);
        assert!(
            h == size,
            "Wrong image height! Expected {size} but got {h}!"
        );
        assert!(w == size, "Wrong image width! Expected {size} but got {w}!");
        let (n_h, n_w) = (h.floordiv(patch)?, w.floordiv(patch)?);
        let x = self.conv_proj.forward(x)?;
        let x = x.reshape((n, self.hidden_dim, (n_h * n_w)?))?;
        let x = x.permute((0, 2, 1))?;
        let n = x.shape()?.get(0)?;
        let class_token = self.class_token.expand((n, -1, -1))?;
        let x = ops::cat(&[class_token, x], 1)?;
        let x = self.encoder.forward(&x)?;
        self.heads.forward(&x.i((.., 0))?)
    }
}
