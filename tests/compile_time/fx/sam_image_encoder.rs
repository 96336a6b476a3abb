//! Segment Anything's image encoder: a vision transformer with windows and relative positions, and a neck.

use candle_core::{CpuStorage, CustomOp3, Layout, WithDType};
use fx_nn::prelude::*;
use rayon::prelude::*;

#[derive(Module, Clone, Debug)]
pub struct LayerNorm2d {
    weight: Tensor,
    bias: Tensor,
    num_channels: usize,
    eps: f64,
}

impl LayerNorm2d {
    pub fn new(num_channels: usize, eps: f64) -> Result<Self> {
        Ok(Self {
            weight: Tensor::ones(num_channels)?.into_parameter()?,
            bias: Tensor::zeros(num_channels)?.into_parameter()?,
            num_channels,
            eps,
        })
    }
}

#[trace]
impl LayerNorm2d {
    pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let u = xs.mean_keepdim(1)?;
        let xs = (xs - u)?;
        let s = xs.square()?.mean_keepdim(1)?;
        let xs = (xs / (s + self.eps)?.sqrt()?)?;
        let weight = self.weight.reshape((1, self.num_channels, 1, 1))?;
        let bias = self.bias.reshape((1, self.num_channels, 1, 1))?;
        (xs * weight)? + bias
    }
}

#[derive(Module, Clone, Debug)]
pub struct MlpBlock {
    lin1: nn::Linear,
    lin2: nn::Linear,
    activation: Box<dyn Module>,
}

impl MlpBlock {
    pub fn new(
        embedding_dim: usize,
        mlp_dim: usize,
        activation: impl Into<Box<dyn Module>>,
    ) -> Result<Self> {
        Ok(Self {
            lin1: nn::Linear::new(embedding_dim, mlp_dim)?,
            lin2: nn::Linear::new(mlp_dim, embedding_dim)?,
            activation: activation.into(),
        })
    }
}

#[trace]
impl MlpBlock {
    pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let xs: Tensor = self.activation.forward(&self.lin1.forward(xs)?)?;
        self.lin2.forward(&xs)
    }
}

#[derive(Module, Clone, Debug)]
struct PatchEmbed {
    proj: nn::Conv2d,
}

impl PatchEmbed {
    fn new(
        in_chans: usize,
        embed_dim: usize,
        k_size: usize,
        stride: usize,
        padding: usize,
    ) -> Result<Self> {
        let proj = nn::Conv2d::new(in_chans, embed_dim, k_size)?;
        Ok(Self {
            proj: proj.stride(stride).padding(padding),
        })
    }
}

#[trace]
impl PatchEmbed {
    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        self.proj.forward(xs)?.permute((0, 2, 3, 1))
    }
}

/// The scores `[b, q_h * q_w, k_h * k_w]` and what the rows and the columns of keys add to them, in one pass.
struct Add3(usize, usize, usize, usize, usize);

fn contiguous<'s>(storage: &'s CpuStorage, layout: &Layout) -> candle_core::Result<&'s [f32]> {
    match layout.contiguous_offsets() {
        Some((start, end)) => Ok(&storage.as_slice::<f32>()?[start..end]),
        None => candle_core::bail!("the inputs of add3 have to be contiguous"),
    }
}

impl CustomOp3 for Add3 {
    fn name(&self) -> &'static str {
        "add3"
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
        s3: &CpuStorage,
        l3: &Layout,
    ) -> candle_core::Result<(CpuStorage, candle_core::Shape)> {
        let Add3(b, q_h, q_w, k_h, k_w) = *self;
        let (attn, rel_h, rel_w) = (
            contiguous(s1, l1)?,
            contiguous(s2, l2)?,
            contiguous(s3, l3)?,
        );
        let mut dst = vec![0f32; b * q_h * q_w * k_h * k_w];
        dst.par_chunks_exact_mut(k_h * k_w)
            .zip(attn.par_chunks_exact(k_h * k_w))
            .zip(rel_h.par_chunks_exact(k_h))
            .zip(rel_w.par_chunks_exact(k_w))
            .for_each(|(((dst, attn), rel_h), rel_w)| {
                for ((dst, attn), h) in dst.chunks_mut(k_w).zip(attn.chunks(k_w)).zip(rel_h) {
                    for ((dst, attn), w) in dst.iter_mut().zip(attn).zip(rel_w) {
                        *dst = attn + h + w;
                    }
                }
            });
        let dst = WithDType::to_cpu_storage_owned(dst);
        Ok((dst, (b, q_h * q_w, k_h * k_w).into()))
    }
}

/// A leaf, because candle computes it: on the CPU by an operation of its own.
#[wrap]
fn add_rel_pos(attn: &Tensor, rel_h: &Tensor, rel_w: &Tensor) -> Result<Tensor> {
    let (&[b, q_h, q_w, k_h], &[.., k_w]) = (rel_h.dims()?, rel_w.dims()?) else {
        return Err(Error::msg("relative positions have four dims"));
    };
    if attn.device()? == Device::Cpu {
        let op = Add3(b, q_h, q_w, k_h, k_w);
        let sum = attn
            .candle()?
            .apply_op3_no_bwd(rel_h.candle()?, rel_w.candle()?, &op);
        return Ok(sum.map_err(Error::other)?.into());
    }
    let rel = (rel_h.unsqueeze(4)? + rel_w.unsqueeze(3)?)?;
    (attn.reshape((b, q_h, q_w, k_h, k_w))? + rel)?.reshape((b, q_h * q_w, k_h * k_w))
}

/// A leaf, because the sizes decide what it does.
#[wrap]
fn get_rel_pos(q_size: Int, k_size: Int, rel_pos: &Tensor) -> Result<Tensor> {
    let (Some(q), Some(k)) = (q_size.concrete(), k_size.concrete()) else {
        return Err(Error::msg("a leaf has known sizes"));
    };
    if rel_pos.dims()?[0] as i64 != 2 * q.max(k) - 1 {
        todo!("interpolation")
    }
    let (q_scale, k_scale) = (k as f64 / q as f64, q as f64 / k as f64);
    let (q_scale, k_scale) = (q_scale.max(1.0), k_scale.max(1.0));
    let q_coords = (Tensor::arange(0, q)?.reshape((q, 1))? * q_scale)?;
    let k_coords = (Tensor::arange(0, k)?.reshape((1, k))? * k_scale)?;
    let relative_coords = ((q_coords - k_coords)? + (k as f64 - 1.0) * k_scale)?;
    let relative_coords = relative_coords.to_dtype(DType::I64)?;
    rel_pos
        .index_select(0, &relative_coords.reshape(q * k)?)?
        .reshape((q, k, -1))
}

#[derive(Module, Clone, Debug)]
struct Attention {
    qkv: nn::Linear,
    proj: nn::Linear,
    num_heads: usize,
    scale: f64,
    rel_pos_h: Option<Tensor>,
    rel_pos_w: Option<Tensor>,
}

impl Attention {
    fn new(
        dim: usize,
        num_heads: usize,
        qkv_bias: bool,
        use_rel_pos: bool,
        input_size: (usize, usize),
    ) -> Result<Self> {
        let head_dim = dim / num_heads;
        let rel_pos = |size: usize| Tensor::zeros((2 * size - 1, head_dim))?.into_parameter();
        Ok(Self {
            qkv: nn::Linear::new(dim, dim * 3)?.bias(qkv_bias),
            proj: nn::Linear::new(dim, dim)?,
            num_heads,
            scale: 1.0 / (head_dim as f64).sqrt(),
            rel_pos_h: use_rel_pos.then(|| rel_pos(input_size.0)).transpose()?,
            rel_pos_w: use_rel_pos.then(|| rel_pos(input_size.1)).transpose()?,
        })
    }
}

#[trace]
impl Attention {
    fn add_decomposed_rel_pos(
        &self,
        attn: Tensor,
        q: &Tensor,
        (q_h, q_w): (Int, Int),
        (k_h, k_w): (Int, Int),
    ) -> Result<Tensor> {
        match (&self.rel_pos_h, &self.rel_pos_w) {
            (Some(rel_pos_h), Some(rel_pos_w)) => {
                let r_h = get_rel_pos(q_h, k_h, rel_pos_h)?;
                let r_w = get_rel_pos(q_w, k_w, rel_pos_w)?;
                let (b, _, dim) = q.dims3()?;
                let r_q = q.reshape((b, q_h, q_w, dim))?;
                let rel_h = ops::einsum("bhwc,hkc->bhwk", &[&r_q, &r_h])?.contiguous()?;
                let rel_w = ops::einsum("bhwc,wkc->bhwk", &[&r_q, &r_w])?.contiguous()?;
                add_rel_pos(&attn, &rel_h, &rel_w)
            }
            _ => Ok(attn),
        }
    }

    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let (b, h, w, c) = xs.dims4()?;
        let (n, head_dim) = ((h * w)?, c.floordiv(self.num_heads as i64)?);
        let qkv = self
            .qkv
            .forward(&xs.flatten(0, 1)?)?
            .reshape((b, n, 3, self.num_heads, head_dim))?
            .permute((2, 0, 3, 1, 4))?
            .reshape((3, (b * self.num_heads as i64)?, n, head_dim))?;
        let [q, k, v] = qkv.unbind(0)?.unpack()?;
        let attn = (&q * self.scale)?.matmul(&k.transpose(-2, -1)?)?;
        let attn = self.add_decomposed_rel_pos(attn, &q, (h, w), (h, w))?;
        let attn = ops::softmax(&attn, -1)?
            .matmul(&v)?
            .reshape((b, self.num_heads, h, w, head_dim))?
            .permute((0, 2, 3, 1, 4))?
            .reshape((b, n, c))?;
        self.proj.forward(&attn)?.reshape((b, h, w, c))
    }
}

#[derive(Module, Clone, Debug)]
struct Block {
    norm1: nn::LayerNorm,
    attn: Attention,
    norm2: nn::LayerNorm,
    mlp: MlpBlock,
    window_size: usize,
}

impl Block {
    fn new(
        dim: usize,
        num_heads: usize,
        qkv_bias: bool,
        use_rel_pos: bool,
        window_size: usize,
        input_size: (usize, usize),
    ) -> Result<Self> {
        let input_size_attn = if window_size == 0 {
            input_size
        } else {
            (window_size, window_size)
        };
        Ok(Self {
            norm1: nn::LayerNorm::new(dim)?.eps(1e-6),
            attn: Attention::new(dim, num_heads, qkv_bias, use_rel_pos, input_size_attn)?,
            norm2: nn::LayerNorm::new(dim)?.eps(1e-6),
            mlp: MlpBlock::new(dim, dim * 4, nn::GELU::new())?,
            window_size,
        })
    }
}

fn window_partition(xs: Tensor, window_size: usize) -> Result<(Tensor, (Int, Int))> {
    let (b, h, w, c) = xs.dims4()?;
    let size = Int::from(window_size);
    let pad_h = ((size - (h % size)?)? % size)?;
    let pad_w = ((size - (w % size)?)? % size)?;
    let xs = ops::pad(&xs, (0, 0, 0, pad_w, 0, pad_h), "constant", 0.0)?;
    let (h_p, w_p) = ((h + pad_h)?, (w + pad_w)?);
    let windows = xs
        .reshape((b, h_p.floordiv(size)?, size, w_p.floordiv(size)?, size, c))?
        .transpose(2, 3)?
        .flatten(0, 2)?;
    Ok((windows, (h_p, w_p)))
}

fn window_unpartition(
    windows: Tensor,
    window_size: usize,
    (h_p, w_p): (Int, Int),
    (h, w): (Int, Int),
) -> Result<Tensor> {
    let size = Int::from(window_size);
    let (rows, columns) = (h_p.floordiv(size)?, w_p.floordiv(size)?);
    let b = windows.size(0)?.floordiv((rows * columns)?)?;
    windows
        .reshape((b, rows, columns, size, size, -1))?
        .transpose(2, 3)?
        .reshape((b, h_p, w_p, -1))?
        .narrow(1, 0, h)?
        .narrow(2, 0, w)
}

#[trace]
impl Block {
    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let shortcut = xs;
        let xs = self.norm1.forward(xs)?;
        let xs = if self.window_size > 0 {
            let hw = (xs.size(1)?, xs.size(2)?);
            let (xs, pad_hw) = window_partition(xs, self.window_size)?;
            let xs = self.attn.forward(&xs)?;
            window_unpartition(xs, self.window_size, pad_hw, hw)?
        } else {
            self.attn.forward(&xs)?
        };
        let xs = (xs + shortcut)?;
        &xs + self.mlp.forward(&self.norm2.forward(&xs)?)?
    }
}

#[derive(Module, Clone, Debug)]
pub struct ImageEncoderViT {
    patch_embed: PatchEmbed,
    blocks: Vec<Block>,
    neck: nn::Sequential,
    pos_embed: Option<Tensor>,
}

impl ImageEncoderViT {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        img_size: usize,
        patch_size: usize,
        in_chans: usize,
        embed_dim: usize,
        depth: usize,
        num_heads: usize,
        out_chans: usize,
        qkv_bias: bool,
        use_rel_pos: bool,
        use_abs_pos: bool,
        window_size: usize,
        global_attn_indexes: &[usize],
    ) -> Result<Self> {
        let size = img_size / patch_size;
        let patch_embed = PatchEmbed::new(in_chans, embed_dim, patch_size, patch_size, 0)?;
        let mut blocks = Vec::with_capacity(depth);
        for i in 0..depth {
            let window_size = if global_attn_indexes.contains(&i) {
                0
            } else {
                window_size
            };
            let block = Block::new(
                embed_dim,
                num_heads,
                qkv_bias,
                use_rel_pos,
                window_size,
                (size, size),
            )?;
            blocks.push(block)
        }
        let conv2 = nn::Conv2d::new(out_chans, out_chans, 3)?;
        let neck = nn::Sequential::new()
            .push(nn::Conv2d::new(embed_dim, out_chans, 1)?.bias(false))
            .push(LayerNorm2d::new(out_chans, 1e-6)?)
            .push(conv2.padding(1).bias(false))
            .push(LayerNorm2d::new(out_chans, 1e-6)?);
        let pos_embed = use_abs_pos
            .then(|| Tensor::zeros((1, size, size, embed_dim))?.into_parameter())
            .transpose()?;
        Ok(Self {
            patch_embed,
            blocks,
            neck,
            pos_embed,
        })
    }
}

#[trace]
impl ImageEncoderViT {
    pub fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let xs = self.patch_embed.forward(xs)?;
        let mut xs = match &self.pos_embed {
            Some(pos_embed) => (xs + pos_embed)?,
            None => xs,
        };
        for block in &self.blocks {
            xs = block.forward(&xs)?;
        }
        self.neck.forward(&xs.permute((0, 3, 1, 2))?)
    }
}
