//! Transformer layers: attention and a feed-forward part, each with a residual connection and a
//! norm.

use fx_core::{Error, Module, Result, trace};

use super::options::options;
use super::{Dropout, LayerNorm, Linear, MultiheadAttention};
use crate::ops;
use crate::tensor::Tensor;

/// PyTorch's default width of the feed-forward part.
const DIM_FEEDFORWARD: usize = 2048;
/// PyTorch's default share of elements that is dropped.
const DROPOUT: f64 = 0.1;

/// Writes the options of a layer with these attentions, norms and dropouts.
macro_rules! transformer_options {
    ($layer:ident, [$($attention:ident),*], [$($norm:ident),*], [$($dropout:ident),*]) => {
        impl $layer {
            /// Sets the width of the feed-forward part, with new weights: 2048.
            ///
            /// # Errors
            /// Returns an error if they do not fit into memory.
            pub fn dim_feedforward(self, dim_feedforward: usize) -> Result<Self> {
                let [d_model] = self.norm1.normalized_shape[..] else {
                    return Err(Error::msg("transformer: the norms are not over one dim"));
                };
                let has_bias = self.linear1.bias.is_some();
                Ok($layer {
                    linear1: Linear::new(d_model, dim_feedforward)?.bias(has_bias),
                    linear2: Linear::new(dim_feedforward, d_model)?.bias(has_bias),
                    ..self
                })
            }

            /// Sets the share of elements that is dropped in training: 0.1.
            ///
            /// # Errors
            /// Returns an error if it is not in [0, 1].
            pub fn dropout(mut self, dropout: f64) -> Result<Self> {
                $(self.$dropout = Dropout::new(dropout)?;)*
                $(self.$attention = self.$attention.dropout(dropout)?;)*
                Ok(self)
            }

            /// Sets what norms add to the variance: 1e-5.
            #[must_use]
            pub fn layer_norm_eps(mut self, eps: f64) -> Self {
                $(self.$norm.eps = eps;)*
                self
            }

            /// Sets whether the batch is the first dim: no.
            #[must_use]
            pub fn batch_first(mut self, batch_first: bool) -> Self {
                $(self.$attention.batch_first = batch_first;)*
                self
            }

            /// Whether all parts keep their biases; what was taken off does not come back.
            #[must_use]
            pub fn bias(mut self, bias: bool) -> Self {
                self.linear1 = self.linear1.bias(bias);
                self.linear2 = self.linear2.bias(bias);
                $(self.$attention = self.$attention.bias(bias);)*
                $(self.$norm = self.$norm.bias(bias);)*
                self
            }
        }

        options!($layer { activation: impl Into<String>, norm_first: bool });
    };
}

transformer_options!(
    TransformerEncoderLayer,
    [self_attn],
    [norm1, norm2],
    [dropout, dropout1, dropout2]
);
transformer_options!(
    TransformerDecoderLayer,
    [self_attn, multihead_attn],
    [norm1, norm2, norm3],
    [dropout, dropout1, dropout2, dropout3]
);

/// The activation of a name.
fn activated(name: &str, x: &Tensor) -> Result<Tensor> {
    match name {
        "relu" => ops::relu(x),
        "gelu" => ops::gelu(x, "none"),
        other => Err(Error::msg(format_args!(
            "transformer: activation is \"relu\" or \"gelu\", not {other:?}"
        ))),
    }
}

/// Refuses to be told that a mask is causal where there is none, as PyTorch does.
fn hinted(mask: Option<&Tensor>, is_causal: bool) -> Result<()> {
    match (mask, is_causal) {
        (None, true) => Err(Error::msg(
            "transformer: is_causal says what a mask is: give the mask too",
        )),
        _ => Ok(()),
    }
}

/// Attention of a sequence to itself, and a feed-forward part, each added to its input and
/// normalised.
///
/// `src` is `[S, N, E]`, `[N, S, E]` with `batch_first`.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::TransformerEncoderLayer::new(8, 2)?.dim_feedforward(16)?.batch_first(true);
/// layer.eval();
/// let y = layer.forward(&Tensor::rand((3, 5, 8))?, None, None, false)?;
/// assert_eq!(y.dims()?, [3, 5, 8]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct TransformerEncoderLayer {
    /// Of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// The first linear layer of the feed-forward part.
    pub linear1: Linear,
    /// Between its linear layers.
    pub dropout: Dropout,
    /// The second one.
    pub linear2: Linear,
    /// Of the attention.
    pub norm1: LayerNorm,
    /// Of the feed-forward part.
    pub norm2: LayerNorm,
    /// After the attention.
    pub dropout1: Dropout,
    /// After the feed-forward part.
    pub dropout2: Dropout,
    /// `"relu"` or `"gelu"`: `"relu"`.
    pub activation: String,
    /// Whether norms come before the parts: no.
    pub norm_first: bool,
}

impl TransformerEncoderLayer {
    /// A layer in training mode, initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if `nhead` does not divide `d_model`.
    pub fn new(d_model: usize, nhead: usize) -> Result<Self> {
        let dropout = || Dropout::new(DROPOUT);
        let attention = || MultiheadAttention::new(d_model, nhead)?.dropout(DROPOUT);
        Ok(TransformerEncoderLayer {
            self_attn: attention()?,
            linear1: Linear::new(d_model, DIM_FEEDFORWARD)?,
            dropout: dropout()?,
            linear2: Linear::new(DIM_FEEDFORWARD, d_model)?,
            norm1: LayerNorm::new(d_model)?,
            norm2: LayerNorm::new(d_model)?,
            dropout1: dropout()?,
            dropout2: dropout()?,
            activation: "relu".to_string(),
            norm_first: false,
        })
    }

    fn draws(&self) -> bool {
        [&self.dropout, &self.dropout1, &self.dropout2]
            .iter()
            .any(|dropout| dropout.training && dropout.p > 0.0)
            || self.self_attn.training && self.self_attn.dropout > 0.0
    }

    fn attended(
        &self,
        x: &Tensor,
        mask: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (y, _) = self.self_attn.forward(x, x, x, padding, false, mask)?;
        self.dropout1.forward(&y)
    }

    fn fed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = activated(&self.activation, &self.linear1.forward(x)?)?;
        self.dropout2
            .forward(&self.linear2.forward(&self.dropout.forward(&h)?)?)
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::TransformerEncoderLayer")]
impl TransformerEncoderLayer {
    /// Applies the layer. Truth values in a mask are true where a key must *not* be seen, numbers
    /// are added to the scores; `is_causal` states that the mask hides later keys.
    ///
    /// # Errors
    /// Returns an error if a shape does not fit, or the activation is unknown.
    pub fn forward(
        &self,
        src: &Tensor,
        src_mask: Option<&Tensor>,
        src_key_padding_mask: Option<&Tensor>,
        #[default(false)] is_causal: bool,
    ) -> Result<Tensor> {
        hinted(src_mask, is_causal)?;
        let (mask, padding) = (src_mask, src_key_padding_mask);
        if self.norm_first {
            let x = (src + self.attended(&self.norm1.forward(src)?, mask, padding)?)?;
            return &x + self.fed_forward(&self.norm2.forward(&x)?)?;
        }
        let x = self
            .norm1
            .forward(&(src + self.attended(src, mask, padding)?)?)?;
        self.norm2.forward(&(&x + self.fed_forward(&x)?)?)
    }
}

/// Attention of a sequence to itself and to a memory, and a feed-forward part, each added to its
/// input and normalised.
///
/// `tgt` and `memory` are `[T, N, E]` and `[S, N, E]`; with `batch_first` the batch is the first dim of both.
///
/// ```
/// use fx_nn::prelude::*;
/// let mut layer = nn::TransformerDecoderLayer::new(8, 2)?;
/// layer.eval();
/// let (x, memory) = (Tensor::rand((3, 5, 8))?, Tensor::rand((4, 5, 8))?);
/// assert_eq!(layer.forward(&x, &memory, None, None, None, None, false, false)?.dims()?, [3, 5, 8]);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Module, Clone, Debug)]
pub struct TransformerDecoderLayer {
    /// Of the sequence to itself.
    pub self_attn: MultiheadAttention,
    /// Of the sequence to the memory.
    pub multihead_attn: MultiheadAttention,
    /// The first linear layer of the feed-forward part.
    pub linear1: Linear,
    /// Between its linear layers.
    pub dropout: Dropout,
    /// The second one.
    pub linear2: Linear,
    /// Of the attention to itself.
    pub norm1: LayerNorm,
    /// Of the attention to the memory.
    pub norm2: LayerNorm,
    /// Of the feed-forward part.
    pub norm3: LayerNorm,
    /// After the attention to itself.
    pub dropout1: Dropout,
    /// After the attention to the memory.
    pub dropout2: Dropout,
    /// After the feed-forward part.
    pub dropout3: Dropout,
    /// `"relu"` or `"gelu"`: `"relu"`.
    pub activation: String,
    /// Whether norms come before the parts: no.
    pub norm_first: bool,
}

impl TransformerDecoderLayer {
    /// A layer in training mode, initialised as PyTorch's.
    ///
    /// # Errors
    /// Returns an error if `nhead` does not divide `d_model`.
    pub fn new(d_model: usize, nhead: usize) -> Result<Self> {
        let dropout = || Dropout::new(DROPOUT);
        let attention = || MultiheadAttention::new(d_model, nhead)?.dropout(DROPOUT);
        Ok(TransformerDecoderLayer {
            self_attn: attention()?,
            multihead_attn: attention()?,
            linear1: Linear::new(d_model, DIM_FEEDFORWARD)?,
            dropout: dropout()?,
            linear2: Linear::new(DIM_FEEDFORWARD, d_model)?,
            norm1: LayerNorm::new(d_model)?,
            norm2: LayerNorm::new(d_model)?,
            norm3: LayerNorm::new(d_model)?,
            dropout1: dropout()?,
            dropout2: dropout()?,
            dropout3: dropout()?,
            activation: "relu".to_string(),
            norm_first: false,
        })
    }

    fn draws(&self) -> bool {
        [
            &self.dropout,
            &self.dropout1,
            &self.dropout2,
            &self.dropout3,
        ]
        .iter()
        .any(|dropout| dropout.training && dropout.p > 0.0)
            || [&self.self_attn, &self.multihead_attn]
                .iter()
                .any(|attention| attention.training && attention.dropout > 0.0)
    }

    fn attended(
        &self,
        x: &Tensor,
        mask: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (y, _) = self.self_attn.forward(x, x, x, padding, false, mask)?;
        self.dropout1.forward(&y)
    }

    fn looked_up(
        &self,
        x: &Tensor,
        memory: &Tensor,
        mask: Option<&Tensor>,
        padding: Option<&Tensor>,
    ) -> Result<Tensor> {
        let (y, _) = self
            .multihead_attn
            .forward(x, memory, memory, padding, false, mask)?;
        self.dropout2.forward(&y)
    }

    fn fed_forward(&self, x: &Tensor) -> Result<Tensor> {
        let h = activated(&self.activation, &self.linear1.forward(x)?)?;
        self.dropout3
            .forward(&self.linear2.forward(&self.dropout.forward(&h)?)?)
    }
}

#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
#[trace(leaf, impure = draws, path = "fx_nn::nn::TransformerDecoderLayer")]
impl TransformerDecoderLayer {
    /// Applies the layer; masks are as those of [`TransformerEncoderLayer`].
    ///
    /// # Errors
    /// Returns an error if a shape does not fit, the activation is unknown, or a mask that is
    /// declared causal is not given.
    #[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
    pub fn forward(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        tgt_mask: Option<&Tensor>,
        memory_mask: Option<&Tensor>,
        tgt_key_padding_mask: Option<&Tensor>,
        memory_key_padding_mask: Option<&Tensor>,
        #[default(false)] tgt_is_causal: bool,
        #[default(false)] memory_is_causal: bool,
    ) -> Result<Tensor> {
        hinted(tgt_mask, tgt_is_causal)?;
        hinted(memory_mask, memory_is_causal)?;
        let (own, own_padding) = (tgt_mask, tgt_key_padding_mask);
        let (other, other_padding) = (memory_mask, memory_key_padding_mask);
        if self.norm_first {
            let x = (tgt + self.attended(&self.norm1.forward(tgt)?, own, own_padding)?)?;
            let h = self.norm2.forward(&x)?;
            let x = (&x + self.looked_up(&h, memory, other, other_padding)?)?;
            return &x + self.fed_forward(&self.norm3.forward(&x)?)?;
        }
        let x = self
            .norm1
            .forward(&(tgt + self.attended(tgt, own, own_padding)?)?)?;
        let h = self.looked_up(&x, memory, other, other_padding)?;
        let x = self.norm2.forward(&(&x + h)?)?;
        self.norm3.forward(&(&x + self.fed_forward(&x)?)?)
    }
}

/// Encoder layers one after another, and a norm where one is given.
#[derive(Module, Clone, Debug)]
pub struct TransformerEncoder {
    /// The layers.
    pub layers: Vec<TransformerEncoderLayer>,
    /// After the last one.
    pub norm: Option<LayerNorm>,
}

impl TransformerEncoder {
    /// So many layers with the weights of the one given, and a norm or none.
    ///
    /// # Errors
    /// Returns an error if they do not fit into memory.
    pub fn new(
        layer: &TransformerEncoderLayer,
        num_layers: usize,
        norm: Option<LayerNorm>,
    ) -> Result<Self> {
        let layers = (0..num_layers).map(|_| copied(layer));
        Ok(TransformerEncoder {
            layers: layers.collect::<Result<_>>()?,
            norm,
        })
    }

    fn draws(&self) -> bool {
        self.layers.iter().any(TransformerEncoderLayer::draws)
    }
}

#[trace(leaf, impure = draws, path = "fx_nn::nn::TransformerEncoder")]
impl TransformerEncoder {
    /// Applies the layers; masks are as those of [`TransformerEncoderLayer`].
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    pub fn forward(
        &self,
        src: &Tensor,
        mask: Option<&Tensor>,
        src_key_padding_mask: Option<&Tensor>,
        #[default(false)] is_causal: bool,
    ) -> Result<Tensor> {
        let mut x = src.clone();
        for layer in &self.layers {
            x = layer.forward(&x, mask, src_key_padding_mask, is_causal)?;
        }
        match &self.norm {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
    }
}

/// Decoder layers one after another, and a norm where one is given.
#[derive(Module, Clone, Debug)]
pub struct TransformerDecoder {
    /// The layers.
    pub layers: Vec<TransformerDecoderLayer>,
    /// After the last one.
    pub norm: Option<LayerNorm>,
}

impl TransformerDecoder {
    /// So many layers with the weights of the one given, and a norm or none.
    ///
    /// # Errors
    /// Returns an error if they do not fit into memory.
    pub fn new(
        layer: &TransformerDecoderLayer,
        num_layers: usize,
        norm: Option<LayerNorm>,
    ) -> Result<Self> {
        let layers = (0..num_layers).map(|_| copied(layer));
        Ok(TransformerDecoder {
            layers: layers.collect::<Result<_>>()?,
            norm,
        })
    }

    fn draws(&self) -> bool {
        self.layers.iter().any(TransformerDecoderLayer::draws)
    }
}

#[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
#[trace(leaf, impure = draws, path = "fx_nn::nn::TransformerDecoder")]
impl TransformerDecoder {
    /// Applies the layers; masks are as those of [`TransformerEncoderLayer`].
    ///
    /// # Errors
    /// Returns an error if a shape does not fit.
    #[allow(clippy::too_many_arguments, reason = "PyTorch's parameters")]
    pub fn forward(
        &self,
        tgt: &Tensor,
        memory: &Tensor,
        tgt_mask: Option<&Tensor>,
        memory_mask: Option<&Tensor>,
        tgt_key_padding_mask: Option<&Tensor>,
        memory_key_padding_mask: Option<&Tensor>,
        #[default(false)] tgt_is_causal: bool,
        #[default(false)] memory_is_causal: bool,
    ) -> Result<Tensor> {
        let mut x = tgt.clone();
        for layer in &self.layers {
            x = layer.forward(
                &x,
                memory,
                tgt_mask,
                memory_mask,
                tgt_key_padding_mask,
                memory_key_padding_mask,
                tgt_is_causal,
                memory_is_causal,
            )?;
        }
        match &self.norm {
            Some(norm) => norm.forward(&x),
            None => Ok(x),
        }
    }
}

/// A layer with parameters of its own that have the same values.
fn copied<L: fx_core::module::Component + Clone>(layer: &L) -> Result<L> {
    use fx_core::module::{TensorKind, VisitorMut, walk_mut};
    use fx_core::tensor::Object;

    struct Own(Result<()>);
    impl VisitorMut for Own {
        fn tensor(&mut self, _: &str, _: TensorKind, tensor: &mut dyn Object) {
            let any: &mut dyn std::any::Any = tensor;
            if let Some(tensor) = any.downcast_mut::<Tensor>()
                && self.0.is_ok()
            {
                match tensor.data("a transformer layer").and_then(|data| {
                    use crate::error::Fx;
                    data.copy()
                        .and_then(|copy| candle_core::Var::from_tensor(&copy))
                        .fx()
                }) {
                    Ok(var) => *tensor = tensor.with_data(var.as_tensor().clone()),
                    Err(error) => self.0 = Err(error),
                }
            }
        }
    }
    let mut copy = layer.clone();
    let mut own = Own(Ok(()));
    walk_mut(&mut copy, &mut own);
    own.0.map(|()| copy)
}
