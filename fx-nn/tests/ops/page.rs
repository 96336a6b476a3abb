//! `docs/ops.md`, written from the registry: the test fails if it is stale, and `UPDATE_DOCS=1`
//! writes it again.

use std::fmt::Write as _;
use std::path::Path;

use fx_nn::ir::{Function, ParamSpec, registry};
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::{Form, OpInfo};

use crate::ops::layers::layers;

/// PyTorch's names, with the module of those in `torch.nn.functional`: written by `names.py`.
const NAMES: &str = include_str!("../../../tests/differential/names.txt");

/// Functions whose name PyTorch does not have, and PyTorch's counterpart.
const OWN_NAMES: &[(&str, &str)] = &[
    ("to_device", "Tensor.to"),
    ("to_dtype", "Tensor.to"),
    ("type_as", "Tensor.type_as"),
    ("mask_scores", "the masks of torch.nn.MultiheadAttention"),
    (
        "quantize_affine",
        "torch.ops.torchao.quantize_affine, torch.quantize_per_tensor",
    ),
    (
        "dequantize_affine",
        "torch.ops.torchao.dequantize_affine, torch.dequantize",
    ),
    (
        "fake_quantize_affine",
        "torch.fake_quantize_per_tensor_affine, torch.fake_quantize_per_channel_affine",
    ),
    ("size", "Tensor.size"),
    ("view", "Tensor.view"),
    ("expand", "Tensor.expand"),
    ("contiguous", "Tensor.contiguous"),
    ("masked_fill", "Tensor.masked_fill"),
    (
        "interpolate_with",
        "torch.nn.functional.interpolate, with all options",
    ),
    ("inverse", "torch.inverse"),
    ("lgamma", "torch.lgamma"),
    ("lu_unpack", "torch.lu_unpack"),
    ("multi_dot", "torch.linalg.multi_dot"),
    ("pinverse", "torch.pinverse"),
    ("repeat", "Tensor.repeat"),
    ("scatter_value", "torch.scatter"),
    ("stochastic_depth", "torchvision.ops.stochastic_depth"),
    ("tensordot_dims", "torch.tensordot"),
    ("vector_norm", "torch.linalg.vector_norm"),
    ("new_zeros", "Tensor.new_zeros"),
    ("new_ones", "Tensor.new_ones"),
    ("new_empty", "Tensor.new_empty"),
    ("new_full", "Tensor.new_full"),
    // `torch.nn.functional` has them too, and says to use these.
    ("sigmoid", "torch.sigmoid"),
    ("tanh", "torch.tanh"),
];

fn pytorch(name: &str, path: &str) -> String {
    if let Some((_, own)) = OWN_NAMES.iter().find(|(ours, _)| *ours == name) {
        return format!("`{own}`");
    }
    if NAMES
        .lines()
        .any(|line| line == format!("{name} torch.nn.functional"))
    {
        return format!("`torch.nn.functional.{name}`");
    }
    // `fx_nn::ops::fft::rfft` is `torch.fft.rfft`.
    let place = path.trim_start_matches("fx_nn::ops::");
    format!("`torch.{}`", place.replace("r#", "").replace("::", "."))
}

/// Types as a user writes them in a call.
fn arguments(params: &[ParamSpec]) -> String {
    let each = params.iter().map(|p| {
        let ty =
            p.ty.replace("crate :: ", "")
                .replace(' ', "")
                .replace("&mut", "&mut ");
        let default = p.default.as_ref().map(|d| format!(" = {d}"));
        format!("{}: {ty}{}", p.name, default.unwrap_or_default())
    });
    format!("`{}`", each.collect::<Vec<_>>().join(", "))
}

fn effects(function: Function) -> &'static str {
    use fx_nn::ir::Effects;
    let effects = function.def().effects;
    match effects {
        e if e.is_pure() => "pure",
        Effects::RANDOM => "random",
        Effects::IO => "stops a run",
        _ => "writes its arguments",
    }
}

fn page() -> Result<String> {
    let mut text = String::from(
        "# Operations and layers\n\n\
         Written from the registry by `UPDATE_DOCS=1 cargo test -p fx-nn --test behaviour ops::`; a stale page fails that test.\n\
         Gradients are compared with central differences in `f64`, and with PyTorch's (`docs/routes.md`).\n\n\
         ## Functions\n\n\
         In `fx_nn::ops`, those of `torch.linalg`, `torch.fft`, `torch.special` and `torch.signal` in its modules\n\
         `linalg`, `fft`, `special` and `signal`. A method is one of `Tensor` too, and records `call_method`. A `List` has\n\
         `get(0)?`, and `unpack()?` into an array: `let [q, k, v] = x.chunk(3, -1)?.unpack()?`. Sizes (`Sizes`) are numbers,\n\
         sizes of a traced tensor, or `x.shape()?`.\n\n\
         Rust has no default arguments, so a call writes all of them. `Function::call_as` takes keywords and fills in the\n\
         rest: `function!(ops::cross_entropy).call_as::<Tensor>(args![&x, &y, reduction = \"sum\"])?`. Reductions have\n\
         two methods instead of a `keepdim`: `x.sum(dim)` and `x.sum_keepdim(dim)`, and so for `mean`, `var`, `std`,\n\
         `amax` and `amin`.\n\n\
         `infer_shapes` knows what the functions with a shape rule give. The core set is what exporters and compilers have\n\
         to know: `Decompositions::core()` replaces every other function by its members.\n\n\
         | name | method | PyTorch | arguments | result | effects | differentiable | shape rule | core set | kind | cost | \
         compiled |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let all = registry::functions();
    for function in all.iter().filter(|f| f.path().starts_with("fx_nn::ops::")) {
        let name = function.name();
        let method = registry::methods(name).iter().any(|m| m == function);
        let info = OpInfo::of(*function)?;
        let _ = writeln!(
            text,
            "| `{name}` | {} | {} | {} | `{}` | {} | {} | {} | {} | {} | {} | {} |",
            if method { "yes" } else { "" },
            pytorch(name, function.path()),
            arguments(function.params()),
            function.def().returns.replace(' ', "").replace(',', ", "),
            effects(*function),
            info.no_gradient
                .map_or("yes".to_string(), |no| format!("no: it {}", no.0)),
            info.rule.map_or("no", |_| "yes"),
            match info.form {
                Form::Member => "member",
                Form::Composed => "member, composed",
                Form::Decomposed => "decomposed",
                _ => "no",
            },
            info.kind
                .map_or(String::new(), |kind| format!("{kind:?}").to_lowercase()),
            info.cost.map_or("", |_| "yes"),
            info.cpu.map_or("", |_| "yes"),
        );
    }
    text.push_str(
        "\n## Operators\n\n\
         Signs in Rust, `call_function` in a graph; `getattr` is `x.shape()`, `x.ndim()`.\n\n\
         | path | PyTorch | arguments | effects |\n|---|---|---|---|\n",
    );
    for function in all
        .iter()
        .filter(|f| f.path().starts_with("fx_core::operator::"))
    {
        let theirs = match function.name() {
            "getattr" => "`getattr`".to_string(),
            "_assert" => "`torch._assert`".to_string(),
            "assert_specialized" => "what `concrete_args` checks".to_string(),
            name => format!("`operator.{name}`"),
        };
        let _ = writeln!(
            text,
            "| `{}` | {theirs} | {} | {} |",
            function.path(),
            arguments(function.params()),
            effects(*function),
        );
    }
    text.push_str(
        "\n## Layers\n\n\
         In `fx_nn::nn`, `torch.nn`'s under the same names, and `Int8Linear`, `LoraLinear`,\n\
         `QuantizedLinear` and `StochasticDepth`: leaves for a tracer, but for `Sequential`. All are differentiable, for their\n\
         inputs and their parameters.\n\
         \"Impure\" says when running one does more than give its result.\n\n\
         | name | for example | `forward` | parameters and buffers | impure |\n|---|---|---|---|---|\n",
    );
    for mut layer in layers()? {
        let held: Vec<String> = layer
            .module
            .state_dict()
            .iter()
            .map(|(name, value)| {
                let shape = value
                    .as_object()
                    .and_then(|o| o.shape().map(<[usize]>::to_vec));
                format!("`{name} {:?}`", shape.unwrap_or_default())
            })
            .collect();
        layer.module.train();
        let impure = if !layer.module.effects().is_pure() {
            "in training"
        } else {
            ""
        };
        let made = layer.made.split_whitespace().collect::<Vec<_>>().join(" ");
        let made = made
            .replace(" :: ", "::")
            .replace(" . ", ".")
            .replace(" ?", "?");
        let _ = writeln!(
            text,
            "| `{}` | `{made}` | {} | {} | {impure} |",
            layer.name,
            arguments(layer.module.params()),
            held.join(", "),
        );
    }
    Ok(text)
}

#[test]
fn the_page_is_what_is_registered() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ops.md");
    let expected = page()?;
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).map_err(Error::other)?;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/ops.md is stale: run UPDATE_DOCS=1 cargo test -p fx-nn --test behaviour ops::"
    );
    Ok(())
}
