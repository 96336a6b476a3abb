//! `Generated`, generated from a traced graph of 104 nodes; to be edited as any source.
//!
//! `weights.safetensors` has its layers and weights: [`Generated::load`] takes them from there.

use fx_nn::prelude::*;

/// The module.
#[derive(Module)]
pub struct Generated {
    /// `time`.
    pub time: TimeEmbedding,
    /// `conv_in`.
    pub conv_in: fx_nn::nn::Conv2d,
    /// `down1`.
    pub down1: ResBlock,
    /// `downsample`.
    pub downsample: fx_nn::nn::Conv2d,
    /// `down2`.
    pub down2: ResBlock2,
    /// `mid1`.
    pub mid1: ResBlock,
    /// `attention`.
    pub attention: AttentionBlock,
    /// `mid2`.
    pub mid2: ResBlock,
    /// `up2`.
    pub up2: ResBlock2,
    /// `upsample`.
    pub upsample: Sequential,
    /// `up1`.
    pub up1: ResBlock2,
    /// `norm_out`.
    pub norm_out: fx_nn::nn::GroupNorm,
    /// `conv_out`.
    pub conv_out: fx_nn::nn::Conv2d,
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
            time: TimeEmbedding::take(saved, "time")?,
            conv_in: saved.take_submodule("conv_in")?,
            down1: ResBlock::take(saved, "down1")?,
            downsample: saved.take_submodule("downsample")?,
            down2: ResBlock2::take(saved, "down2")?,
            mid1: ResBlock::take(saved, "mid1")?,
            attention: AttentionBlock::take(saved, "attention")?,
            mid2: ResBlock::take(saved, "mid2")?,
            up2: ResBlock2::take(saved, "up2")?,
            upsample: Sequential::take(saved, "upsample")?,
            up1: ResBlock2::take(saved, "up1")?,
            norm_out: saved.take_submodule("norm_out")?,
            conv_out: saved.take_submodule("conv_out")?,
            _tensor_constant0: FromValue::from_value(saved.buffer("_tensor_constant0")?)?,
        })
    }
}

/// What is at `time`.
#[derive(Module)]
pub struct TimeEmbedding {
    /// `linear1`.
    pub linear1: fx_nn::nn::Linear,
    /// `linear2`.
    pub linear2: fx_nn::nn::Linear,
}

impl TimeEmbedding {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(TimeEmbedding {
            linear1: saved.take_submodule(&format!("{path}.linear1"))?,
            linear2: saved.take_submodule(&format!("{path}.linear2"))?,
        })
    }
}

/// What is at `down1`, `mid1`, `mid2`.
#[derive(Module)]
pub struct ResBlock {
    /// `norm1`.
    pub norm1: fx_nn::nn::GroupNorm,
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `time`.
    pub time: fx_nn::nn::Linear,
    /// `norm2`.
    pub norm2: fx_nn::nn::GroupNorm,
    /// `conv2`.
    pub conv2: fx_nn::nn::Conv2d,
}

impl ResBlock {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(ResBlock {
            norm1: saved.take_submodule(&format!("{path}.norm1"))?,
            conv1: saved.take_submodule(&format!("{path}.conv1"))?,
            time: saved.take_submodule(&format!("{path}.time"))?,
            norm2: saved.take_submodule(&format!("{path}.norm2"))?,
            conv2: saved.take_submodule(&format!("{path}.conv2"))?,
        })
    }
}

/// What is at `down2`, `up2`, `up1`.
#[derive(Module)]
pub struct ResBlock2 {
    /// `norm1`.
    pub norm1: fx_nn::nn::GroupNorm,
    /// `conv1`.
    pub conv1: fx_nn::nn::Conv2d,
    /// `time`.
    pub time: fx_nn::nn::Linear,
    /// `norm2`.
    pub norm2: fx_nn::nn::GroupNorm,
    /// `conv2`.
    pub conv2: fx_nn::nn::Conv2d,
    /// `skip`.
    pub skip: fx_nn::nn::Conv2d,
}

impl ResBlock2 {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(ResBlock2 {
            norm1: saved.take_submodule(&format!("{path}.norm1"))?,
            conv1: saved.take_submodule(&format!("{path}.conv1"))?,
            time: saved.take_submodule(&format!("{path}.time"))?,
            norm2: saved.take_submodule(&format!("{path}.norm2"))?,
            conv2: saved.take_submodule(&format!("{path}.conv2"))?,
            skip: saved.take_submodule(&format!("{path}.skip"))?,
        })
    }
}

/// What is at `attention`.
#[derive(Module)]
pub struct AttentionBlock {
    /// `norm`.
    pub norm: fx_nn::nn::GroupNorm,
    /// `qkv`.
    pub qkv: fx_nn::nn::Conv2d,
    /// `proj`.
    pub proj: fx_nn::nn::Conv2d,
}

impl AttentionBlock {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(AttentionBlock {
            norm: saved.take_submodule(&format!("{path}.norm"))?,
            qkv: saved.take_submodule(&format!("{path}.qkv"))?,
            proj: saved.take_submodule(&format!("{path}.proj"))?,
        })
    }
}

/// What is at `upsample`.
#[derive(Module)]
pub struct Sequential(pub fx_nn::nn::Upsample, pub fx_nn::nn::Conv2d);

impl Sequential {
    fn take(saved: &mut GraphModule, path: &str) -> Result<Self> {
        Ok(Sequential(
            saved.take_submodule(&format!("{path}.0"))?,
            saved.take_submodule(&format!("{path}.1"))?,
        ))
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
    pub fn forward(&self, x: &Tensor, t: &Tensor) -> Result<Tensor> {
        // time: TimeEmbedding
        let getitem = t.i((.., NewAxis))?;
        let _tensor_constant0 = &self._tensor_constant0;
        let mul = (&getitem * _tensor_constant0)?;  drop(getitem);
        let sin = mul.sin()?;
        let cos = mul.cos()?;  drop(mul);
        let cat = fx_nn::ops::cat(&[sin.clone(), cos.clone()], -1)?;  drop(sin); drop(cos);
        let time_linear1 = self.time.linear1.forward(&cat)?;  drop(cat);
        let silu = time_linear1.silu()?;  drop(time_linear1);
        let time_linear2 = self.time.linear2.forward(&silu)?;  drop(silu);
        // UNet
        let conv_in = self.conv_in.forward(x)?;
        // down1: ResBlock
        let down1_norm1 = self.down1.norm1.forward(&conv_in)?;
        let silu_1 = down1_norm1.silu()?;  drop(down1_norm1);
        let down1_conv1 = self.down1.conv1.forward(&silu_1)?;  drop(silu_1);
        let silu_2 = time_linear2.silu()?;
        let down1_time = self.down1.time.forward(&silu_2)?;  drop(silu_2);
        let getitem_1 = down1_time.i((.., .., NewAxis, NewAxis))?;  drop(down1_time);
        let add = (&down1_conv1 + &getitem_1)?;  drop(down1_conv1); drop(getitem_1);
        let down1_norm2 = self.down1.norm2.forward(&add)?;  drop(add);
        let silu_3 = down1_norm2.silu()?;  drop(down1_norm2);
        let down1_conv2 = self.down1.conv2.forward(&silu_3)?;  drop(silu_3);
        let add_1 = (&down1_conv2 + &conv_in)?;  drop(down1_conv2); drop(conv_in);
        // UNet
        let downsample = self.downsample.forward(&add_1)?;
        // down2: ResBlock
        let down2_norm1 = self.down2.norm1.forward(&downsample)?;
        let silu_4 = down2_norm1.silu()?;  drop(down2_norm1);
        let down2_conv1 = self.down2.conv1.forward(&silu_4)?;  drop(silu_4);
        let silu_5 = time_linear2.silu()?;
        let down2_time = self.down2.time.forward(&silu_5)?;  drop(silu_5);
        let getitem_2 = down2_time.i((.., .., NewAxis, NewAxis))?;  drop(down2_time);
        let add_2 = (&down2_conv1 + &getitem_2)?;  drop(down2_conv1); drop(getitem_2);
        let down2_norm2 = self.down2.norm2.forward(&add_2)?;  drop(add_2);
        let silu_6 = down2_norm2.silu()?;  drop(down2_norm2);
        let down2_conv2 = self.down2.conv2.forward(&silu_6)?;  drop(silu_6);
        let down2_skip = self.down2.skip.forward(&downsample)?;  drop(downsample);
        let add_3 = (&down2_conv2 + &down2_skip)?;  drop(down2_conv2); drop(down2_skip);
        // mid1: ResBlock
        let mid1_norm1 = self.mid1.norm1.forward(&add_3)?;
        let silu_7 = mid1_norm1.silu()?;  drop(mid1_norm1);
        let mid1_conv1 = self.mid1.conv1.forward(&silu_7)?;  drop(silu_7);
        let silu_8 = time_linear2.silu()?;
        let mid1_time = self.mid1.time.forward(&silu_8)?;  drop(silu_8);
        let getitem_3 = mid1_time.i((.., .., NewAxis, NewAxis))?;  drop(mid1_time);
        let add_4 = (&mid1_conv1 + &getitem_3)?;  drop(mid1_conv1); drop(getitem_3);
        let mid1_norm2 = self.mid1.norm2.forward(&add_4)?;  drop(add_4);
        let silu_9 = mid1_norm2.silu()?;  drop(mid1_norm2);
        let mid1_conv2 = self.mid1.conv2.forward(&silu_9)?;  drop(silu_9);
        let add_5 = (&mid1_conv2 + &add_3)?;  drop(mid1_conv2);
        // attention: AttentionBlock
        let attention_norm = self.attention.norm.forward(&add_5)?;
        let attention_qkv = self.attention.qkv.forward(&attention_norm)?;  drop(attention_norm);
        let flatten = attention_qkv.flatten(2, -1)?;  drop(attention_qkv);
        let transpose = flatten.transpose(1, 2)?;  drop(flatten);
        let chunk = transpose.chunk(3, -1)?;  drop(transpose);
        let getitem_4 = chunk.get(0)?;
        let getitem_5 = chunk.get(1)?;
        let getitem_6 = chunk.get(2)?;  drop(chunk);
        let scaled_dot_product_attention = fx_nn::ops::scaled_dot_product_attention(&getitem_4, &getitem_5, &getitem_6, None, 0.0, false, None, false)?;  drop(getitem_4); drop(getitem_5); drop(getitem_6);
        let transpose_1 = scaled_dot_product_attention.transpose(1, 2)?;  drop(scaled_dot_product_attention);
        let getattr = add_5.shape()?;
        let reshape = transpose_1.reshape(getattr.clone())?;  drop(transpose_1); drop(getattr);
        let attention_proj = self.attention.proj.forward(&reshape)?;  drop(reshape);
        let add_6 = (&add_5 + &attention_proj)?;  drop(add_5); drop(attention_proj);
        // mid2: ResBlock
        let mid2_norm1 = self.mid2.norm1.forward(&add_6)?;
        let silu_10 = mid2_norm1.silu()?;  drop(mid2_norm1);
        let mid2_conv1 = self.mid2.conv1.forward(&silu_10)?;  drop(silu_10);
        let silu_11 = time_linear2.silu()?;
        let mid2_time = self.mid2.time.forward(&silu_11)?;  drop(silu_11);
        let getitem_7 = mid2_time.i((.., .., NewAxis, NewAxis))?;  drop(mid2_time);
        let add_7 = (&mid2_conv1 + &getitem_7)?;  drop(mid2_conv1); drop(getitem_7);
        let mid2_norm2 = self.mid2.norm2.forward(&add_7)?;  drop(add_7);
        let silu_12 = mid2_norm2.silu()?;  drop(mid2_norm2);
        let mid2_conv2 = self.mid2.conv2.forward(&silu_12)?;  drop(silu_12);
        let add_8 = (&mid2_conv2 + &add_6)?;  drop(mid2_conv2); drop(add_6);
        // UNet
        let cat_1 = fx_nn::ops::cat(&[add_8.clone(), add_3.clone()], 1)?;  drop(add_8); drop(add_3);
        // up2: ResBlock
        let up2_norm1 = self.up2.norm1.forward(&cat_1)?;
        let silu_13 = up2_norm1.silu()?;  drop(up2_norm1);
        let up2_conv1 = self.up2.conv1.forward(&silu_13)?;  drop(silu_13);
        let silu_14 = time_linear2.silu()?;
        let up2_time = self.up2.time.forward(&silu_14)?;  drop(silu_14);
        let getitem_8 = up2_time.i((.., .., NewAxis, NewAxis))?;  drop(up2_time);
        let add_9 = (&up2_conv1 + &getitem_8)?;  drop(up2_conv1); drop(getitem_8);
        let up2_norm2 = self.up2.norm2.forward(&add_9)?;  drop(add_9);
        let silu_15 = up2_norm2.silu()?;  drop(up2_norm2);
        let up2_conv2 = self.up2.conv2.forward(&silu_15)?;  drop(silu_15);
        let up2_skip = self.up2.skip.forward(&cat_1)?;  drop(cat_1);
        let add_10 = (&up2_conv2 + &up2_skip)?;  drop(up2_conv2); drop(up2_skip);
        // upsample: Sequential
        let upsample_0 = self.upsample.0.forward(&add_10)?;  drop(add_10);
        let upsample_1 = self.upsample.1.forward(&upsample_0)?;  drop(upsample_0);
        // UNet
        let cat_2 = fx_nn::ops::cat(&[upsample_1.clone(), add_1.clone()], 1)?;  drop(upsample_1); drop(add_1);
        // up1: ResBlock
        let up1_norm1 = self.up1.norm1.forward(&cat_2)?;
        let silu_16 = up1_norm1.silu()?;  drop(up1_norm1);
        let up1_conv1 = self.up1.conv1.forward(&silu_16)?;  drop(silu_16);
        let silu_17 = time_linear2.silu()?;  drop(time_linear2);
        let up1_time = self.up1.time.forward(&silu_17)?;  drop(silu_17);
        let getitem_9 = up1_time.i((.., .., NewAxis, NewAxis))?;  drop(up1_time);
        let add_11 = (&up1_conv1 + &getitem_9)?;  drop(up1_conv1); drop(getitem_9);
        let up1_norm2 = self.up1.norm2.forward(&add_11)?;  drop(add_11);
        let silu_18 = up1_norm2.silu()?;  drop(up1_norm2);
        let up1_conv2 = self.up1.conv2.forward(&silu_18)?;  drop(silu_18);
        let up1_skip = self.up1.skip.forward(&cat_2)?;  drop(cat_2);
        let add_12 = (&up1_conv2 + &up1_skip)?;  drop(up1_conv2); drop(up1_skip);
        // UNet
        let norm_out = self.norm_out.forward(&add_12)?;  drop(add_12);
        let silu_19 = norm_out.silu()?;  drop(norm_out);
        let conv_out = self.conv_out.forward(&silu_19)?;  drop(silu_19);
        Ok(conv_out)
    }
}
