//! The formula fill: tensors made from their names; it owns that every value is the goldens', bit for bit.
//!
//! `tests/goldens/README.md` states the formula. All of it is in float64 and rounded to float32 once.

/// FNV-1a, 64 bits, of the name's UTF-8 bytes.
#[must_use]
pub fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, byte| {
        (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Element `i` of the uniform numbers in `[0, 1)` that belong to `name`.
#[must_use]
pub fn unit(name: &str, i: u64) -> f64 {
    unit_of(hash(name), i)
}

/// The same as [`unit`], from the name's [`hash`].
#[inline]
fn unit_of(hash: u64, i: u64) -> f64 {
    const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
    const SCALE: f64 = 1.0 / (1u64 << 24) as f64;
    let mut k = hash.wrapping_add(i.wrapping_mul(STEP));
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^= k >> 33;
    // 24 bits times a power of two: exact.
    f64::from((k >> 40) as u32) * SCALE
}

/// How the elements of one tensor are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// `0.5 + v`: the one-dimensional `weight` of a normalisation layer.
    NormWeight,
    /// `(v - 0.5) * 0.2`: the `weight` of an embedding.
    Embedding,
    /// `(v - 0.5) * 2 * gain / sqrt(fan in)`: any other parameter of two or more dimensions.
    Weight,
    /// `(v - 0.5) * 2 * 0.1`: any other parameter.
    Bias,
    /// `(v - 0.5) * 0.2`: the buffer `running_mean`.
    RunningMean,
    /// `0.5 + v`: the buffer `running_var`.
    RunningVar,
    /// `(v - 0.5) * 2`: a float input.
    Input,
    /// `floor(v * vocab)`: an integer input.
    IntInput {
        /// One more than the largest value.
        vocab: u64,
    },
    /// Ones, but zeros in the last columns of the last row.
    Mask {
        /// How many columns of the last row are zero.
        zeros: usize,
    },
    /// Left as the model makes it (other buffers): there is nothing to fill.
    Keep,
}

impl Rule {
    /// The word the goldens use for this rule, where they have one.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Rule::NormWeight => "norm_weight",
            Rule::Embedding => "embedding",
            Rule::Weight => "weight",
            Rule::Bias => "bias",
            Rule::RunningMean => "running_mean",
            Rule::RunningVar => "running_var",
            Rule::Input => "float",
            Rule::IntInput { .. } => "int",
            Rule::Mask { .. } => "mask",
            Rule::Keep => "keep",
        }
    }

    /// The rule a `weights` entry of a golden names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Rule> {
        [
            Rule::NormWeight,
            Rule::Embedding,
            Rule::Weight,
            Rule::Bias,
            Rule::RunningMean,
            Rule::RunningVar,
        ]
        .into_iter()
        .find(|rule| rule.word() == word)
    }
}

/// The first rule that fits a parameter or buffer.
///
/// `name` is dotted or not (its last part counts), `class` is the class of the module that owns it, with or without
/// its path (`BatchNorm2d`, `fx_nn::nn::BatchNorm2d`), `rank` the number of dimensions.
#[must_use]
pub fn rule_for(name: &str, class: &str, rank: usize, is_buffer: bool) -> Rule {
    let field = name.rsplit('.').next().unwrap_or(name);
    let class = class.split('<').next().unwrap_or(class);
    let class = class.rsplit([':', '.']).next().unwrap_or(class);
    match (is_buffer, field) {
        (true, "running_mean") => Rule::RunningMean,
        (true, "running_var") => Rule::RunningVar,
        (true, _) => Rule::Keep,
        (false, "weight") if class.contains("Norm") && rank == 1 => Rule::NormWeight,
        (false, "weight") if class == "Embedding" => Rule::Embedding,
        (false, _) if rank >= 2 => Rule::Weight,
        (false, _) => Rule::Bias,
    }
}

/// The name that an input's elements are made from: `input:ARG`.
#[must_use]
pub fn input_name(argument: &str) -> String {
    format!("input:{argument}")
}

/// All elements, row-major, of the tensor `name`; `None` where the rule is [`Rule::Keep`].
///
/// `gain` counts only for [`Rule::Weight`].
#[must_use]
pub fn fill_f32(name: &str, shape: &[usize], rule: Rule, gain: f64) -> Option<Vec<f32>> {
    let count: usize = shape.iter().product();
    fill_first_f32(name, shape, rule, gain, count)
}

/// The first `count` elements of what [`fill_f32`] gives, without making the rest.
#[must_use]
pub fn fill_first_f32(
    name: &str,
    shape: &[usize],
    rule: Rule,
    gain: f64,
    count: usize,
) -> Option<Vec<f32>> {
    let total: usize = shape.iter().product();
    let count = count.min(total) as u64;
    let hash = hash(name);
    // `(v - 0.5) * a * b / c`, in that order: multiplying or dividing by one changes no bit.
    let centred = |a: f64, b: f64, c: f64| -> Vec<f32> {
        (0..count)
            .map(|i| ((unit_of(hash, i) - 0.5) * a * b / c) as f32)
            .collect()
    };
    let filled = match rule {
        Rule::NormWeight | Rule::RunningVar => (0..count)
            .map(|i| (0.5 + unit_of(hash, i)) as f32)
            .collect(),
        Rule::Embedding | Rule::RunningMean => centred(0.2, 1.0, 1.0),
        Rule::Weight => {
            let fan_in: usize = shape.iter().skip(1).product();
            centred(2.0, gain, (fan_in as f64).sqrt())
        }
        Rule::Bias => centred(2.0, 0.1, 1.0),
        Rule::Input => centred(2.0, 1.0, 1.0),
        Rule::IntInput { vocab } => (0..count)
            .map(|i| (unit_of(hash, i) * vocab as f64).floor() as f32)
            .collect(),
        Rule::Mask { zeros } => {
            let columns = shape.last().copied().unwrap_or(1);
            let first_zero = (total - zeros.min(columns).min(total)) as u64;
            (0..count)
                .map(|i| if i < first_zero { 1.0 } else { 0.0 })
                .collect()
        }
        Rule::Keep => return None,
    };
    Some(filled)
}

/// The float32 values of [`fill_f32`] widened: what the goldens' float64 runs used.
#[must_use]
pub fn fill_f64(name: &str, shape: &[usize], rule: Rule, gain: f64) -> Option<Vec<f64>> {
    let narrow = fill_f32(name, shape, rule, gain)?;
    Some(narrow.into_iter().map(f64::from).collect())
}

/// The elements of an integer input or a mask as integers; `None` for every other rule.
#[must_use]
pub fn fill_i64(name: &str, shape: &[usize], rule: Rule) -> Option<Vec<i64>> {
    match rule {
        Rule::IntInput { .. } | Rule::Mask { .. } => {
            let floats = fill_f32(name, shape, rule, 1.0)?;
            Some(floats.into_iter().map(|value| value as i64).collect())
        }
        _ => None,
    }
}
