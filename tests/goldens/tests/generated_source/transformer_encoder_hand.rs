//! `Generated`, generated from a traced graph of 30 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `attn`.
    pub attn: Attention,
    /// `norm1`.
    pub norm1: fx_nn::nn::LayerNorm,
    /// `lin1`.
    pub lin1: fx_nn::nn::Linear,
    /// `lin2`.
    pub lin2: fx_nn::nn::Linear,
    /// `norm2`.
    pub norm2: fx_nn::nn::LayerNorm,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            attn: Attention::take(saved, "attn")?,
            norm1: saved.take_submodule("norm1")?,
            lin1: saved.take_submodule("lin1")?,
            lin2: saved.take_submodule("lin2")?,
            norm2: saved.take_submodule("norm2")?,
        })
    }
}

/// What is at `attn`.
#[derive(Module)]
pub struct Attention {
    /// `q`.
    pub q: fx_nn::nn::Linear,
    /// `k`.
    pub k: fx_nn::nn::Linear,
    /// `v`.
    pub v: fx_nn::nn::Linear,
    /// `o`.
    pub o: fx_nn::nn::Linear,
}

impl Attention {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Attention {
            q: saved.take_submodule(&format!("{path}.q"))?,
            k: saved.take_submodule(&format!("{path}.k"))?,
            v: saved.take_submodule(&format!("{path}.v"))?,
            o: saved.take_submodule(&format!("{path}.o"))?,
        })
    }
}

impl Generated {
    /// The module with the layers and weights of a file that was saved with it.
    ///
    /// # Errors
    /// Returns an error if the file is not of this module.
    pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self> {
        Self::take(&mut GraphModule::load(path)?)
    }
}

#[trace]
impl Generated {
    /// What was traced.
    ///
    /// # Errors
    /// When the arguments do not fit.
    pub fn forward(&self, src: &Tensor) -> Result<Tensor> {
        // attn: Attention
        let getattr = src.shape()?;
        let getitem = getattr.get(0)?;
        let getitem_1 = getattr.get(1)?;
        let getitem_2 = getattr.get(2)?;  drop(getattr);
        let attn_q = self.attn.q.forward(src)?;
        let view = attn_q.view((getitem, getitem_1, 4, 8))?;  drop(attn_q);
        let transpose = view.transpose(1, 2)?;  drop(view);
        let attn_k = self.attn.k.forward(src)?;
        let view_1 = attn_k.view((getitem, getitem_1, 4, 8))?;  drop(attn_k);
        let transpose_1 = view_1.transpose(1, 2)?;  drop(view_1);
        let attn_v = self.attn.v.forward(src)?;
        let view_2 = attn_v.view((getitem, getitem_1, 4, 8))?;  drop(attn_v);
        let transpose_2 = view_2.transpose(1, 2)?;  drop(view_2);
        let transpose_3 = transpose_1.transpose(-2, -1)?;  drop(transpose_1);
        let matmul = fx_nn::ops::matmul(&transpose, &transpose_3)?;  drop(transpose); drop(transpose_3);
        let truediv = (&matmul / 2.8284271247461903)?;  drop(matmul);
        let softmax = fx_nn::ops::softmax(&truediv, -1)?;  drop(truediv);
        let matmul_1 = fx_nn::ops::matmul(&softmax, &transpose_2)?;  drop(softmax); drop(transpose_2);
        let transpose_4 = matmul_1.transpose(1, 2)?;  drop(matmul_1);
        let reshape = transpose_4.reshape((getitem, getitem_1, getitem_2))?;  drop(transpose_4);
        let attn_o = self.attn.o.forward(&reshape)?;  drop(reshape);
        // TransformerEncoderLayer
        let add = (src + &attn_o)?;  drop(attn_o);
        let norm1 = self.norm1.forward(&add)?;  drop(add);
        let lin1 = self.lin1.forward(&norm1)?;
        let gelu = fx_nn::ops::gelu(&lin1, "none")?;  drop(lin1);
        let lin2 = self.lin2.forward(&gelu)?;  drop(gelu);
        let add_1 = (&norm1 + &lin2)?;  drop(norm1); drop(lin2);
        let norm2 = self.norm2.forward(&add_1)?;  drop(add_1);
        Ok(norm2)
    }
}
