//! `Generated`, generated from a traced graph of 236 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `conv_proj`.
    pub conv_proj: fx_nn::nn::Conv2d,
    /// `encoder`.
    pub encoder: Encoder,
    /// `heads`.
    pub heads: Heads,
    /// `class_token`.
    pub class_token: Tensor,
}

impl Generated {
    /// Takes the layers and weights out of a graph module that has them.
    ///
    /// # Errors
    /// When it does not have them all.
    pub fn take(saved: &mut GraphModule) -> Result<Self> {
        Ok(Generated {
            conv_proj: saved.take_submodule("conv_proj")?,
            encoder: Encoder::take(saved, "encoder")?,
            heads: Heads::take(saved, "heads")?,
            class_token: FromValue::from_value(saved.parameter("class_token")?)?,
        })
    }
}

/// What is at `encoder`.
#[derive(Module)]
pub struct Encoder {
    /// `dropout`.
    pub dropout: fx_nn::nn::Dropout,
    /// `layers`.
    pub layers: Layers,
    /// `ln`.
    pub ln: fx_nn::nn::LayerNorm,
    /// `pos_embedding`.
    pub pos_embedding: Tensor,
}

impl Encoder {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Encoder {
            dropout: saved.take_submodule(&format!("{path}.dropout"))?,
            layers: Layers::take(saved, &format!("{path}.layers"))?,
            ln: saved.take_submodule(&format!("{path}.ln"))?,
            pos_embedding: FromValue::from_value(saved.parameter(&format!("{path}.pos_embedding"))?)?,
        })
    }
}

/// What is at `encoder.layers`.
#[derive(Module)]
pub struct Layers {
    /// `encoder_layer_0`.
    pub encoder_layer_0: EncoderBlock,
    /// `encoder_layer_1`.
    pub encoder_layer_1: EncoderBlock,
    /// `encoder_layer_2`.
    pub encoder_layer_2: EncoderBlock,
    /// `encoder_layer_3`.
    pub encoder_layer_3: EncoderBlock,
    /// `encoder_layer_4`.
    pub encoder_layer_4: EncoderBlock,
    /// `encoder_layer_5`.
    pub encoder_layer_5: EncoderBlock,
    /// `encoder_layer_6`.
    pub encoder_layer_6: EncoderBlock,
    /// `encoder_layer_7`.
    pub encoder_layer_7: EncoderBlock,
    /// `encoder_layer_8`.
    pub encoder_layer_8: EncoderBlock,
    /// `encoder_layer_9`.
    pub encoder_layer_9: EncoderBlock,
    /// `encoder_layer_10`.
    pub encoder_layer_10: EncoderBlock,
    /// `encoder_layer_11`.
    pub encoder_layer_11: EncoderBlock,
}

impl Layers {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Layers {
            encoder_layer_0: EncoderBlock::take(saved, &format!("{path}.encoder_layer_0"))?,
            encoder_layer_1: EncoderBlock::take(saved, &format!("{path}.encoder_layer_1"))?,
            encoder_layer_2: EncoderBlock::take(saved, &format!("{path}.encoder_layer_2"))?,
            encoder_layer_3: EncoderBlock::take(saved, &format!("{path}.encoder_layer_3"))?,
            encoder_layer_4: EncoderBlock::take(saved, &format!("{path}.encoder_layer_4"))?,
            encoder_layer_5: EncoderBlock::take(saved, &format!("{path}.encoder_layer_5"))?,
            encoder_layer_6: EncoderBlock::take(saved, &format!("{path}.encoder_layer_6"))?,
            encoder_layer_7: EncoderBlock::take(saved, &format!("{path}.encoder_layer_7"))?,
            encoder_layer_8: EncoderBlock::take(saved, &format!("{path}.encoder_layer_8"))?,
            encoder_layer_9: EncoderBlock::take(saved, &format!("{path}.encoder_layer_9"))?,
            encoder_layer_10: EncoderBlock::take(saved, &format!("{path}.encoder_layer_10"))?,
            encoder_layer_11: EncoderBlock::take(saved, &format!("{path}.encoder_layer_11"))?,
        })
    }
}

/// What is at `encoder.layers.encoder_layer_0`, `encoder.layers.encoder_layer_1`, `encoder.layers.encoder_layer_2`, `encoder.layers.encoder_layer_3` and 8 more places.
#[derive(Module)]
pub struct EncoderBlock {
    /// `ln_1`.
    pub ln_1: fx_nn::nn::LayerNorm,
    /// `self_attention`.
    pub self_attention: fx_nn::nn::MultiheadAttention,
    /// `dropout`.
    pub dropout: fx_nn::nn::Dropout,
    /// `ln_2`.
    pub ln_2: fx_nn::nn::LayerNorm,
    /// `mlp`.
    pub mlp: Sequential,
}

impl EncoderBlock {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(EncoderBlock {
            ln_1: saved.take_submodule(&format!("{path}.ln_1"))?,
            self_attention: saved.take_submodule(&format!("{path}.self_attention"))?,
            dropout: saved.take_submodule(&format!("{path}.dropout"))?,
            ln_2: saved.take_submodule(&format!("{path}.ln_2"))?,
            mlp: Sequential::take(saved, &format!("{path}.mlp"))?,
        })
    }
}

/// What is at `encoder.layers.encoder_layer_0.mlp`, `encoder.layers.encoder_layer_1.mlp`, `encoder.layers.encoder_layer_2.mlp`, `encoder.layers.encoder_layer_3.mlp` and 8 more places.
#[derive(Module)]
pub struct Sequential(pub fx_nn::nn::Linear, pub fx_nn::nn::GELU, pub fx_nn::nn::Dropout, pub fx_nn::nn::Linear, pub fx_nn::nn::Dropout);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
            saved.take_submodule(&format!("{path}.2"))?,
            saved.take_submodule(&format!("{path}.3"))?,
            saved.take_submodule(&format!("{path}.4"))?,
        ))
    }
}

/// What is at `heads`.
#[derive(Module)]
pub struct Heads {
    /// `head`.
    pub head: fx_nn::nn::Linear,
}

impl Heads {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Heads {
            head: saved.take_submodule(&format!("{path}.head"))?,
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
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let getattr = x.shape()?;
        let getitem = getattr.get(0)?;
        getattr.get(1)?;
        let getitem_2 = getattr.get(2)?;
        let getitem_3 = getattr.get(3)?;  drop(getattr);
        let eq = (getitem_2 == 64)?;
        assert!(eq, "Wrong image height! Expected 64 but got Proxy(getitem_2)!");
        let eq_1 = (getitem_3 == 64)?;
        assert!(eq_1, "Wrong image width! Expected 64 but got Proxy(getitem_3)!");
        let floordiv = getitem_2.floordiv(16)?;
        let floordiv_1 = getitem_3.floordiv(16)?;
        let conv_proj = self.conv_proj.forward(x)?;
        let mul = (floordiv * floordiv_1)?;
        let reshape = conv_proj.reshape((getitem, 768, mul))?;  drop(conv_proj);
        let permute = reshape.permute((0, 2, 1))?;  drop(reshape);
        let getattr_1 = permute.shape()?;
        let getitem_4 = getattr_1.get(0)?;  drop(getattr_1);
        let class_token = &self.class_token;
        let expand = class_token.expand((getitem_4, -1, -1))?;
        let cat = fx_nn::ops::cat(&[expand.clone(), permute.clone()], 1)?;  drop(expand); drop(permute);
        // encoder: Encoder
        let dim = cat.dim()?;
        let eq_2 = (dim == 3)?;
        cat.shape()?;
        assert!(eq_2, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_2)");
        let encoder_pos_embedding = &self.encoder.pos_embedding;
        let add = (&cat + encoder_pos_embedding)?;  drop(cat);
        let encoder_dropout = self.encoder.dropout.forward(&add)?;  drop(add);
        // encoder.layers.encoder_layer_0: EncoderBlock
        let dim_1 = encoder_dropout.dim()?;
        let eq_3 = (dim_1 == 3)?;
        encoder_dropout.shape()?;
        assert!(eq_3, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_3)");
        let encoder_layers_encoder_layer_0_ln_1 = self.encoder.layers.encoder_layer_0.ln_1.forward(&encoder_dropout)?;
        let encoder_layers_encoder_layer_0_self_attention = self.encoder.layers.encoder_layer_0.self_attention.forward(&encoder_layers_encoder_layer_0_ln_1, &encoder_layers_encoder_layer_0_ln_1, &encoder_layers_encoder_layer_0_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_0_ln_1);
        let getitem_5 = encoder_layers_encoder_layer_0_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_0_self_attention);
        let encoder_layers_encoder_layer_0_dropout = self.encoder.layers.encoder_layer_0.dropout.forward(&getitem_5)?;  drop(getitem_5);
        let add_1 = (&encoder_layers_encoder_layer_0_dropout + &encoder_dropout)?;  drop(encoder_layers_encoder_layer_0_dropout); drop(encoder_dropout);
        let encoder_layers_encoder_layer_0_ln_2 = self.encoder.layers.encoder_layer_0.ln_2.forward(&add_1)?;
        // encoder.layers.encoder_layer_0.mlp: Sequential
        let encoder_layers_encoder_layer_0_mlp_0 = self.encoder.layers.encoder_layer_0.mlp.0.forward(&encoder_layers_encoder_layer_0_ln_2)?;  drop(encoder_layers_encoder_layer_0_ln_2);
        let encoder_layers_encoder_layer_0_mlp_1 = self.encoder.layers.encoder_layer_0.mlp.1.forward(&encoder_layers_encoder_layer_0_mlp_0)?;  drop(encoder_layers_encoder_layer_0_mlp_0);
        let encoder_layers_encoder_layer_0_mlp_2 = self.encoder.layers.encoder_layer_0.mlp.2.forward(&encoder_layers_encoder_layer_0_mlp_1)?;  drop(encoder_layers_encoder_layer_0_mlp_1);
        let encoder_layers_encoder_layer_0_mlp_3 = self.encoder.layers.encoder_layer_0.mlp.3.forward(&encoder_layers_encoder_layer_0_mlp_2)?;  drop(encoder_layers_encoder_layer_0_mlp_2);
        let encoder_layers_encoder_layer_0_mlp_4 = self.encoder.layers.encoder_layer_0.mlp.4.forward(&encoder_layers_encoder_layer_0_mlp_3)?;  drop(encoder_layers_encoder_layer_0_mlp_3);
        // encoder.layers.encoder_layer_0: EncoderBlock
        let add_2 = (&add_1 + &encoder_layers_encoder_layer_0_mlp_4)?;  drop(add_1); drop(encoder_layers_encoder_layer_0_mlp_4);
        // encoder.layers.encoder_layer_1: EncoderBlock
        let dim_2 = add_2.dim()?;
        let eq_4 = (dim_2 == 3)?;
        add_2.shape()?;
        assert!(eq_4, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_4)");
        let encoder_layers_encoder_layer_1_ln_1 = self.encoder.layers.encoder_layer_1.ln_1.forward(&add_2)?;
        let encoder_layers_encoder_layer_1_self_attention = self.encoder.layers.encoder_layer_1.self_attention.forward(&encoder_layers_encoder_layer_1_ln_1, &encoder_layers_encoder_layer_1_ln_1, &encoder_layers_encoder_layer_1_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_1_ln_1);
        let getitem_7 = encoder_layers_encoder_layer_1_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_1_self_attention);
        let encoder_layers_encoder_layer_1_dropout = self.encoder.layers.encoder_layer_1.dropout.forward(&getitem_7)?;  drop(getitem_7);
        let add_3 = (&encoder_layers_encoder_layer_1_dropout + &add_2)?;  drop(encoder_layers_encoder_layer_1_dropout); drop(add_2);
        let encoder_layers_encoder_layer_1_ln_2 = self.encoder.layers.encoder_layer_1.ln_2.forward(&add_3)?;
        // encoder.layers.encoder_layer_1.mlp: Sequential
        let encoder_layers_encoder_layer_1_mlp_0 = self.encoder.layers.encoder_layer_1.mlp.0.forward(&encoder_layers_encoder_layer_1_ln_2)?;  drop(encoder_layers_encoder_layer_1_ln_2);
        let encoder_layers_encoder_layer_1_mlp_1 = self.encoder.layers.encoder_layer_1.mlp.1.forward(&encoder_layers_encoder_layer_1_mlp_0)?;  drop(encoder_layers_encoder_layer_1_mlp_0);
        let encoder_layers_encoder_layer_1_mlp_2 = self.encoder.layers.encoder_layer_1.mlp.2.forward(&encoder_layers_encoder_layer_1_mlp_1)?;  drop(encoder_layers_encoder_layer_1_mlp_1);
        let encoder_layers_encoder_layer_1_mlp_3 = self.encoder.layers.encoder_layer_1.mlp.3.forward(&encoder_layers_encoder_layer_1_mlp_2)?;  drop(encoder_layers_encoder_layer_1_mlp_2);
        let encoder_layers_encoder_layer_1_mlp_4 = self.encoder.layers.encoder_layer_1.mlp.4.forward(&encoder_layers_encoder_layer_1_mlp_3)?;  drop(encoder_layers_encoder_layer_1_mlp_3);
        // encoder.layers.encoder_layer_1: EncoderBlock
        let add_4 = (&add_3 + &encoder_layers_encoder_layer_1_mlp_4)?;  drop(add_3); drop(encoder_layers_encoder_layer_1_mlp_4);
        // encoder.layers.encoder_layer_2: EncoderBlock
        let dim_3 = add_4.dim()?;
        let eq_5 = (dim_3 == 3)?;
        add_4.shape()?;
        assert!(eq_5, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_5)");
        let encoder_layers_encoder_layer_2_ln_1 = self.encoder.layers.encoder_layer_2.ln_1.forward(&add_4)?;
        let encoder_layers_encoder_layer_2_self_attention = self.encoder.layers.encoder_layer_2.self_attention.forward(&encoder_layers_encoder_layer_2_ln_1, &encoder_layers_encoder_layer_2_ln_1, &encoder_layers_encoder_layer_2_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_2_ln_1);
        let getitem_9 = encoder_layers_encoder_layer_2_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_2_self_attention);
        let encoder_layers_encoder_layer_2_dropout = self.encoder.layers.encoder_layer_2.dropout.forward(&getitem_9)?;  drop(getitem_9);
        let add_5 = (&encoder_layers_encoder_layer_2_dropout + &add_4)?;  drop(encoder_layers_encoder_layer_2_dropout); drop(add_4);
        let encoder_layers_encoder_layer_2_ln_2 = self.encoder.layers.encoder_layer_2.ln_2.forward(&add_5)?;
        // encoder.layers.encoder_layer_2.mlp: Sequential
        let encoder_layers_encoder_layer_2_mlp_0 = self.encoder.layers.encoder_layer_2.mlp.0.forward(&encoder_layers_encoder_layer_2_ln_2)?;  drop(encoder_layers_encoder_layer_2_ln_2);
        let encoder_layers_encoder_layer_2_mlp_1 = self.encoder.layers.encoder_layer_2.mlp.1.forward(&encoder_layers_encoder_layer_2_mlp_0)?;  drop(encoder_layers_encoder_layer_2_mlp_0);
        let encoder_layers_encoder_layer_2_mlp_2 = self.encoder.layers.encoder_layer_2.mlp.2.forward(&encoder_layers_encoder_layer_2_mlp_1)?;  drop(encoder_layers_encoder_layer_2_mlp_1);
        let encoder_layers_encoder_layer_2_mlp_3 = self.encoder.layers.encoder_layer_2.mlp.3.forward(&encoder_layers_encoder_layer_2_mlp_2)?;  drop(encoder_layers_encoder_layer_2_mlp_2);
        let encoder_layers_encoder_layer_2_mlp_4 = self.encoder.layers.encoder_layer_2.mlp.4.forward(&encoder_layers_encoder_layer_2_mlp_3)?;  drop(encoder_layers_encoder_layer_2_mlp_3);
        // encoder.layers.encoder_layer_2: EncoderBlock
        let add_6 = (&add_5 + &encoder_layers_encoder_layer_2_mlp_4)?;  drop(add_5); drop(encoder_layers_encoder_layer_2_mlp_4);
        // encoder.layers.encoder_layer_3: EncoderBlock
        let dim_4 = add_6.dim()?;
        let eq_6 = (dim_4 == 3)?;
        add_6.shape()?;
        assert!(eq_6, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_6)");
        let encoder_layers_encoder_layer_3_ln_1 = self.encoder.layers.encoder_layer_3.ln_1.forward(&add_6)?;
        let encoder_layers_encoder_layer_3_self_attention = self.encoder.layers.encoder_layer_3.self_attention.forward(&encoder_layers_encoder_layer_3_ln_1, &encoder_layers_encoder_layer_3_ln_1, &encoder_layers_encoder_layer_3_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_3_ln_1);
        let getitem_11 = encoder_layers_encoder_layer_3_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_3_self_attention);
        let encoder_layers_encoder_layer_3_dropout = self.encoder.layers.encoder_layer_3.dropout.forward(&getitem_11)?;  drop(getitem_11);
        let add_7 = (&encoder_layers_encoder_layer_3_dropout + &add_6)?;  drop(encoder_layers_encoder_layer_3_dropout); drop(add_6);
        let encoder_layers_encoder_layer_3_ln_2 = self.encoder.layers.encoder_layer_3.ln_2.forward(&add_7)?;
        // encoder.layers.encoder_layer_3.mlp: Sequential
        let encoder_layers_encoder_layer_3_mlp_0 = self.encoder.layers.encoder_layer_3.mlp.0.forward(&encoder_layers_encoder_layer_3_ln_2)?;  drop(encoder_layers_encoder_layer_3_ln_2);
        let encoder_layers_encoder_layer_3_mlp_1 = self.encoder.layers.encoder_layer_3.mlp.1.forward(&encoder_layers_encoder_layer_3_mlp_0)?;  drop(encoder_layers_encoder_layer_3_mlp_0);
        let encoder_layers_encoder_layer_3_mlp_2 = self.encoder.layers.encoder_layer_3.mlp.2.forward(&encoder_layers_encoder_layer_3_mlp_1)?;  drop(encoder_layers_encoder_layer_3_mlp_1);
        let encoder_layers_encoder_layer_3_mlp_3 = self.encoder.layers.encoder_layer_3.mlp.3.forward(&encoder_layers_encoder_layer_3_mlp_2)?;  drop(encoder_layers_encoder_layer_3_mlp_2);
        let encoder_layers_encoder_layer_3_mlp_4 = self.encoder.layers.encoder_layer_3.mlp.4.forward(&encoder_layers_encoder_layer_3_mlp_3)?;  drop(encoder_layers_encoder_layer_3_mlp_3);
        // encoder.layers.encoder_layer_3: EncoderBlock
        let add_8 = (&add_7 + &encoder_layers_encoder_layer_3_mlp_4)?;  drop(add_7); drop(encoder_layers_encoder_layer_3_mlp_4);
        // encoder.layers.encoder_layer_4: EncoderBlock
        let dim_5 = add_8.dim()?;
        let eq_7 = (dim_5 == 3)?;
        add_8.shape()?;
        assert!(eq_7, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_7)");
        let encoder_layers_encoder_layer_4_ln_1 = self.encoder.layers.encoder_layer_4.ln_1.forward(&add_8)?;
        let encoder_layers_encoder_layer_4_self_attention = self.encoder.layers.encoder_layer_4.self_attention.forward(&encoder_layers_encoder_layer_4_ln_1, &encoder_layers_encoder_layer_4_ln_1, &encoder_layers_encoder_layer_4_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_4_ln_1);
        let getitem_13 = encoder_layers_encoder_layer_4_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_4_self_attention);
        let encoder_layers_encoder_layer_4_dropout = self.encoder.layers.encoder_layer_4.dropout.forward(&getitem_13)?;  drop(getitem_13);
        let add_9 = (&encoder_layers_encoder_layer_4_dropout + &add_8)?;  drop(encoder_layers_encoder_layer_4_dropout); drop(add_8);
        let encoder_layers_encoder_layer_4_ln_2 = self.encoder.layers.encoder_layer_4.ln_2.forward(&add_9)?;
        // encoder.layers.encoder_layer_4.mlp: Sequential
        let encoder_layers_encoder_layer_4_mlp_0 = self.encoder.layers.encoder_layer_4.mlp.0.forward(&encoder_layers_encoder_layer_4_ln_2)?;  drop(encoder_layers_encoder_layer_4_ln_2);
        let encoder_layers_encoder_layer_4_mlp_1 = self.encoder.layers.encoder_layer_4.mlp.1.forward(&encoder_layers_encoder_layer_4_mlp_0)?;  drop(encoder_layers_encoder_layer_4_mlp_0);
        let encoder_layers_encoder_layer_4_mlp_2 = self.encoder.layers.encoder_layer_4.mlp.2.forward(&encoder_layers_encoder_layer_4_mlp_1)?;  drop(encoder_layers_encoder_layer_4_mlp_1);
        let encoder_layers_encoder_layer_4_mlp_3 = self.encoder.layers.encoder_layer_4.mlp.3.forward(&encoder_layers_encoder_layer_4_mlp_2)?;  drop(encoder_layers_encoder_layer_4_mlp_2);
        let encoder_layers_encoder_layer_4_mlp_4 = self.encoder.layers.encoder_layer_4.mlp.4.forward(&encoder_layers_encoder_layer_4_mlp_3)?;  drop(encoder_layers_encoder_layer_4_mlp_3);
        // encoder.layers.encoder_layer_4: EncoderBlock
        let add_10 = (&add_9 + &encoder_layers_encoder_layer_4_mlp_4)?;  drop(add_9); drop(encoder_layers_encoder_layer_4_mlp_4);
        // encoder.layers.encoder_layer_5: EncoderBlock
        let dim_6 = add_10.dim()?;
        let eq_8 = (dim_6 == 3)?;
        add_10.shape()?;
        assert!(eq_8, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_8)");
        let encoder_layers_encoder_layer_5_ln_1 = self.encoder.layers.encoder_layer_5.ln_1.forward(&add_10)?;
        let encoder_layers_encoder_layer_5_self_attention = self.encoder.layers.encoder_layer_5.self_attention.forward(&encoder_layers_encoder_layer_5_ln_1, &encoder_layers_encoder_layer_5_ln_1, &encoder_layers_encoder_layer_5_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_5_ln_1);
        let getitem_15 = encoder_layers_encoder_layer_5_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_5_self_attention);
        let encoder_layers_encoder_layer_5_dropout = self.encoder.layers.encoder_layer_5.dropout.forward(&getitem_15)?;  drop(getitem_15);
        let add_11 = (&encoder_layers_encoder_layer_5_dropout + &add_10)?;  drop(encoder_layers_encoder_layer_5_dropout); drop(add_10);
        let encoder_layers_encoder_layer_5_ln_2 = self.encoder.layers.encoder_layer_5.ln_2.forward(&add_11)?;
        // encoder.layers.encoder_layer_5.mlp: Sequential
        let encoder_layers_encoder_layer_5_mlp_0 = self.encoder.layers.encoder_layer_5.mlp.0.forward(&encoder_layers_encoder_layer_5_ln_2)?;  drop(encoder_layers_encoder_layer_5_ln_2);
        let encoder_layers_encoder_layer_5_mlp_1 = self.encoder.layers.encoder_layer_5.mlp.1.forward(&encoder_layers_encoder_layer_5_mlp_0)?;  drop(encoder_layers_encoder_layer_5_mlp_0);
        let encoder_layers_encoder_layer_5_mlp_2 = self.encoder.layers.encoder_layer_5.mlp.2.forward(&encoder_layers_encoder_layer_5_mlp_1)?;  drop(encoder_layers_encoder_layer_5_mlp_1);
        let encoder_layers_encoder_layer_5_mlp_3 = self.encoder.layers.encoder_layer_5.mlp.3.forward(&encoder_layers_encoder_layer_5_mlp_2)?;  drop(encoder_layers_encoder_layer_5_mlp_2);
        let encoder_layers_encoder_layer_5_mlp_4 = self.encoder.layers.encoder_layer_5.mlp.4.forward(&encoder_layers_encoder_layer_5_mlp_3)?;  drop(encoder_layers_encoder_layer_5_mlp_3);
        // encoder.layers.encoder_layer_5: EncoderBlock
        let add_12 = (&add_11 + &encoder_layers_encoder_layer_5_mlp_4)?;  drop(add_11); drop(encoder_layers_encoder_layer_5_mlp_4);
        // encoder.layers.encoder_layer_6: EncoderBlock
        let dim_7 = add_12.dim()?;
        let eq_9 = (dim_7 == 3)?;
        add_12.shape()?;
        assert!(eq_9, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_9)");
        let encoder_layers_encoder_layer_6_ln_1 = self.encoder.layers.encoder_layer_6.ln_1.forward(&add_12)?;
        let encoder_layers_encoder_layer_6_self_attention = self.encoder.layers.encoder_layer_6.self_attention.forward(&encoder_layers_encoder_layer_6_ln_1, &encoder_layers_encoder_layer_6_ln_1, &encoder_layers_encoder_layer_6_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_6_ln_1);
        let getitem_17 = encoder_layers_encoder_layer_6_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_6_self_attention);
        let encoder_layers_encoder_layer_6_dropout = self.encoder.layers.encoder_layer_6.dropout.forward(&getitem_17)?;  drop(getitem_17);
        let add_13 = (&encoder_layers_encoder_layer_6_dropout + &add_12)?;  drop(encoder_layers_encoder_layer_6_dropout); drop(add_12);
        let encoder_layers_encoder_layer_6_ln_2 = self.encoder.layers.encoder_layer_6.ln_2.forward(&add_13)?;
        // encoder.layers.encoder_layer_6.mlp: Sequential
        let encoder_layers_encoder_layer_6_mlp_0 = self.encoder.layers.encoder_layer_6.mlp.0.forward(&encoder_layers_encoder_layer_6_ln_2)?;  drop(encoder_layers_encoder_layer_6_ln_2);
        let encoder_layers_encoder_layer_6_mlp_1 = self.encoder.layers.encoder_layer_6.mlp.1.forward(&encoder_layers_encoder_layer_6_mlp_0)?;  drop(encoder_layers_encoder_layer_6_mlp_0);
        let encoder_layers_encoder_layer_6_mlp_2 = self.encoder.layers.encoder_layer_6.mlp.2.forward(&encoder_layers_encoder_layer_6_mlp_1)?;  drop(encoder_layers_encoder_layer_6_mlp_1);
        let encoder_layers_encoder_layer_6_mlp_3 = self.encoder.layers.encoder_layer_6.mlp.3.forward(&encoder_layers_encoder_layer_6_mlp_2)?;  drop(encoder_layers_encoder_layer_6_mlp_2);
        let encoder_layers_encoder_layer_6_mlp_4 = self.encoder.layers.encoder_layer_6.mlp.4.forward(&encoder_layers_encoder_layer_6_mlp_3)?;  drop(encoder_layers_encoder_layer_6_mlp_3);
        // encoder.layers.encoder_layer_6: EncoderBlock
        let add_14 = (&add_13 + &encoder_layers_encoder_layer_6_mlp_4)?;  drop(add_13); drop(encoder_layers_encoder_layer_6_mlp_4);
        // encoder.layers.encoder_layer_7: EncoderBlock
        let dim_8 = add_14.dim()?;
        let eq_10 = (dim_8 == 3)?;
        add_14.shape()?;
        assert!(eq_10, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_10)");
        let encoder_layers_encoder_layer_7_ln_1 = self.encoder.layers.encoder_layer_7.ln_1.forward(&add_14)?;
        let encoder_layers_encoder_layer_7_self_attention = self.encoder.layers.encoder_layer_7.self_attention.forward(&encoder_layers_encoder_layer_7_ln_1, &encoder_layers_encoder_layer_7_ln_1, &encoder_layers_encoder_layer_7_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_7_ln_1);
        let getitem_19 = encoder_layers_encoder_layer_7_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_7_self_attention);
        let encoder_layers_encoder_layer_7_dropout = self.encoder.layers.encoder_layer_7.dropout.forward(&getitem_19)?;  drop(getitem_19);
        let add_15 = (&encoder_layers_encoder_layer_7_dropout + &add_14)?;  drop(encoder_layers_encoder_layer_7_dropout); drop(add_14);
        let encoder_layers_encoder_layer_7_ln_2 = self.encoder.layers.encoder_layer_7.ln_2.forward(&add_15)?;
        // encoder.layers.encoder_layer_7.mlp: Sequential
        let encoder_layers_encoder_layer_7_mlp_0 = self.encoder.layers.encoder_layer_7.mlp.0.forward(&encoder_layers_encoder_layer_7_ln_2)?;  drop(encoder_layers_encoder_layer_7_ln_2);
        let encoder_layers_encoder_layer_7_mlp_1 = self.encoder.layers.encoder_layer_7.mlp.1.forward(&encoder_layers_encoder_layer_7_mlp_0)?;  drop(encoder_layers_encoder_layer_7_mlp_0);
        let encoder_layers_encoder_layer_7_mlp_2 = self.encoder.layers.encoder_layer_7.mlp.2.forward(&encoder_layers_encoder_layer_7_mlp_1)?;  drop(encoder_layers_encoder_layer_7_mlp_1);
        let encoder_layers_encoder_layer_7_mlp_3 = self.encoder.layers.encoder_layer_7.mlp.3.forward(&encoder_layers_encoder_layer_7_mlp_2)?;  drop(encoder_layers_encoder_layer_7_mlp_2);
        let encoder_layers_encoder_layer_7_mlp_4 = self.encoder.layers.encoder_layer_7.mlp.4.forward(&encoder_layers_encoder_layer_7_mlp_3)?;  drop(encoder_layers_encoder_layer_7_mlp_3);
        // encoder.layers.encoder_layer_7: EncoderBlock
        let add_16 = (&add_15 + &encoder_layers_encoder_layer_7_mlp_4)?;  drop(add_15); drop(encoder_layers_encoder_layer_7_mlp_4);
        // encoder.layers.encoder_layer_8: EncoderBlock
        let dim_9 = add_16.dim()?;
        let eq_11 = (dim_9 == 3)?;
        add_16.shape()?;
        assert!(eq_11, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_11)");
        let encoder_layers_encoder_layer_8_ln_1 = self.encoder.layers.encoder_layer_8.ln_1.forward(&add_16)?;
        let encoder_layers_encoder_layer_8_self_attention = self.encoder.layers.encoder_layer_8.self_attention.forward(&encoder_layers_encoder_layer_8_ln_1, &encoder_layers_encoder_layer_8_ln_1, &encoder_layers_encoder_layer_8_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_8_ln_1);
        let getitem_21 = encoder_layers_encoder_layer_8_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_8_self_attention);
        let encoder_layers_encoder_layer_8_dropout = self.encoder.layers.encoder_layer_8.dropout.forward(&getitem_21)?;  drop(getitem_21);
        let add_17 = (&encoder_layers_encoder_layer_8_dropout + &add_16)?;  drop(encoder_layers_encoder_layer_8_dropout); drop(add_16);
        let encoder_layers_encoder_layer_8_ln_2 = self.encoder.layers.encoder_layer_8.ln_2.forward(&add_17)?;
        // encoder.layers.encoder_layer_8.mlp: Sequential
        let encoder_layers_encoder_layer_8_mlp_0 = self.encoder.layers.encoder_layer_8.mlp.0.forward(&encoder_layers_encoder_layer_8_ln_2)?;  drop(encoder_layers_encoder_layer_8_ln_2);
        let encoder_layers_encoder_layer_8_mlp_1 = self.encoder.layers.encoder_layer_8.mlp.1.forward(&encoder_layers_encoder_layer_8_mlp_0)?;  drop(encoder_layers_encoder_layer_8_mlp_0);
        let encoder_layers_encoder_layer_8_mlp_2 = self.encoder.layers.encoder_layer_8.mlp.2.forward(&encoder_layers_encoder_layer_8_mlp_1)?;  drop(encoder_layers_encoder_layer_8_mlp_1);
        let encoder_layers_encoder_layer_8_mlp_3 = self.encoder.layers.encoder_layer_8.mlp.3.forward(&encoder_layers_encoder_layer_8_mlp_2)?;  drop(encoder_layers_encoder_layer_8_mlp_2);
        let encoder_layers_encoder_layer_8_mlp_4 = self.encoder.layers.encoder_layer_8.mlp.4.forward(&encoder_layers_encoder_layer_8_mlp_3)?;  drop(encoder_layers_encoder_layer_8_mlp_3);
        // encoder.layers.encoder_layer_8: EncoderBlock
        let add_18 = (&add_17 + &encoder_layers_encoder_layer_8_mlp_4)?;  drop(add_17); drop(encoder_layers_encoder_layer_8_mlp_4);
        // encoder.layers.encoder_layer_9: EncoderBlock
        let dim_10 = add_18.dim()?;
        let eq_12 = (dim_10 == 3)?;
        add_18.shape()?;
        assert!(eq_12, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_12)");
        let encoder_layers_encoder_layer_9_ln_1 = self.encoder.layers.encoder_layer_9.ln_1.forward(&add_18)?;
        let encoder_layers_encoder_layer_9_self_attention = self.encoder.layers.encoder_layer_9.self_attention.forward(&encoder_layers_encoder_layer_9_ln_1, &encoder_layers_encoder_layer_9_ln_1, &encoder_layers_encoder_layer_9_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_9_ln_1);
        let getitem_23 = encoder_layers_encoder_layer_9_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_9_self_attention);
        let encoder_layers_encoder_layer_9_dropout = self.encoder.layers.encoder_layer_9.dropout.forward(&getitem_23)?;  drop(getitem_23);
        let add_19 = (&encoder_layers_encoder_layer_9_dropout + &add_18)?;  drop(encoder_layers_encoder_layer_9_dropout); drop(add_18);
        let encoder_layers_encoder_layer_9_ln_2 = self.encoder.layers.encoder_layer_9.ln_2.forward(&add_19)?;
        // encoder.layers.encoder_layer_9.mlp: Sequential
        let encoder_layers_encoder_layer_9_mlp_0 = self.encoder.layers.encoder_layer_9.mlp.0.forward(&encoder_layers_encoder_layer_9_ln_2)?;  drop(encoder_layers_encoder_layer_9_ln_2);
        let encoder_layers_encoder_layer_9_mlp_1 = self.encoder.layers.encoder_layer_9.mlp.1.forward(&encoder_layers_encoder_layer_9_mlp_0)?;  drop(encoder_layers_encoder_layer_9_mlp_0);
        let encoder_layers_encoder_layer_9_mlp_2 = self.encoder.layers.encoder_layer_9.mlp.2.forward(&encoder_layers_encoder_layer_9_mlp_1)?;  drop(encoder_layers_encoder_layer_9_mlp_1);
        let encoder_layers_encoder_layer_9_mlp_3 = self.encoder.layers.encoder_layer_9.mlp.3.forward(&encoder_layers_encoder_layer_9_mlp_2)?;  drop(encoder_layers_encoder_layer_9_mlp_2);
        let encoder_layers_encoder_layer_9_mlp_4 = self.encoder.layers.encoder_layer_9.mlp.4.forward(&encoder_layers_encoder_layer_9_mlp_3)?;  drop(encoder_layers_encoder_layer_9_mlp_3);
        // encoder.layers.encoder_layer_9: EncoderBlock
        let add_20 = (&add_19 + &encoder_layers_encoder_layer_9_mlp_4)?;  drop(add_19); drop(encoder_layers_encoder_layer_9_mlp_4);
        // encoder.layers.encoder_layer_10: EncoderBlock
        let dim_11 = add_20.dim()?;
        let eq_13 = (dim_11 == 3)?;
        add_20.shape()?;
        assert!(eq_13, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_13)");
        let encoder_layers_encoder_layer_10_ln_1 = self.encoder.layers.encoder_layer_10.ln_1.forward(&add_20)?;
        let encoder_layers_encoder_layer_10_self_attention = self.encoder.layers.encoder_layer_10.self_attention.forward(&encoder_layers_encoder_layer_10_ln_1, &encoder_layers_encoder_layer_10_ln_1, &encoder_layers_encoder_layer_10_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_10_ln_1);
        let getitem_25 = encoder_layers_encoder_layer_10_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_10_self_attention);
        let encoder_layers_encoder_layer_10_dropout = self.encoder.layers.encoder_layer_10.dropout.forward(&getitem_25)?;  drop(getitem_25);
        let add_21 = (&encoder_layers_encoder_layer_10_dropout + &add_20)?;  drop(encoder_layers_encoder_layer_10_dropout); drop(add_20);
        let encoder_layers_encoder_layer_10_ln_2 = self.encoder.layers.encoder_layer_10.ln_2.forward(&add_21)?;
        // encoder.layers.encoder_layer_10.mlp: Sequential
        let encoder_layers_encoder_layer_10_mlp_0 = self.encoder.layers.encoder_layer_10.mlp.0.forward(&encoder_layers_encoder_layer_10_ln_2)?;  drop(encoder_layers_encoder_layer_10_ln_2);
        let encoder_layers_encoder_layer_10_mlp_1 = self.encoder.layers.encoder_layer_10.mlp.1.forward(&encoder_layers_encoder_layer_10_mlp_0)?;  drop(encoder_layers_encoder_layer_10_mlp_0);
        let encoder_layers_encoder_layer_10_mlp_2 = self.encoder.layers.encoder_layer_10.mlp.2.forward(&encoder_layers_encoder_layer_10_mlp_1)?;  drop(encoder_layers_encoder_layer_10_mlp_1);
        let encoder_layers_encoder_layer_10_mlp_3 = self.encoder.layers.encoder_layer_10.mlp.3.forward(&encoder_layers_encoder_layer_10_mlp_2)?;  drop(encoder_layers_encoder_layer_10_mlp_2);
        let encoder_layers_encoder_layer_10_mlp_4 = self.encoder.layers.encoder_layer_10.mlp.4.forward(&encoder_layers_encoder_layer_10_mlp_3)?;  drop(encoder_layers_encoder_layer_10_mlp_3);
        // encoder.layers.encoder_layer_10: EncoderBlock
        let add_22 = (&add_21 + &encoder_layers_encoder_layer_10_mlp_4)?;  drop(add_21); drop(encoder_layers_encoder_layer_10_mlp_4);
        // encoder.layers.encoder_layer_11: EncoderBlock
        let dim_12 = add_22.dim()?;
        let eq_14 = (dim_12 == 3)?;
        add_22.shape()?;
        assert!(eq_14, "Expected (batch_size, seq_length, hidden_dim) got Proxy(getattr_14)");
        let encoder_layers_encoder_layer_11_ln_1 = self.encoder.layers.encoder_layer_11.ln_1.forward(&add_22)?;
        let encoder_layers_encoder_layer_11_self_attention = self.encoder.layers.encoder_layer_11.self_attention.forward(&encoder_layers_encoder_layer_11_ln_1, &encoder_layers_encoder_layer_11_ln_1, &encoder_layers_encoder_layer_11_ln_1, None, false, None)?;  drop(encoder_layers_encoder_layer_11_ln_1);
        let getitem_27 = encoder_layers_encoder_layer_11_self_attention.0.clone();
        drop(encoder_layers_encoder_layer_11_self_attention);
        let encoder_layers_encoder_layer_11_dropout = self.encoder.layers.encoder_layer_11.dropout.forward(&getitem_27)?;  drop(getitem_27);
        let add_23 = (&encoder_layers_encoder_layer_11_dropout + &add_22)?;  drop(encoder_layers_encoder_layer_11_dropout); drop(add_22);
        let encoder_layers_encoder_layer_11_ln_2 = self.encoder.layers.encoder_layer_11.ln_2.forward(&add_23)?;
        // encoder.layers.encoder_layer_11.mlp: Sequential
        let encoder_layers_encoder_layer_11_mlp_0 = self.encoder.layers.encoder_layer_11.mlp.0.forward(&encoder_layers_encoder_layer_11_ln_2)?;  drop(encoder_layers_encoder_layer_11_ln_2);
        let encoder_layers_encoder_layer_11_mlp_1 = self.encoder.layers.encoder_layer_11.mlp.1.forward(&encoder_layers_encoder_layer_11_mlp_0)?;  drop(encoder_layers_encoder_layer_11_mlp_0);
        let encoder_layers_encoder_layer_11_mlp_2 = self.encoder.layers.encoder_layer_11.mlp.2.forward(&encoder_layers_encoder_layer_11_mlp_1)?;  drop(encoder_layers_encoder_layer_11_mlp_1);
        let encoder_layers_encoder_layer_11_mlp_3 = self.encoder.layers.encoder_layer_11.mlp.3.forward(&encoder_layers_encoder_layer_11_mlp_2)?;  drop(encoder_layers_encoder_layer_11_mlp_2);
        let encoder_layers_encoder_layer_11_mlp_4 = self.encoder.layers.encoder_layer_11.mlp.4.forward(&encoder_layers_encoder_layer_11_mlp_3)?;  drop(encoder_layers_encoder_layer_11_mlp_3);
        // encoder.layers.encoder_layer_11: EncoderBlock
        let add_24 = (&add_23 + &encoder_layers_encoder_layer_11_mlp_4)?;  drop(add_23); drop(encoder_layers_encoder_layer_11_mlp_4);
        // encoder: Encoder
        let encoder_ln = self.encoder.ln.forward(&add_24)?;  drop(add_24);
        // VisionTransformer
        let getitem_29 = encoder_ln.i((.., 0))?;  drop(encoder_ln);
        // heads: Heads
        let heads_head = self.heads.head.forward(&getitem_29)?;  drop(getitem_29);
        Ok(heads_head)
    }
}
