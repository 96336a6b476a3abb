//! Mamba: selective state spaces, one word a step, with the state of each layer as an input and an output.

use fx_nn::prelude::*;

const D_CONV: usize = 4;
const D_STATE: usize = 16;

#[derive(Debug, Clone, serde::Deserialize)]
pub struct Config {
    pub d_model: usize,
    pub n_layer: usize,
    pub vocab_size: usize,
    pub pad_vocab_size_multiple: usize,
}

impl Config {
    fn vocab_size(&self) -> usize {
        let pad = self.pad_vocab_size_multiple;
        self.vocab_size.div_ceil(pad) * pad
    }

    fn dt_rank(&self) -> usize {
        self.d_model.div_ceil(16)
    }

    fn d_inner(&self) -> usize {
        self.d_model * 2
    }
}

#[derive(Tree, Clone)]
pub struct State {
    pub hs: Vec<Tensor>,
    /// Of each layer the last inputs of its convolution, the oldest first.
    pub prev_xs: Vec<[Tensor; D_CONV]>,
    pub pos: Int,
}

impl State {
    pub fn new(batch_size: usize, cfg: &Config, dtype: DType) -> Result<Self> {
        let mut hs = Vec::with_capacity(cfg.n_layer);
        let mut prev_xs = Vec::with_capacity(cfg.n_layer);
        for _ in 0..cfg.n_layer {
            let x = ops::zeros((batch_size, cfg.d_inner()), Some(dtype))?;
            hs.push(ops::zeros(
                (batch_size, cfg.d_inner(), D_STATE),
                Some(dtype),
            )?);
            prev_xs.push([x.clone(), x.clone(), x.clone(), x]);
        }
        Ok(Self {
            hs,
            prev_xs,
            pos: 0.into(),
        })
    }
}

#[derive(Module, Clone, Debug)]
pub struct MambaBlock {
    in_proj: nn::Linear,
    conv1d: nn::Conv1d,
    x_proj: nn::Linear,
    dt_proj: nn::Linear,
    #[module(name = "A_log")]
    a_log: Tensor,
    #[module(name = "D")]
    d: Tensor,
    out_proj: nn::Linear,
    dt_rank: usize,
    layer_index: usize,
}

impl MambaBlock {
    pub fn new(layer_index: usize, cfg: &Config) -> Result<Self> {
        let d_inner = cfg.d_inner();
        let dt_rank = cfg.dt_rank();
        Ok(Self {
            in_proj: nn::Linear::new(cfg.d_model, d_inner * 2)?.bias(false),
            conv1d: nn::Conv1d::grouped(d_inner, d_inner, D_CONV, d_inner)?,
            x_proj: nn::Linear::new(d_inner, dt_rank + D_STATE * 2)?.bias(false),
            dt_proj: nn::Linear::new(dt_rank, d_inner)?,
            a_log: Tensor::zeros((d_inner, D_STATE))?.into_parameter()?,
            d: Tensor::zeros(d_inner)?.into_parameter()?,
            out_proj: nn::Linear::new(d_inner, cfg.d_model)?.bias(false),
            dt_rank,
            layer_index,
        })
    }
}

#[trace]
impl MambaBlock {
    pub fn forward(&self, xs: &Tensor, mut state: State) -> Result<(Tensor, State)> {
        let li = self.layer_index;
        let [xs, proj_for_silu] = self.in_proj.forward(xs)?.chunk(2, -1)?.unpack()?;
        state.prev_xs[li][0] = xs;
        state.prev_xs[li].rotate_left(1);
        let mut proj_for_conv = self.conv1d.bias.clone();
        for (d_c, prev_x) in state.prev_xs[li].iter().enumerate() {
            let weighted = (self.conv1d.weight.i((.., 0, d_c))? * prev_x)?;
            proj_for_conv = Some(match proj_for_conv {
                Some(sum) => (sum + weighted)?,
                None => weighted,
            });
        }
        let proj_for_conv = ops::silu(&proj_for_conv.expect("a convolution has taps"))?;

        // Only the last step of the sequence is needed.
        let x_proj = self.x_proj.forward(&proj_for_conv)?;
        let delta = x_proj.narrow(-1, 0, self.dt_rank)?;
        let b = x_proj.narrow(-1, self.dt_rank, D_STATE)?;
        let c = x_proj.narrow(-1, self.dt_rank + D_STATE, D_STATE)?;

        let delta = self.dt_proj.forward(&delta)?;
        let delta = (delta.exp()? + 1.0)?.log()?;
        let a = self.a_log.type_as(&delta)?.exp()?.neg()?;
        let d = self.d.type_as(&delta)?;

        // The selective scan: h = exp(delta a) h + delta b x.
        let delta = delta.unsqueeze(-1)?;
        let decay = (&delta * a)?.exp()?;
        let inputs = ((delta * b.unsqueeze(1)?)? * proj_for_conv.unsqueeze(-1)?)?;
        state.hs[li] = ((&state.hs[li] * decay)? + inputs)?;
        let ss = state.hs[li].matmul(&c.unsqueeze(-1)?)?.squeeze(-1)?;
        let ss = (ss + (proj_for_conv * d)?)?;

        let ys = (ss * ops::silu(&proj_for_silu)?)?;
        Ok((self.out_proj.forward(&ys)?, state))
    }
}

#[derive(Module, Clone, Debug)]
pub struct ResidualBlock {
    mixer: MambaBlock,
    norm: nn::RMSNorm,
}

impl ResidualBlock {
    pub fn new(layer_index: usize, cfg: &Config) -> Result<Self> {
        Ok(Self {
            mixer: MambaBlock::new(layer_index, cfg)?,
            norm: nn::RMSNorm::new(cfg.d_model)?.eps(1e-5),
        })
    }
}

#[trace]
impl ResidualBlock {
    fn forward(&self, xs: &Tensor, state: State) -> Result<(Tensor, State)> {
        let (ys, state) = self.mixer.forward(&self.norm.forward(xs)?, state)?;
        Ok(((ys + xs)?, state))
    }
}

#[derive(Module, Clone, Debug)]
pub struct Model {
    embedding: nn::Embedding,
    layers: Vec<ResidualBlock>,
    norm_f: nn::RMSNorm,
    lm_head: nn::Linear,
}

impl Model {
    pub fn new(cfg: &Config) -> Result<Self> {
        let embedding = nn::Embedding::new(cfg.vocab_size(), cfg.d_model)?;
        let layers = (0..cfg.n_layer).map(|layer_idx| ResidualBlock::new(layer_idx, cfg));
        let lm_head = nn::Linear {
            weight: embedding.weight.clone(),
            bias: None,
        };
        Ok(Self {
            embedding,
            layers: layers.collect::<Result<_>>()?,
            norm_f: nn::RMSNorm::new(cfg.d_model)?.eps(1e-5),
            lm_head,
        })
    }

    pub fn dtype(&self) -> Result<DType> {
        self.embedding.weight.dtype()
    }
}

#[trace]
impl Model {
    pub fn forward(&self, input_ids: &Tensor, mut state: State) -> Result<(Tensor, State)> {
        let mut xs = self.embedding.forward(input_ids)?;
        for layer in &self.layers {
            (xs, state) = layer.forward(&xs, state)?;
        }
        state.pos = (state.pos + 1)?;
        let xs = self.lm_head.forward(&self.norm_f.forward(&xs)?)?;
        Ok((xs, state))
    }
}
