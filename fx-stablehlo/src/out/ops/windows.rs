//! Windows over images: convolutions, pools, and windows as columns.

use fx_nn::lowering::{OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::value::DType;

use super::reduce::{better_pair, limit};
use super::reduce_window::{Windows, reduce_window};
use super::{given, rules};
use crate::out::cx::{Array, Cx};
use crate::out::text;

rules! {
    conv1d => |cx, call| conv(cx, call, 1), conv2d => |cx, call| conv(cx, call, 2), conv3d => |cx, call| conv(cx, call, 3),
    conv_transpose1d => |cx, call| conv_transpose(cx, call, 1), conv_transpose2d => |cx, call| conv_transpose(cx, call, 2),
    conv_transpose3d => |cx, call| conv_transpose(cx, call, 3),
    max_pool1d => |cx, call| max_pool(cx, call, 1), max_pool2d => |cx, call| max_pool(cx, call, 2),
    max_pool3d => |cx, call| max_pool(cx, call, 3),
    max_pool1d_with_indices => |cx, call| max_pool_places(cx, call, 1),
    max_pool2d_with_indices => |cx, call| max_pool_places(cx, call, 2),
    max_pool3d_with_indices => |cx, call| max_pool_places(cx, call, 3),
    avg_pool1d => |cx, call| avg_pool(cx, call, 1), avg_pool2d => |cx, call| avg_pool(cx, call, 2),
    avg_pool3d => |cx, call| avg_pool(cx, call, 3),
    adaptive_avg_pool1d => |cx, call| adaptive(cx, call, 1, false),
    adaptive_avg_pool2d => |cx, call| adaptive(cx, call, 2, false),
    adaptive_avg_pool3d => |cx, call| adaptive(cx, call, 3, false),
    adaptive_max_pool1d => |cx, call| adaptive(cx, call, 1, true),
    adaptive_max_pool2d => |cx, call| adaptive(cx, call, 2, true),
    adaptive_max_pool3d => |cx, call| adaptive(cx, call, 3, true),
    lp_pool1d => |cx, call| lp_pool(cx, call, 1), lp_pool2d => |cx, call| lp_pool(cx, call, 2),
    local_response_norm => |cx, call| {
        let own = cx.tensor(call, "x")?;
        let x = cx.single(&own);
        let size = call.int("size")?;
        let square = cx.binary("multiply", &x, &x);
        let (mut window, mut around) = (vec![1; x.rank()], vec![[0, 0]; x.rank()]);
        window[1] = size;
        around[1] = [size / 2, (size - 1) / 2];
        let ones = vec![1; x.rank()];
        let windows = Windows { window: &window, strides: &ones, dilations: &ones, around: &around };
        let body = cx.folding("add", square.dtype);
        let sum = reduce_window(cx, body, &square, 0.0, &windows, &x.shape);
        let scaled = cx.with_number("multiply", &sum, call.float("alpha")? / size as f64);
        let raised = cx.with_number("add", &scaled, call.float("k")?);
        let by = cx.with_number("power", &raised, call.float("beta")?);
        let y = cx.binary("divide", &x, &by);
        given(cx, call, &y)
    },
    unfold => |cx, call| {
        let (x, _) = batched(cx, call, 2)?;
        let geometry = Columns::of(call)?;
        let [pad_rows, pad_columns] = geometry.padding;
        let padded = cx.pad(&x, 0.0, &[[0, 0], [0, 0], [pad_rows; 2], [pad_columns; 2]], &[0; 4]);
        let [rows, columns] = geometry.count([x.shape[2], x.shape[3]]);
        let mut parts = Vec::new();
        for [row, column] in geometry.offsets() {
            let [by_rows, by_columns] = geometry.stride;
            let part = cx.slice(
                &padded,
                &[0, 0, row, column],
                &[x.shape[0], x.shape[1], row + (rows - 1) * by_rows + 1, column + (columns - 1) * by_columns + 1],
                &[1, 1, by_rows, by_columns],
            );
            parts.push(cx.reshape(&part, &[x.shape[0], x.shape[1], 1, rows * columns]));
        }
        let all = cx.concatenate(&parts, 2);
        let (_, shape) = cx.result(call)?;
        Ok(cx.reshape(&all, &shape).into())
    },
    fold => |cx, call| {
        let x = cx.tensor(call, "x")?;
        let geometry = Columns::of(call)?;
        let [height, width] = both(call, "output_size")?;
        let batch = if x.rank() == 3 { x.shape[0] } else { 1 };
        let [rows, columns] = geometry.count([height, width]);
        let [kernel_rows, kernel_columns] = geometry.kernel;
        let area = kernel_rows * kernel_columns;
        let channels = x.shape[x.rank() - 2] / area;
        let parts = cx.reshape(&x, &[batch, channels, area, rows, columns]);
        let ([by_rows, by_columns], [pad_rows, pad_columns]) = (geometry.stride, geometry.padding);
        let (high, wide) = (height + 2 * pad_rows, width + 2 * pad_columns);
        let mut whole: Option<Array> = None;
        for (at, [row, column]) in geometry.offsets().into_iter().enumerate() {
            let part = cx.slice_dim(&parts, 2, at as i64, at as i64 + 1, 1);
            let part = cx.reshape(&part, &[batch, channels, rows, columns]);
            let behind = [high - row - (rows - 1) * by_rows - 1, wide - column - (columns - 1) * by_columns - 1];
            let around = [[0, 0], [0, 0], [row, behind[0]], [column, behind[1]]];
            let part = cx.pad(&part, 0.0, &around, &[0, 0, by_rows - 1, by_columns - 1]);
            whole = Some(match whole {
                Some(whole) => cx.binary("add", &whole, &part),
                None => part,
            });
        }
        let Some(whole) = whole else {
            return Err(Error::msg("a window without elements"));
        };
        let image = cx.slice(&whole, &[0, 0, pad_rows, pad_columns], &[batch, channels, pad_rows + height, pad_columns + width], &[1; 4]);
        let (_, shape) = cx.result(call)?;
        Ok(cx.reshape(&image, &shape).into())
    },
}

/// Two numbers; one stands for both.
fn both(call: &OpCall<'_>, name: &str) -> Result<[i64; 2]> {
    let several = call.several(name, 2)?;
    <[i64; 2]>::try_from(several).map_err(|_| Error::msg(format_args!("`{name}` is two numbers")))
}

/// `x` with a batch, and whether it had one.
fn batched(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<(Array, bool)> {
    let x = cx.tensor(call, "x")?;
    if x.rank() == dims + 2 {
        return Ok((x, true));
    }
    let shape = [
        vec![1; (dims + 2).saturating_sub(x.rank())],
        x.shape.clone(),
    ]
    .concat();
    Ok((cx.reshape(&x, &shape), false))
}

/// What a convolution does along its dims.
struct Convolution {
    strides: Vec<i64>,
    padding: Vec<[i64; 2]>,
    spread: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
}

fn convolve(cx: &mut Cx, x: &Array, weight: &Array, how: &Convolution, sizes: &[i64]) -> Array {
    let dims = how.strides.len();
    let places: Vec<String> = (0..dims).map(|dim| dim.to_string()).collect();
    let places = places.join(", ");
    let turned = vec!["false"; dims].join(", ");
    let attributes = format!(
        "window_strides = {}, padding = {}, lhs_dilation = {}, rhs_dilation = {}, \
         window_reversal = array<i1: {turned}>, dimension_numbers = \
         #stablehlo.conv<[b, f, {places}]x[o, i, {places}]->[b, f, {places}]>, feature_group_count = {} : i64, \
         batch_group_count = 1 : i64",
        text::array(&how.strides),
        text::pairs(&how.padding),
        text::array(&how.spread),
        text::array(&how.dilation),
        how.groups
    );
    let shape = [vec![x.shape[0], weight.shape[0]], sizes.to_vec()].concat();
    cx.op("convolution", &[x, weight], &attributes, x.dtype, &shape)
}

fn biased(cx: &mut Cx, call: &OpCall<'_>, y: Array) -> Result<Array> {
    Ok(match cx.optional(call, "bias")? {
        Some(bias) => {
            let bias = cx.broadcast(&bias, &[1], &y.shape);
            cx.binary("add", &y, &bias)
        }
        None => y,
    })
}

fn conv(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, _) = batched(cx, call, dims)?;
    let weight = cx.tensor(call, "weight")?;
    let (_, shape) = cx.result(call)?;
    let how = Convolution {
        strides: call.several("stride", dims)?,
        padding: call
            .several("padding", dims)?
            .into_iter()
            .map(|by| [by, by])
            .collect(),
        spread: vec![1; dims],
        dilation: call.several("dilation", dims)?,
        groups: call.int("groups")?,
    };
    let y = convolve(cx, &x, &weight, &how, &shape[shape.len() - dims..]);
    let y = biased(cx, call, y)?;
    given(cx, call, &y)
}

fn conv_transpose(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, _) = batched(cx, call, dims)?;
    let weight = cx.tensor(call, "weight")?;
    let (_, shape) = cx.result(call)?;
    let groups = call.int("groups")?;
    let kernel = weight.shape[2..].to_vec();
    let (inputs, outputs) = (weight.shape[0] / groups, weight.shape[1]);
    // `[in, out / groups, ..]` as `[out, in / groups, ..]`, back to front.
    let parts = cx.reshape(
        &weight,
        &[vec![groups, inputs, outputs], kernel.clone()].concat(),
    );
    let order: Vec<i64> = [0, 2, 1].into_iter().chain(3..dims as i64 + 3).collect();
    let parts = cx.transpose(&parts, &order);
    let turned = cx.reshape(
        &parts,
        &[vec![groups * outputs, inputs], kernel.clone()].concat(),
    );
    let places: Vec<i64> = (2..dims as i64 + 2).collect();
    let turned = cx.reverse(&turned, &places);
    let dilation = call.several("dilation", dims)?;
    let (padding, added) = (
        call.several("padding", dims)?,
        call.several("output_padding", dims)?,
    );
    let around = (0..dims).map(|dim| {
        let reach = dilation[dim] * (kernel[dim] - 1) - padding[dim];
        [reach, reach + added[dim]]
    });
    let how = Convolution {
        strides: vec![1; dims],
        padding: around.collect(),
        spread: call.several("stride", dims)?,
        dilation,
        groups,
    };
    let y = convolve(cx, &x, &turned, &how, &shape[shape.len() - dims..]);
    let y = biased(cx, call, y)?;
    given(cx, call, &y)
}

/// A pool's windows over the last dims.
struct Pool {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    /// What is added behind, where windows reach over the end.
    behind: Vec<i64>,
    sizes: Vec<i64>,
    out: Vec<i64>,
}

impl Pool {
    fn of(
        cx: &Cx,
        call: &OpCall<'_>,
        x: &Array,
        dims: usize,
        dilates: bool,
        pads: bool,
    ) -> Result<Self> {
        let shape = match cx.result(call) {
            Ok((_, shape)) => shape,
            Err(_) => cx.results(call)?.swap_remove(0).1,
        };
        let out = shape[shape.len() - dims..].to_vec();
        let kernel = call.several("kernel_size", dims)?;
        let stride = call.several("stride", dims)?;
        let padding = if pads {
            call.several("padding", dims)?
        } else {
            vec![0; dims]
        };
        let dilation = if dilates {
            call.several("dilation", dims)?
        } else {
            vec![1; dims]
        };
        let sizes = x.shape[x.rank() - dims..].to_vec();
        let ceil = call.flag("ceil_mode")?;
        let behind = (0..dims).map(|dim| match ceil {
            true => {
                let reach = (out[dim] - 1) * stride[dim] + (kernel[dim] - 1) * dilation[dim] + 1;
                (reach - sizes[dim] - padding[dim]).max(0)
            }
            false => padding[dim],
        });
        Ok(Pool {
            behind: behind.collect(),
            kernel,
            stride,
            padding,
            dilation,
            sizes,
            out,
        })
    }

    /// The operation over windows of `x`, whose first dims have none.
    fn window(&self, x: &Array, write: impl FnOnce(&Windows<'_>, &[i64])) {
        let front = x.rank() - self.kernel.len();
        let lead = |one: i64, of: &[i64]| [vec![one; front], of.to_vec()].concat();
        let pads = self
            .padding
            .iter()
            .zip(&self.behind)
            .map(|(before, behind)| [*before, *behind]);
        let around: Vec<[i64; 2]> = std::iter::repeat_n([0, 0], front).chain(pads).collect();
        let windows = Windows {
            window: &lead(1, &self.kernel),
            strides: &lead(1, &self.stride),
            dilations: &lead(1, &self.dilation),
            around: &around,
        };
        let shape = [x.shape[..front].to_vec(), self.out.clone()].concat();
        write(&windows, &shape);
    }

    fn reduced(&self, cx: &mut Cx, op: &str, x: &Array, start: f64) -> Array {
        let mut made = None;
        self.window(x, |windows, shape| {
            let body = cx.folding(op, x.dtype);
            made = Some(reduce_window(cx, body, x, start, windows, shape));
        });
        made.expect("the window is written at once")
    }

    /// How many elements each window of a dim has, with those of the padding or without.
    fn counts(&self, dim: usize, with_padding: bool) -> Vec<f64> {
        let size = self.sizes[dim];
        let windows = (0..self.out[dim]).map(|at| {
            let start = at * self.stride[dim] - self.padding[dim];
            let end = (start + self.kernel[dim]).min(size + self.padding[dim]);
            match with_padding {
                true => end - start,
                false => end.min(size) - start.max(0),
            }
        });
        windows.map(|count| count as f64).collect()
    }
}

fn max_pool(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, _) = batched(cx, call, dims)?;
    let pool = Pool::of(cx, call, &x, dims, true, true)?;
    let y = pool.reduced(cx, "maximum", &x, limit(x.dtype, true));
    given(cx, call, &y)
}

fn max_pool_places(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, _) = batched(cx, call, dims)?;
    let pool = Pool::of(cx, call, &x, dims, true, true)?;
    let types = cx.results(call)?;
    // Places through each image.
    let image = x.shape[2..].to_vec();
    let places = cx.iota(0, DType::I64, &[image.iter().product()]);
    let places = cx.reshape(&places, &image);
    let at: Vec<i64> = (2..x.rank() as i64).collect();
    let places = cx.broadcast(&places, &at, &x.shape);
    let start = cx.splat(limit(x.dtype, true), x.dtype, &[]);
    let none = cx.splat(i64::MAX as f64, DType::I64, &[]);
    let body = better_pair(cx, x.dtype, "GT")?;
    let mut made = Vec::new();
    pool.window(&x, |windows, shape| {
        let results = [(x.dtype, shape.to_vec()), (DType::I64, shape.to_vec())];
        let attributes = windows.attributes();
        made = cx.operations(
            "reduce_window",
            &[&x, &places, &start, &none],
            &attributes,
            vec![body],
            &results,
        );
    });
    let made = made
        .iter()
        .zip(&types)
        .map(|(y, (_, shape))| cx.reshape(y, shape).into());
    Ok(Val::List(made.collect()))
}

fn avg_pool(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, _) = batched(cx, call, dims)?;
    let x = cx.single(&x);
    let pool = Pool::of(cx, call, &x, dims, false, true)?;
    let y = averaged(cx, &pool, &x, call.flag("count_include_pad")?)?;
    given(cx, call, &y)
}

fn averaged(cx: &mut Cx, pool: &Pool, x: &Array, with_padding: bool) -> Result<Array> {
    let mut y = pool.reduced(cx, "add", x, 0.0);
    for dim in 0..pool.kernel.len() {
        let counts = pool.counts(dim, with_padding);
        if counts.iter().all(|count| *count == counts[0]) {
            y = cx.with_number("divide", &y, counts[0]);
            continue;
        }
        let counts = cx.numbers(&counts, y.dtype);
        let at = (y.rank() - pool.kernel.len() + dim) as i64;
        let counts = cx.broadcast(&counts, &[at], &y.shape);
        y = cx.binary("divide", &y, &counts);
    }
    Ok(y)
}

fn lp_pool(cx: &mut Cx, call: &OpCall<'_>, dims: usize) -> Result<Val> {
    let (x, _) = batched(cx, call, dims)?;
    let x = cx.single(&x);
    let power = call.float("norm_type")?;
    let pool = Pool::of(cx, call, &x, dims, false, false)?;
    let raised = cx.with_number("power", &x, power);
    let mean = averaged(cx, &pool, &raised, true)?;
    let sum = cx.with_number(
        "multiply",
        &mean,
        pool.kernel.iter().product::<i64>() as f64,
    );
    let y = cx.with_number("power", &sum, 1.0 / power);
    given(cx, call, &y)
}

/// Windows of nearly equal sizes, dim by dim.
fn adaptive(cx: &mut Cx, call: &OpCall<'_>, dims: usize, is_max: bool) -> Result<Val> {
    let own = cx.tensor(call, "x")?;
    let mut x = if is_max { own } else { cx.single(&own) };
    let (_, shape) = cx.result(call)?;
    call.needs_no(&["output_size"]);
    for at in 0..dims {
        let dim = x.rank() - dims + at;
        let (size, out) = (x.shape[dim], shape[dim]);
        let window = |place: i64| [place * size / out, ((place + 1) * size + out - 1) / out];
        if size == out {
            continue;
        }
        if is_max {
            let mut parts = Vec::new();
            for place in 0..out {
                let [start, end] = window(place);
                let part = cx.slice_dim(&x, dim, start, end, 1);
                let most = cx.reduce("maximum", &part, limit(x.dtype, true), &[dim as i64]);
                parts.push(cx.keeping(&most, &[dim as i64], &x.shape));
            }
            x = cx.concatenate(&parts, dim);
            continue;
        }
        if size % out == 0 {
            let by = size / out;
            let mut sizes = x.shape.clone();
            sizes.splice(dim..=dim, [out, by]);
            let parts = cx.reshape(&x, &sizes);
            let sum = cx.reduce("add", &parts, 0.0, &[dim as i64 + 1]);
            x = cx.with_number("divide", &sum, by as f64);
            continue;
        }
        // A product with what each place takes of each element.
        let mut shares = Vec::new();
        for element in 0..size {
            for place in 0..out {
                let [start, end] = window(place);
                let is_in = (start..end).contains(&element);
                shares.push(if is_in {
                    1.0 / (end - start) as f64
                } else {
                    0.0
                });
            }
        }
        let shares = cx.numbers(&shares, x.dtype);
        let shares = cx.reshape(&shares, &[size, out]);
        let product = cx.dot(&x, &shares, &[], &[[dim as i64, 0]]);
        let last = x.rank() as i64 - 1;
        let mut order: Vec<i64> = (0..last).collect();
        order.insert(dim, last);
        x = cx.transpose(&product, &order);
    }
    given(cx, call, &x)
}

/// Windows of two dims as columns.
struct Columns {
    kernel: [i64; 2],
    dilation: [i64; 2],
    padding: [i64; 2],
    stride: [i64; 2],
}

impl Columns {
    fn of(call: &OpCall<'_>) -> Result<Self> {
        Ok(Columns {
            kernel: both(call, "kernel_size")?,
            dilation: both(call, "dilation")?,
            padding: both(call, "padding")?,
            stride: both(call, "stride")?,
        })
    }

    /// How many windows fit each way.
    fn count(&self, sizes: [i64; 2]) -> [i64; 2] {
        [0, 1].map(|at| {
            let reach = self.dilation[at] * (self.kernel[at] - 1) + 1;
            (sizes[at] + 2 * self.padding[at] - reach) / self.stride[at] + 1
        })
    }

    /// Where the elements of a window stand, from its first.
    fn offsets(&self) -> Vec<[i64; 2]> {
        let rows = 0..self.kernel[0];
        let places = rows.flat_map(|row| (0..self.kernel[1]).map(move |column| [row, column]));
        places
            .map(|[row, column]| [row * self.dilation[0], column * self.dilation[1]])
            .collect()
    }
}
