//! `Generated`, generated from a traced graph of 102 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `word`.
    pub word: fx_nn::nn::Embedding,
    /// `position`.
    pub position: fx_nn::nn::Embedding,
    /// `token_type`.
    pub token_type: fx_nn::nn::Embedding,
    /// `ln`.
    pub ln: fx_nn::nn::LayerNorm,
    /// `dropout`.
    pub dropout: fx_nn::nn::Dropout,
    /// `layers`.
    pub layers: Layers,
    /// `pooler`.
    pub pooler: fx_nn::nn::Linear,
    /// `classifier`.
    pub classifier: fx_nn::nn::Linear,
    /// `_tensor_constant0`.
    #[module(buffer)] pub _tensor_constant0: Tensor,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            word: saved.take_submodule("word")?,
            position: saved.take_submodule("position")?,
            token_type: saved.take_submodule("token_type")?,
            ln: saved.take_submodule("ln")?,
            dropout: saved.take_submodule("dropout")?,
            layers: Layers::take(saved, "layers")?,
            pooler: saved.take_submodule("pooler")?,
            classifier: saved.take_submodule("classifier")?,
            _tensor_constant0: FromValue::from_value(saved.buffer("_tensor_constant0")?)?,
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
    /// `attention`.
    pub attention: SelfAttention,
    /// `attn_out`.
    pub attn_out: fx_nn::nn::Linear,
    /// `dropout`.
    pub dropout: fx_nn::nn::Dropout,
    /// `attn_ln`.
    pub attn_ln: fx_nn::nn::LayerNorm,
    /// `inter`.
    pub inter: fx_nn::nn::Linear,
    /// `out`.
    pub out: fx_nn::nn::Linear,
    /// `out_ln`.
    pub out_ln: fx_nn::nn::LayerNorm,
}

impl Layer {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layer {
            attention: SelfAttention::take(saved, &format!("{path}.attention"))?,
            attn_out: saved.take_submodule(&format!("{path}.attn_out"))?,
            dropout: saved.take_submodule(&format!("{path}.dropout"))?,
            attn_ln: saved.take_submodule(&format!("{path}.attn_ln"))?,
            inter: saved.take_submodule(&format!("{path}.inter"))?,
            out: saved.take_submodule(&format!("{path}.out"))?,
            out_ln: saved.take_submodule(&format!("{path}.out_ln"))?,
        })
    }
}

/// What is at `layers.0.attention`, `layers.1.attention`.
#[derive(Module)]
pub struct SelfAttention {
    /// `query`.
    pub query: fx_nn::nn::Linear,
    /// `key`.
    pub key: fx_nn::nn::Linear,
    /// `value`.
    pub value: fx_nn::nn::Linear,
    /// `dropout`.
    pub dropout: fx_nn::nn::Dropout,
}

impl SelfAttention {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(SelfAttention {
            query: saved.take_submodule(&format!("{path}.query"))?,
            key: saved.take_submodule(&format!("{path}.key"))?,
            value: saved.take_submodule(&format!("{path}.value"))?,
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
    pub fn forward(&self, input_ids: &Tensor, attention_mask: &Tensor, token_type_ids: &Tensor) -> Result<(Tensor, Tensor)> {
        let unsqueeze = attention_mask.unsqueeze(1)?;
        let unsqueeze_1 = unsqueeze.unsqueeze(2)?;  drop(unsqueeze);
        let sub = (1.0 - &unsqueeze_1)?;  drop(unsqueeze_1);
        let mul = (&sub * -10000.0)?;  drop(sub);
        let word = self.word.forward(input_ids)?;
        // position: Embedding
        let _tensor_constant0 = &self._tensor_constant0;
        // Bert
        let position = self.position.forward(_tensor_constant0)?;
        let add = (&word + &position)?;  drop(word); drop(position);
        let token_type = self.token_type.forward(token_type_ids)?;
        let add_1 = (&add + &token_type)?;  drop(add); drop(token_type);
        let ln = self.ln.forward(&add_1)?;  drop(add_1);
        let dropout = self.dropout.forward(&ln)?;  drop(ln);
        // layers.0.attention: SelfAttention
        let layers_0_attention_query = self.layers.0.attention.query.forward(&dropout)?;
        let size = layers_0_attention_query.sizes()?;
        let getitem = size.slice(None, -1)?;  drop(size);
        let add_2 = getitem.concat(vec![Int::from(4), Int::from(12)])?;  drop(getitem);
        let view = layers_0_attention_query.view(add_2.clone())?;  drop(layers_0_attention_query); drop(add_2);
        let permute = view.permute((0, 2, 1, 3))?;  drop(view);
        let layers_0_attention_key = self.layers.0.attention.key.forward(&dropout)?;
        let size_1 = layers_0_attention_key.sizes()?;
        let getitem_1 = size_1.slice(None, -1)?;  drop(size_1);
        let add_3 = getitem_1.concat(vec![Int::from(4), Int::from(12)])?;  drop(getitem_1);
        let view_1 = layers_0_attention_key.view(add_3.clone())?;  drop(layers_0_attention_key); drop(add_3);
        let permute_1 = view_1.permute((0, 2, 1, 3))?;  drop(view_1);
        let layers_0_attention_value = self.layers.0.attention.value.forward(&dropout)?;
        let size_2 = layers_0_attention_value.sizes()?;
        let getitem_2 = size_2.slice(None, -1)?;  drop(size_2);
        let add_4 = getitem_2.concat(vec![Int::from(4), Int::from(12)])?;  drop(getitem_2);
        let view_2 = layers_0_attention_value.view(add_4.clone())?;  drop(layers_0_attention_value); drop(add_4);
        let permute_2 = view_2.permute((0, 2, 1, 3))?;  drop(view_2);
        let transpose = permute_1.transpose(-1, -2)?;  drop(permute_1);
        let matmul = fx_nn::ops::matmul(&permute, &transpose)?;  drop(permute); drop(transpose);
        let truediv = (&matmul / 3.4641016151377544)?;  drop(matmul);
        let add_5 = (&truediv + &mul)?;  drop(truediv);
        let softmax = fx_nn::ops::softmax(&add_5, -1)?;  drop(add_5);
        let layers_0_attention_dropout = self.layers.0.attention.dropout.forward(&softmax)?;  drop(softmax);
        let matmul_1 = fx_nn::ops::matmul(&layers_0_attention_dropout, &permute_2)?;  drop(layers_0_attention_dropout); drop(permute_2);
        let permute_3 = matmul_1.permute((0, 2, 1, 3))?;  drop(matmul_1);
        let contiguous = permute_3.contiguous()?;  drop(permute_3);
        let size_3 = contiguous.sizes()?;
        let getitem_3 = size_3.slice(None, -2)?;  drop(size_3);
        let add_6 = getitem_3.concat(vec![Int::from(48)])?;  drop(getitem_3);
        let view_3 = contiguous.view(add_6.clone())?;  drop(contiguous); drop(add_6);
        // layers.0: Layer
        let layers_0_attn_out = self.layers.0.attn_out.forward(&view_3)?;  drop(view_3);
        let layers_0_dropout = self.layers.0.dropout.forward(&layers_0_attn_out)?;  drop(layers_0_attn_out);
        let add_7 = (&layers_0_dropout + &dropout)?;  drop(layers_0_dropout); drop(dropout);
        let layers_0_attn_ln = self.layers.0.attn_ln.forward(&add_7)?;  drop(add_7);
        let layers_0_inter = self.layers.0.inter.forward(&layers_0_attn_ln)?;
        let gelu = fx_nn::ops::gelu(&layers_0_inter, "none")?;  drop(layers_0_inter);
        let layers_0_out = self.layers.0.out.forward(&gelu)?;  drop(gelu);
        let layers_0_dropout_1 = self.layers.0.dropout.forward(&layers_0_out)?;  drop(layers_0_out);
        let add_8 = (&layers_0_dropout_1 + &layers_0_attn_ln)?;  drop(layers_0_dropout_1); drop(layers_0_attn_ln);
        let layers_0_out_ln = self.layers.0.out_ln.forward(&add_8)?;  drop(add_8);
        // layers.1.attention: SelfAttention
        let layers_1_attention_query = self.layers.1.attention.query.forward(&layers_0_out_ln)?;
        let size_4 = layers_1_attention_query.sizes()?;
        let getitem_4 = size_4.slice(None, -1)?;  drop(size_4);
        let add_9 = getitem_4.concat(vec![Int::from(4), Int::from(12)])?;  drop(getitem_4);
        let view_4 = layers_1_attention_query.view(add_9.clone())?;  drop(layers_1_attention_query); drop(add_9);
        let permute_4 = view_4.permute((0, 2, 1, 3))?;  drop(view_4);
        let layers_1_attention_key = self.layers.1.attention.key.forward(&layers_0_out_ln)?;
        let size_5 = layers_1_attention_key.sizes()?;
        let getitem_5 = size_5.slice(None, -1)?;  drop(size_5);
        let add_10 = getitem_5.concat(vec![Int::from(4), Int::from(12)])?;  drop(getitem_5);
        let view_5 = layers_1_attention_key.view(add_10.clone())?;  drop(layers_1_attention_key); drop(add_10);
        let permute_5 = view_5.permute((0, 2, 1, 3))?;  drop(view_5);
        let layers_1_attention_value = self.layers.1.attention.value.forward(&layers_0_out_ln)?;
        let size_6 = layers_1_attention_value.sizes()?;
        let getitem_6 = size_6.slice(None, -1)?;  drop(size_6);
        let add_11 = getitem_6.concat(vec![Int::from(4), Int::from(12)])?;  drop(getitem_6);
        let view_6 = layers_1_attention_value.view(add_11.clone())?;  drop(layers_1_attention_value); drop(add_11);
        let permute_6 = view_6.permute((0, 2, 1, 3))?;  drop(view_6);
        let transpose_1 = permute_5.transpose(-1, -2)?;  drop(permute_5);
        let matmul_2 = fx_nn::ops::matmul(&permute_4, &transpose_1)?;  drop(permute_4); drop(transpose_1);
        let truediv_1 = (&matmul_2 / 3.4641016151377544)?;  drop(matmul_2);
        let add_12 = (&truediv_1 + &mul)?;  drop(truediv_1); drop(mul);
        let softmax_1 = fx_nn::ops::softmax(&add_12, -1)?;  drop(add_12);
        let layers_1_attention_dropout = self.layers.1.attention.dropout.forward(&softmax_1)?;  drop(softmax_1);
        let matmul_3 = fx_nn::ops::matmul(&layers_1_attention_dropout, &permute_6)?;  drop(layers_1_attention_dropout); drop(permute_6);
        let permute_7 = matmul_3.permute((0, 2, 1, 3))?;  drop(matmul_3);
        let contiguous_1 = permute_7.contiguous()?;  drop(permute_7);
        let size_7 = contiguous_1.sizes()?;
        let getitem_7 = size_7.slice(None, -2)?;  drop(size_7);
        let add_13 = getitem_7.concat(vec![Int::from(48)])?;  drop(getitem_7);
        let view_7 = contiguous_1.view(add_13.clone())?;  drop(contiguous_1); drop(add_13);
        // layers.1: Layer
        let layers_1_attn_out = self.layers.1.attn_out.forward(&view_7)?;  drop(view_7);
        let layers_1_dropout = self.layers.1.dropout.forward(&layers_1_attn_out)?;  drop(layers_1_attn_out);
        let add_14 = (&layers_1_dropout + &layers_0_out_ln)?;  drop(layers_1_dropout); drop(layers_0_out_ln);
        let layers_1_attn_ln = self.layers.1.attn_ln.forward(&add_14)?;  drop(add_14);
        let layers_1_inter = self.layers.1.inter.forward(&layers_1_attn_ln)?;
        let gelu_1 = fx_nn::ops::gelu(&layers_1_inter, "none")?;  drop(layers_1_inter);
        let layers_1_out = self.layers.1.out.forward(&gelu_1)?;  drop(gelu_1);
        let layers_1_dropout_1 = self.layers.1.dropout.forward(&layers_1_out)?;  drop(layers_1_out);
        let add_15 = (&layers_1_dropout_1 + &layers_1_attn_ln)?;  drop(layers_1_dropout_1); drop(layers_1_attn_ln);
        let layers_1_out_ln = self.layers.1.out_ln.forward(&add_15)?;  drop(add_15);
        // Bert
        let getitem_8 = layers_1_out_ln.i((.., 0))?;
        let pooler = self.pooler.forward(&getitem_8)?;  drop(getitem_8);
        let tanh = fx_nn::ops::tanh(&pooler)?;  drop(pooler);
        let classifier = self.classifier.forward(&tanh)?;  drop(tanh);
        Ok((classifier, layers_1_out_ln))
    }
}
