//! [`Conv2d`]: packed weights, and the choice of the algorithm that runs them.

use crate::SizeError;
use crate::conv::depthwise::Depthwise;
use crate::conv::direct::Direct;
use crate::conv::epilogue::{ConvFinish, Epilogue};
use crate::conv::first::First;
use crate::conv::pairs::PairConv;
use crate::conv::spec::{check_conv, reads_plain};
use crate::conv::winograd::Winograd;
use crate::conv::{Blocked, ConvOptions, ConvSpec};
use crate::error::check;
use crate::terms::Floats;

/// A two-dimensional convolution with its weights packed for one machine.
///
/// ```
/// use fx_kernels::Activation;
/// use fx_kernels::conv::{Blocked, Conv2d, ConvOptions, ConvSpec};
///
/// // A 3x3 window of ones over an image of ones: each result is the number of pixels under the window.
/// let conv = Conv2d::new(ConvSpec::new(1, 1, 3), &[1.0; 9], Some(&[0.5]), ConvOptions::default())?;
/// let input = Blocked::from_nchw(&[1.0; 9], 1, 1, 3, 3, conv.halo())?;
/// let mut out = Blocked::zeros(1, 1, 3, 3, 0);
/// conv.run(&input, Activation::Relu.into(), &mut out)?;
/// let mut plain = [0.0; 9];
/// out.to_nchw(&mut plain)?;
/// assert_eq!(plain, [4.5, 6.5, 4.5, 6.5, 9.5, 6.5, 4.5, 6.5, 4.5]);
/// # Ok::<(), fx_kernels::SizeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Conv2d {
    spec: ConvSpec,
    kind: Kind,
    /// For few channels, from plain images.
    first: Option<First>,
}

#[derive(Debug, Clone)]
enum Kind {
    Direct(AnyDirect),
    Depthwise(Depthwise),
    /// For images that are large enough, and for others.
    Winograd(Box<Winograd>, AnyDirect),
}

/// A direct convolution of one type of terms.
#[derive(Debug, Clone)]
enum AnyDirect {
    Floats(Direct<Floats>),
    Pairs(PairConv),
}

impl AnyDirect {
    fn new(
        spec: ConvSpec,
        weight: &[f32],
        bias: Option<&[f32]>,
        ConvOptions { level, bf16, .. }: ConvOptions,
    ) -> AnyDirect {
        let pairs = || PairConv::new(spec, weight, bias, level);
        match bf16.then(pairs).flatten() {
            Some(pairs) => AnyDirect::Pairs(pairs),
            None => AnyDirect::Floats(Direct::new(Floats, spec, weight, bias, level)),
        }
    }

    fn run(&self, input: &Blocked, epilogue: Epilogue, out: &mut Blocked) {
        match self {
            AnyDirect::Floats(direct) => direct.run(input, epilogue, out),
            AnyDirect::Pairs(pairs) => pairs.run(input, epilogue, out),
        }
    }
}

impl Conv2d {
    /// Packs a weight of PyTorch's layout `[out, in / groups, kernel rows, kernel columns]` and a bias of `out` floats.
    ///
    /// # Errors
    ///
    /// Where a size of the spec but the padding is zero, groups do not divide the channels, or a slice has another
    /// length than the sizes say.
    pub fn new(
        spec: ConvSpec,
        weight: &[f32],
        bias: Option<&[f32]>,
        options: ConvOptions,
    ) -> Result<Conv2d, SizeError> {
        check_conv(&spec, weight, bias)?;
        let level = options.level;
        let direct = || AnyDirect::new(spec, weight, bias, options);
        // Winograd's algorithm on floats is faster than all products of pairs.
        let kind = if spec.is_depthwise() {
            Kind::Depthwise(Depthwise::new(spec, weight, bias, level))
        } else if options.winograd && Winograd::suits(&spec) {
            Kind::Winograd(Box::new(Winograd::new(spec, weight, bias, level)), direct())
        } else {
            Kind::Direct(direct())
        };
        let first = reads_plain(&spec).then(|| First::new(spec, weight, bias, level));
        Ok(Conv2d { spec, kind, first })
    }

    /// The sizes it was made with.
    pub fn spec(&self) -> &ConvSpec {
        &self.spec
    }

    /// Whether large images are convolved by Winograd's algorithm, which is in `f32`.
    pub fn uses_winograd(&self) -> bool {
        matches!(&self.kind, Kind::Winograd(..))
    }

    /// Whether it rounds images to `bf16`, but for those that [Winograd's algorithm](Conv2d::uses_winograd) takes.
    pub fn is_bf16(&self) -> bool {
        matches!(
            &self.kind,
            Kind::Direct(AnyDirect::Pairs(_)) | Kind::Winograd(_, AnyDirect::Pairs(_))
        )
    }

    /// The halo that its input needs; a larger one works too.
    pub fn halo(&self) -> usize {
        self.spec.padding[0].max(self.spec.padding[1])
    }

    /// Computes `activation(conv(input) + bias)` into `out`, which has the sizes of the result and any halo; or
    /// `activation(conv(input) + bias + out)` where `finish` adds.
    ///
    /// All channels and pixels of `out` are written; its halo stays as it is.
    ///
    /// # Errors
    ///
    /// Where the input has other channels or a smaller halo than [`Conv2d::halo`], or `out` has other sizes than the
    /// result.
    pub fn run(
        &self,
        input: &Blocked,
        finish: ConvFinish,
        out: &mut Blocked,
    ) -> Result<(), SizeError> {
        let spec = &self.spec;
        check("a pixel of the input", spec.in_channels, input.channels())?;
        check(
            "the halo of the input",
            self.halo(),
            input.halo().min(self.halo()),
        )?;
        self.check_result((input.batch(), input.height(), input.width()), out)?;
        let side = out.height().min(out.width());
        let epilogue = Epilogue::new(finish);
        match &self.kind {
            Kind::Direct(direct) => direct.run(input, epilogue, out),
            Kind::Winograd(winograd, _) if side >= Winograd::SIDE => {
                winograd.run(input, epilogue, out);
            }
            Kind::Winograd(_, direct) => direct.run(input, epilogue, out),
            Kind::Depthwise(depthwise) => depthwise.run(input, epilogue, out),
        }
        Ok(())
    }

    /// As [`Conv2d::run`], from a plain image `[n][in channels][height][width]` without a halo.
    ///
    /// With few input channels, as in the first layer of a network, this is faster than [`Conv2d::run`]; with many, the
    /// image is first copied to blocks.
    ///
    /// # Errors
    ///
    /// Where `input` has another length than the sizes say, or `out` has other sizes than the result.
    pub fn run_nchw(
        &self,
        input: &[f32],
        (batch, height, width): (usize, usize, usize),
        finish: ConvFinish,
        out: &mut Blocked,
    ) -> Result<(), SizeError> {
        let spec = &self.spec;
        let Some(first) = &self.first else {
            let input =
                Blocked::from_nchw(input, batch, spec.in_channels, height, width, self.halo())?;
            return self.run(&input, finish, out);
        };
        check(
            "the input",
            batch * spec.in_channels * height * width,
            input.len(),
        )?;
        self.check_result((batch, height, width), out)?;
        first.run(input, (height, width), Epilogue::new(finish), out);
        Ok(())
    }

    /// Fails where the result has other sizes than an input of these sizes gives.
    fn check_result(
        &self,
        (batch, height, width): (usize, usize, usize),
        out: &Blocked,
    ) -> Result<(), SizeError> {
        let (height, width) = self.spec.out_size(height, width);
        let sizes = (batch, self.spec.out_channels, height, width);
        out.expect("the result of the convolution", sizes)
    }
}
