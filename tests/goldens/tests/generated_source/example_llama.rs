//! `Generated`, generated from a traced graph of 117 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `embed_tokens`.
    pub embed_tokens: fx_nn::nn::Embedding,
    /// `layers`.
    pub layers: Layers,
    /// `norm`.
    pub norm: fx_nn::nn::RMSNorm,
    /// `lm_head`.
    pub lm_head: fx_nn::nn::Linear,
    /// `cos`.
    #[module(buffer)] pub cos: Tensor,
    /// `sin`.
    #[module(buffer)] pub sin: Tensor,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            embed_tokens: saved.take_submodule("embed_tokens")?,
            layers: Layers::take(saved, "layers")?,
            norm: saved.take_submodule("norm")?,
            lm_head: saved.take_submodule("lm_head")?,
            cos: FromValue::from_value(saved.buffer("cos")?)?,
            sin: FromValue::from_value(saved.buffer("sin")?)?,
        })
    }
}

/// What is at `layers`.
#[derive(Module)]
pub struct Layers(pub Layer, pub Layer);

impl Layers {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layers(
            Layer::take(saved, &format!("{path}.0"))?,
            Layer::take(saved, &format!("{path}.1"))?,
        ))
    }
}

/// What is at `layers.0`, `layers.1`.
#[derive(Module)]
pub struct Layer {
    /// `input_layernorm`.
    pub input_layernorm: fx_nn::nn::RMSNorm,
    /// `self_attn`.
    pub self_attn: Attention,
    /// `post_attention_layernorm`.
    pub post_attention_layernorm: fx_nn::nn::RMSNorm,
    /// `mlp`.
    pub mlp: Mlp,
}

impl Layer {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layer {
            input_layernorm: saved.take_submodule(&format!("{path}.input_layernorm"))?,
            self_attn: Attention::take(saved, &format!("{path}.self_attn"))?,
            post_attention_layernorm: saved.take_submodule(&format!("{path}.post_attention_layernorm"))?,
            mlp: Mlp::take(saved, &format!("{path}.mlp"))?,
        })
    }
}

/// What is at `layers.0.self_attn`, `layers.1.self_attn`.
#[derive(Module)]
pub struct Attention {
    /// `q_proj`.
    pub q_proj: fx_nn::nn::Linear,
    /// `k_proj`.
    pub k_proj: fx_nn::nn::Linear,
    /// `v_proj`.
    pub v_proj: fx_nn::nn::Linear,
    /// `o_proj`.
    pub o_proj: fx_nn::nn::Linear,
}

impl Attention {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Attention {
            q_proj: saved.take_submodule(&format!("{path}.q_proj"))?,
            k_proj: saved.take_submodule(&format!("{path}.k_proj"))?,
            v_proj: saved.take_submodule(&format!("{path}.v_proj"))?,
            o_proj: saved.take_submodule(&format!("{path}.o_proj"))?,
        })
    }
}

/// What is at `layers.0.mlp`, `layers.1.mlp`.
#[derive(Module)]
pub struct Mlp {
    /// `gate_proj`.
    pub gate_proj: fx_nn::nn::Linear,
    /// `up_proj`.
    pub up_proj: fx_nn::nn::Linear,
    /// `down_proj`.
    pub down_proj: fx_nn::nn::Linear,
}

impl Mlp {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Mlp {
            gate_proj: saved.take_submodule(&format!("{path}.gate_proj"))?,
            up_proj: saved.take_submodule(&format!("{path}.up_proj"))?,
            down_proj: saved.take_submodule(&format!("{path}.down_proj"))?,
        })
    }
}

/// A structure of values that the module takes.
#[derive(Tree, Clone, Debug)]
pub struct Cache {
    /// One of its parts.
    pub k: Tensor,
    /// One of its parts.
    pub v: Tensor,
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
    pub fn forward(&self, tokens: &Tensor, caches: Vec<Cache>) -> Result<(Tensor, Vec<IndexMap<String, Tensor>>)> {
        let caches_1 = &caches[0].k;
        let caches_2 = &caches[0].v;
        let caches_3 = &caches[1].k;
        let caches_4 = &caches[1].v;
        let size = caches_1.size(2)?;
        let size_1 = tokens.size(1)?;
        let add = (size + size_1)?;
        let cos = &self.cos;
        let getitem = cos.i(size..add)?;
        let sin = &self.sin;
        let getitem_1 = sin.i(size..add)?;
        let arange = fx_nn::ops::arange(size, add, 1, None)?;
        let unsqueeze = arange.unsqueeze(1)?;  drop(arange);
        let arange_1 = fx_nn::ops::arange(0, add, 1, None)?;
        let unsqueeze_1 = arange_1.unsqueeze(0)?;  drop(arange_1);
        let ge = (&unsqueeze >= &unsqueeze_1)?;  drop(unsqueeze); drop(unsqueeze_1);
        let embed_tokens = self.embed_tokens.forward(tokens)?;
        // layers.0: Layer
        let layers_0_input_layernorm = self.layers.0.input_layernorm.forward(&embed_tokens)?;
        // layers.0.self_attn: Attention
        let getattr = layers_0_input_layernorm.shape()?;
        let getitem_2 = getattr.get(0)?;
        let getitem_3 = getattr.get(1)?;
        getattr.get(2)?;  drop(getattr);
        let layers_0_self_attn_q_proj = self.layers.0.self_attn.q_proj.forward(&layers_0_input_layernorm)?;
        let view = layers_0_self_attn_q_proj.view((getitem_2, getitem_3, -1, 8))?;  drop(layers_0_self_attn_q_proj);
        let transpose = view.transpose(1, 2)?;  drop(view);
        let chunk = transpose.chunk(2, -1)?;  drop(transpose);
        let getitem_5 = chunk.get(0)?;
        let getitem_6 = chunk.get(1)?;  drop(chunk);
        let mul = (&getitem_5 * &getitem)?;
        let mul_1 = (&getitem_6 * &getitem_1)?;
        let sub = (&mul - &mul_1)?;  drop(mul); drop(mul_1);
        let mul_2 = (&getitem_6 * &getitem)?;  drop(getitem_6);
        let mul_3 = (&getitem_5 * &getitem_1)?;  drop(getitem_5);
        let add_1 = (&mul_2 + &mul_3)?;  drop(mul_2); drop(mul_3);
        let cat = fx_nn::ops::cat(&[sub.clone(), add_1.clone()], -1)?;  drop(sub); drop(add_1);
        let layers_0_self_attn_k_proj = self.layers.0.self_attn.k_proj.forward(&layers_0_input_layernorm)?;
        let view_1 = layers_0_self_attn_k_proj.view((getitem_2, getitem_3, -1, 8))?;  drop(layers_0_self_attn_k_proj);
        let transpose_1 = view_1.transpose(1, 2)?;  drop(view_1);
        let chunk_1 = transpose_1.chunk(2, -1)?;  drop(transpose_1);
        let getitem_7 = chunk_1.get(0)?;
        let getitem_8 = chunk_1.get(1)?;  drop(chunk_1);
        let mul_4 = (&getitem_7 * &getitem)?;
        let mul_5 = (&getitem_8 * &getitem_1)?;
        let sub_1 = (&mul_4 - &mul_5)?;  drop(mul_4); drop(mul_5);
        let mul_6 = (&getitem_8 * &getitem)?;  drop(getitem_8);
        let mul_7 = (&getitem_7 * &getitem_1)?;  drop(getitem_7);
        let add_2 = (&mul_6 + &mul_7)?;  drop(mul_6); drop(mul_7);
        let cat_1 = fx_nn::ops::cat(&[sub_1.clone(), add_2.clone()], -1)?;  drop(sub_1); drop(add_2);
        let layers_0_self_attn_v_proj = self.layers.0.self_attn.v_proj.forward(&layers_0_input_layernorm)?;  drop(layers_0_input_layernorm);
        let view_2 = layers_0_self_attn_v_proj.view((getitem_2, getitem_3, -1, 8))?;  drop(layers_0_self_attn_v_proj);
        let transpose_2 = view_2.transpose(1, 2)?;  drop(view_2);
        let cat_2 = fx_nn::ops::cat(&[caches_1.clone(), cat_1.clone()], 2)?;  drop(cat_1);
        let cat_3 = fx_nn::ops::cat(&[caches_2.clone(), transpose_2.clone()], 2)?;  drop(transpose_2);
        let scaled_dot_product_attention = fx_nn::ops::scaled_dot_product_attention(&cat, &cat_2, &cat_3, Some(&ge), 0.0, false, None, true)?;  drop(cat);
        let transpose_3 = scaled_dot_product_attention.transpose(1, 2)?;  drop(scaled_dot_product_attention);
        let reshape = transpose_3.reshape((getitem_2, getitem_3, -1))?;  drop(transpose_3);
        let layers_0_self_attn_o_proj = self.layers.0.self_attn.o_proj.forward(&reshape)?;  drop(reshape);
        // layers.0: Layer
        let add_3 = (&embed_tokens + &layers_0_self_attn_o_proj)?;  drop(embed_tokens); drop(layers_0_self_attn_o_proj);
        let layers_0_post_attention_layernorm = self.layers.0.post_attention_layernorm.forward(&add_3)?;
        // layers.0.mlp: Mlp
        let layers_0_mlp_gate_proj = self.layers.0.mlp.gate_proj.forward(&layers_0_post_attention_layernorm)?;
        let silu = fx_nn::ops::silu(&layers_0_mlp_gate_proj)?;  drop(layers_0_mlp_gate_proj);
        let layers_0_mlp_up_proj = self.layers.0.mlp.up_proj.forward(&layers_0_post_attention_layernorm)?;  drop(layers_0_post_attention_layernorm);
        let mul_8 = (&silu * &layers_0_mlp_up_proj)?;  drop(silu); drop(layers_0_mlp_up_proj);
        let layers_0_mlp_down_proj = self.layers.0.mlp.down_proj.forward(&mul_8)?;  drop(mul_8);
        // layers.0: Layer
        let add_4 = (&add_3 + &layers_0_mlp_down_proj)?;  drop(add_3); drop(layers_0_mlp_down_proj);
        // layers.1: Layer
        let layers_1_input_layernorm = self.layers.1.input_layernorm.forward(&add_4)?;
        // layers.1.self_attn: Attention
        let getattr_1 = layers_1_input_layernorm.shape()?;
        let getitem_9 = getattr_1.get(0)?;
        let getitem_10 = getattr_1.get(1)?;
        getattr_1.get(2)?;  drop(getattr_1);
        let layers_1_self_attn_q_proj = self.layers.1.self_attn.q_proj.forward(&layers_1_input_layernorm)?;
        let view_3 = layers_1_self_attn_q_proj.view((getitem_9, getitem_10, -1, 8))?;  drop(layers_1_self_attn_q_proj);
        let transpose_4 = view_3.transpose(1, 2)?;  drop(view_3);
        let chunk_2 = transpose_4.chunk(2, -1)?;  drop(transpose_4);
        let getitem_12 = chunk_2.get(0)?;
        let getitem_13 = chunk_2.get(1)?;  drop(chunk_2);
        let mul_9 = (&getitem_12 * &getitem)?;
        let mul_10 = (&getitem_13 * &getitem_1)?;
        let sub_2 = (&mul_9 - &mul_10)?;  drop(mul_9); drop(mul_10);
        let mul_11 = (&getitem_13 * &getitem)?;  drop(getitem_13);
        let mul_12 = (&getitem_12 * &getitem_1)?;  drop(getitem_12);
        let add_5 = (&mul_11 + &mul_12)?;  drop(mul_11); drop(mul_12);
        let cat_4 = fx_nn::ops::cat(&[sub_2.clone(), add_5.clone()], -1)?;  drop(sub_2); drop(add_5);
        let layers_1_self_attn_k_proj = self.layers.1.self_attn.k_proj.forward(&layers_1_input_layernorm)?;
        let view_4 = layers_1_self_attn_k_proj.view((getitem_9, getitem_10, -1, 8))?;  drop(layers_1_self_attn_k_proj);
        let transpose_5 = view_4.transpose(1, 2)?;  drop(view_4);
        let chunk_3 = transpose_5.chunk(2, -1)?;  drop(transpose_5);
        let getitem_14 = chunk_3.get(0)?;
        let getitem_15 = chunk_3.get(1)?;  drop(chunk_3);
        let mul_13 = (&getitem_14 * &getitem)?;
        let mul_14 = (&getitem_15 * &getitem_1)?;
        let sub_3 = (&mul_13 - &mul_14)?;  drop(mul_13); drop(mul_14);
        let mul_15 = (&getitem_15 * &getitem)?;  drop(getitem_15); drop(getitem);
        let mul_16 = (&getitem_14 * &getitem_1)?;  drop(getitem_14); drop(getitem_1);
        let add_6 = (&mul_15 + &mul_16)?;  drop(mul_15); drop(mul_16);
        let cat_5 = fx_nn::ops::cat(&[sub_3.clone(), add_6.clone()], -1)?;  drop(sub_3); drop(add_6);
        let layers_1_self_attn_v_proj = self.layers.1.self_attn.v_proj.forward(&layers_1_input_layernorm)?;  drop(layers_1_input_layernorm);
        let view_5 = layers_1_self_attn_v_proj.view((getitem_9, getitem_10, -1, 8))?;  drop(layers_1_self_attn_v_proj);
        let transpose_6 = view_5.transpose(1, 2)?;  drop(view_5);
        let cat_6 = fx_nn::ops::cat(&[caches_3.clone(), cat_5.clone()], 2)?;  drop(cat_5);
        let cat_7 = fx_nn::ops::cat(&[caches_4.clone(), transpose_6.clone()], 2)?;  drop(transpose_6);
        let scaled_dot_product_attention_1 = fx_nn::ops::scaled_dot_product_attention(&cat_4, &cat_6, &cat_7, Some(&ge), 0.0, false, None, true)?;  drop(cat_4); drop(ge);
        let transpose_7 = scaled_dot_product_attention_1.transpose(1, 2)?;  drop(scaled_dot_product_attention_1);
        let reshape_1 = transpose_7.reshape((getitem_9, getitem_10, -1))?;  drop(transpose_7);
        let layers_1_self_attn_o_proj = self.layers.1.self_attn.o_proj.forward(&reshape_1)?;  drop(reshape_1);
        // layers.1: Layer
        let add_7 = (&add_4 + &layers_1_self_attn_o_proj)?;  drop(add_4); drop(layers_1_self_attn_o_proj);
        let layers_1_post_attention_layernorm = self.layers.1.post_attention_layernorm.forward(&add_7)?;
        // layers.1.mlp: Mlp
        let layers_1_mlp_gate_proj = self.layers.1.mlp.gate_proj.forward(&layers_1_post_attention_layernorm)?;
        let silu_1 = fx_nn::ops::silu(&layers_1_mlp_gate_proj)?;  drop(layers_1_mlp_gate_proj);
        let layers_1_mlp_up_proj = self.layers.1.mlp.up_proj.forward(&layers_1_post_attention_layernorm)?;  drop(layers_1_post_attention_layernorm);
        let mul_17 = (&silu_1 * &layers_1_mlp_up_proj)?;  drop(silu_1); drop(layers_1_mlp_up_proj);
        let layers_1_mlp_down_proj = self.layers.1.mlp.down_proj.forward(&mul_17)?;  drop(mul_17);
        // layers.1: Layer
        let add_8 = (&add_7 + &layers_1_mlp_down_proj)?;  drop(add_7); drop(layers_1_mlp_down_proj);
        // Llama
        let norm = self.norm.forward(&add_8)?;  drop(add_8);
        let lm_head = self.lm_head.forward(&norm)?;  drop(norm);
        Ok((lm_head, vec![IndexMap::from_iter([("k".to_string(), cat_2), ("v".to_string(), cat_3)]), IndexMap::from_iter([("k".to_string(), cat_6), ("v".to_string(), cat_7)])]))
    }
}
