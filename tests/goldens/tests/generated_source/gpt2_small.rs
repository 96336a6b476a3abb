//! `Generated`, generated from a traced graph of 91 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `wte`.
    pub wte: fx_nn::nn::Embedding,
    /// `wpe`.
    pub wpe: fx_nn::nn::Embedding,
    /// `drop`.
    pub drop: fx_nn::nn::Dropout,
    /// `h`.
    pub h: H,
    /// `ln_f`.
    pub ln_f: fx_nn::nn::LayerNorm,
    /// `lm_head`.
    pub lm_head: fx_nn::nn::Linear,
    /// `pos`.
    #[module(buffer)] pub pos: Tensor,
    /// `_tensor_constant0`.
    #[module(buffer)] pub _tensor_constant0: Tensor,
    /// `_tensor_constant1`.
    #[module(buffer)] pub _tensor_constant1: Tensor,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            wte: saved.take_submodule("wte")?,
            wpe: saved.take_submodule("wpe")?,
            drop: saved.take_submodule("drop")?,
            h: H::take(saved, "h")?,
            ln_f: saved.take_submodule("ln_f")?,
            lm_head: saved.take_submodule("lm_head")?,
            pos: FromValue::from_value(saved.buffer("pos")?)?,
            _tensor_constant0: FromValue::from_value(saved.buffer("_tensor_constant0")?)?,
            _tensor_constant1: FromValue::from_value(saved.buffer("_tensor_constant1")?)?,
        })
    }
}

/// What is at `h`.
#[derive(Module)]
pub struct H(pub Block, pub Block);

impl H {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(H(
            Block::take(saved, &format!("{path}.0"))?,
            Block::take(saved, &format!("{path}.1"))?,
        ))
    }
}

/// What is at `h.0`, `h.1`.
#[derive(Module)]
pub struct Block {
    /// `ln_1`.
    pub ln_1: fx_nn::nn::LayerNorm,
    /// `attn`.
    pub attn: CausalSelfAttention,
    /// `ln_2`.
    pub ln_2: fx_nn::nn::LayerNorm,
    /// `mlp`.
    pub mlp: Mlp,
}

impl Block {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Block {
            ln_1: saved.take_submodule(&format!("{path}.ln_1"))?,
            attn: CausalSelfAttention::take(saved, &format!("{path}.attn"))?,
            ln_2: saved.take_submodule(&format!("{path}.ln_2"))?,
            mlp: Mlp::take(saved, &format!("{path}.mlp"))?,
        })
    }
}

/// What is at `h.0.attn`, `h.1.attn`.
#[derive(Module)]
pub struct CausalSelfAttention {
    /// `c_attn`.
    pub c_attn: fx_nn::nn::Linear,
    /// `attn_dropout`.
    pub attn_dropout: fx_nn::nn::Dropout,
    /// `c_proj`.
    pub c_proj: fx_nn::nn::Linear,
}

impl CausalSelfAttention {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(CausalSelfAttention {
            c_attn: saved.take_submodule(&format!("{path}.c_attn"))?,
            attn_dropout: saved.take_submodule(&format!("{path}.attn_dropout"))?,
            c_proj: saved.take_submodule(&format!("{path}.c_proj"))?,
        })
    }
}

/// What is at `h.0.mlp`, `h.1.mlp`.
#[derive(Module)]
pub struct Mlp {
    /// `c_fc`.
    pub c_fc: fx_nn::nn::Linear,
    /// `act`.
    pub act: fx_nn::nn::GELU,
    /// `c_proj`.
    pub c_proj: fx_nn::nn::Linear,
    /// `dropout`.
    pub dropout: fx_nn::nn::Dropout,
}

impl Mlp {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Mlp {
            c_fc: saved.take_submodule(&format!("{path}.c_fc"))?,
            act: saved.take_submodule(&format!("{path}.act"))?,
            c_proj: saved.take_submodule(&format!("{path}.c_proj"))?,
            dropout: saved.take_submodule(&format!("{path}.dropout"))?,
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
    pub fn forward(&self, idx: &Tensor) -> Result<Tensor> {
        let size = idx.size(1)?;
        let pos = &self.pos;
        let narrow = pos.narrow(0, 0, size)?;
        let wte = self.wte.forward(idx)?;
        let wpe = self.wpe.forward(&narrow)?;  core::mem::drop(narrow);
        let add = (&wte + &wpe)?;  core::mem::drop(wte); core::mem::drop(wpe);
        let drop = self.drop.forward(&add)?;  core::mem::drop(add);
        // h.0: Block
        let h_0_ln_1 = self.h.0.ln_1.forward(&drop)?;
        // h.0.attn: CausalSelfAttention
        let size_1 = h_0_ln_1.sizes()?;
        let getitem = size_1.get(0)?;
        let getitem_1 = size_1.get(1)?;
        let getitem_2 = size_1.get(2)?;  core::mem::drop(size_1);
        let h_0_attn_c_attn = self.h.0.attn.c_attn.forward(&h_0_ln_1)?;  core::mem::drop(h_0_ln_1);
        let split = h_0_attn_c_attn.split(64, 2)?;  core::mem::drop(h_0_attn_c_attn);
        let getitem_3 = split.get(0)?;
        let getitem_4 = split.get(1)?;
        let getitem_5 = split.get(2)?;  core::mem::drop(split);
        let floordiv = getitem_2.floordiv(4)?;
        let view = getitem_4.view((getitem, getitem_1, 4, floordiv))?;  core::mem::drop(getitem_4);
        let transpose = view.transpose(1, 2)?;  core::mem::drop(view);
        let floordiv_1 = getitem_2.floordiv(4)?;
        let view_1 = getitem_3.view((getitem, getitem_1, 4, floordiv_1))?;  core::mem::drop(getitem_3);
        let transpose_1 = view_1.transpose(1, 2)?;  core::mem::drop(view_1);
        let floordiv_2 = getitem_2.floordiv(4)?;
        let view_2 = getitem_5.view((getitem, getitem_1, 4, floordiv_2))?;  core::mem::drop(getitem_5);
        let transpose_2 = view_2.transpose(1, 2)?;  core::mem::drop(view_2);
        let transpose_3 = transpose.transpose(-2, -1)?;  core::mem::drop(transpose);
        let matmul = fx_nn::ops::matmul(&transpose_1, &transpose_3)?;  core::mem::drop(transpose_1); core::mem::drop(transpose_3);
        let mul = (&matmul * 0.25)?;  core::mem::drop(matmul);
        let _tensor_constant0 = &self._tensor_constant0;
        let narrow_1 = _tensor_constant0.narrow(2, 0, getitem_1)?;
        let narrow_2 = narrow_1.narrow(3, 0, getitem_1)?;  core::mem::drop(narrow_1);
        let masked_fill = mul.masked_fill(&narrow_2, f64::NEG_INFINITY)?;  core::mem::drop(mul); core::mem::drop(narrow_2);
        let softmax = fx_nn::ops::softmax(&masked_fill, -1)?;  core::mem::drop(masked_fill);
        let h_0_attn_attn_dropout = self.h.0.attn.attn_dropout.forward(&softmax)?;  core::mem::drop(softmax);
        let matmul_1 = fx_nn::ops::matmul(&h_0_attn_attn_dropout, &transpose_2)?;  core::mem::drop(h_0_attn_attn_dropout); core::mem::drop(transpose_2);
        let transpose_4 = matmul_1.transpose(1, 2)?;  core::mem::drop(matmul_1);
        let contiguous = transpose_4.contiguous()?;  core::mem::drop(transpose_4);
        let view_3 = contiguous.view((getitem, getitem_1, getitem_2))?;  core::mem::drop(contiguous);
        let h_0_attn_c_proj = self.h.0.attn.c_proj.forward(&view_3)?;  core::mem::drop(view_3);
        // h.0: Block
        let add_1 = (&drop + &h_0_attn_c_proj)?;  core::mem::drop(drop); core::mem::drop(h_0_attn_c_proj);
        let h_0_ln_2 = self.h.0.ln_2.forward(&add_1)?;
        // h.0.mlp: Mlp
        let h_0_mlp_c_fc = self.h.0.mlp.c_fc.forward(&h_0_ln_2)?;  core::mem::drop(h_0_ln_2);
        let h_0_mlp_act = self.h.0.mlp.act.forward(&h_0_mlp_c_fc)?;  core::mem::drop(h_0_mlp_c_fc);
        let h_0_mlp_c_proj = self.h.0.mlp.c_proj.forward(&h_0_mlp_act)?;  core::mem::drop(h_0_mlp_act);
        let h_0_mlp_dropout = self.h.0.mlp.dropout.forward(&h_0_mlp_c_proj)?;  core::mem::drop(h_0_mlp_c_proj);
        // h.0: Block
        let add_2 = (&add_1 + &h_0_mlp_dropout)?;  core::mem::drop(add_1); core::mem::drop(h_0_mlp_dropout);
        // h.1: Block
        let h_1_ln_1 = self.h.1.ln_1.forward(&add_2)?;
        // h.1.attn: CausalSelfAttention
        let size_2 = h_1_ln_1.sizes()?;
        let getitem_6 = size_2.get(0)?;
        let getitem_7 = size_2.get(1)?;
        let getitem_8 = size_2.get(2)?;  core::mem::drop(size_2);
        let h_1_attn_c_attn = self.h.1.attn.c_attn.forward(&h_1_ln_1)?;  core::mem::drop(h_1_ln_1);
        let split_1 = h_1_attn_c_attn.split(64, 2)?;  core::mem::drop(h_1_attn_c_attn);
        let getitem_9 = split_1.get(0)?;
        let getitem_10 = split_1.get(1)?;
        let getitem_11 = split_1.get(2)?;  core::mem::drop(split_1);
        let floordiv_3 = getitem_8.floordiv(4)?;
        let view_4 = getitem_10.view((getitem_6, getitem_7, 4, floordiv_3))?;  core::mem::drop(getitem_10);
        let transpose_5 = view_4.transpose(1, 2)?;  core::mem::drop(view_4);
        let floordiv_4 = getitem_8.floordiv(4)?;
        let view_5 = getitem_9.view((getitem_6, getitem_7, 4, floordiv_4))?;  core::mem::drop(getitem_9);
        let transpose_6 = view_5.transpose(1, 2)?;  core::mem::drop(view_5);
        let floordiv_5 = getitem_8.floordiv(4)?;
        let view_6 = getitem_11.view((getitem_6, getitem_7, 4, floordiv_5))?;  core::mem::drop(getitem_11);
        let transpose_7 = view_6.transpose(1, 2)?;  core::mem::drop(view_6);
        let transpose_8 = transpose_5.transpose(-2, -1)?;  core::mem::drop(transpose_5);
        let matmul_2 = fx_nn::ops::matmul(&transpose_6, &transpose_8)?;  core::mem::drop(transpose_6); core::mem::drop(transpose_8);
        let mul_1 = (&matmul_2 * 0.25)?;  core::mem::drop(matmul_2);
        let _tensor_constant1 = &self._tensor_constant1;
        let narrow_3 = _tensor_constant1.narrow(2, 0, getitem_7)?;
        let narrow_4 = narrow_3.narrow(3, 0, getitem_7)?;  core::mem::drop(narrow_3);
        let masked_fill_1 = mul_1.masked_fill(&narrow_4, f64::NEG_INFINITY)?;  core::mem::drop(mul_1); core::mem::drop(narrow_4);
        let softmax_1 = fx_nn::ops::softmax(&masked_fill_1, -1)?;  core::mem::drop(masked_fill_1);
        let h_1_attn_attn_dropout = self.h.1.attn.attn_dropout.forward(&softmax_1)?;  core::mem::drop(softmax_1);
        let matmul_3 = fx_nn::ops::matmul(&h_1_attn_attn_dropout, &transpose_7)?;  core::mem::drop(h_1_attn_attn_dropout); core::mem::drop(transpose_7);
        let transpose_9 = matmul_3.transpose(1, 2)?;  core::mem::drop(matmul_3);
        let contiguous_1 = transpose_9.contiguous()?;  core::mem::drop(transpose_9);
        let view_7 = contiguous_1.view((getitem_6, getitem_7, getitem_8))?;  core::mem::drop(contiguous_1);
        let h_1_attn_c_proj = self.h.1.attn.c_proj.forward(&view_7)?;  core::mem::drop(view_7);
        // h.1: Block
        let add_3 = (&add_2 + &h_1_attn_c_proj)?;  core::mem::drop(add_2); core::mem::drop(h_1_attn_c_proj);
        let h_1_ln_2 = self.h.1.ln_2.forward(&add_3)?;
        // h.1.mlp: Mlp
        let h_1_mlp_c_fc = self.h.1.mlp.c_fc.forward(&h_1_ln_2)?;  core::mem::drop(h_1_ln_2);
        let h_1_mlp_act = self.h.1.mlp.act.forward(&h_1_mlp_c_fc)?;  core::mem::drop(h_1_mlp_c_fc);
        let h_1_mlp_c_proj = self.h.1.mlp.c_proj.forward(&h_1_mlp_act)?;  core::mem::drop(h_1_mlp_act);
        let h_1_mlp_dropout = self.h.1.mlp.dropout.forward(&h_1_mlp_c_proj)?;  core::mem::drop(h_1_mlp_c_proj);
        // h.1: Block
        let add_4 = (&add_3 + &h_1_mlp_dropout)?;  core::mem::drop(add_3); core::mem::drop(h_1_mlp_dropout);
        // Gpt2
        let ln_f = self.ln_f.forward(&add_4)?;  core::mem::drop(add_4);
        let lm_head = self.lm_head.forward(&ln_f)?;  core::mem::drop(ln_f);
        Ok(lm_head)
    }
}
