//! fx's operators, on tensors and on numbers that a run knows.

use fx_nn::prelude::*;
use fx_nn::value::Dim;
use fx_nn::{Error, Result, function_table, operator};

use super::arithmetic::{bits, both, common, floor_divide, inverted, pair, remainder, shift};
use crate::out::Rule;
use crate::out::context::Cx;
use fx_nn::lowering::{Name, Operand, Val};
use fx_nn::lowering::{OpCall, wrapped};

function_table! { Rule {
    operator::add => Rule::new(|cx, call| match (call.val("a")?, call.val("b")?) {
        (Val::List(mut a), Val::List(b)) => {
            a.extend(b);
            Ok(Val::List(a))
        }
        _ => pair("Add", "a", "b")(cx, call),
    }),
    operator::sub => Rule::new(pair("Sub", "a", "b")),
    operator::mul => Rule::new(pair("Mul", "a", "b")),
    operator::truediv => Rule::new(pair("Div", "a", "b")),
    operator::floordiv => Rule::new(|cx, call| floor_divide(cx, call, "a", "b")),
    operator::r#mod => Rule::new(|cx, call| remainder(cx, call, "a", "b")),
    operator::pow => Rule::new(power),
    operator::neg => Rule::new(|cx, call| {
        let x = cx.elements(&call.val("a")?, call.dtype()?)?;
        let name = cx.cast_op("Neg", &[&x])?;
        call.given(name)
    }),
    operator::abs => Rule::new(|cx, call| {
        let x = cx.elements(&call.val("a")?, call.dtype()?)?;
        let name = cx.cast_op("Abs", &[&x])?;
        call.given(name)
    }),
    operator::matmul => Rule::new(|cx, call| {
        let (a, b) = both(cx, call, "a", "b", call.dtype()?)?;
        let name = cx.cast_op("MatMul", &[&a, &b])?;
        call.given(name)
    }),
    operator::eq => Rule::new(|cx, call| compared(cx, call, "Equal", false)),
    operator::ne => Rule::new(|cx, call| compared(cx, call, "Equal", true)),
    operator::lt => Rule::new(|cx, call| compared(cx, call, "Less", false)),
    operator::le => Rule::new(|cx, call| compared(cx, call, "LessOrEqual", false)),
    operator::gt => Rule::new(|cx, call| compared(cx, call, "Greater", false)),
    operator::ge => Rule::new(|cx, call| compared(cx, call, "GreaterOrEqual", false)),
    operator::and_ => Rule::new(bits("BitwiseAnd", "And", "a", "b")),
    operator::or_ => Rule::new(bits("BitwiseOr", "Or", "a", "b")),
    operator::xor => Rule::new(bits("BitwiseXor", "Xor", "a", "b")),
    operator::invert => Rule::new(inverted("a")),
    operator::lshift => Rule::new(|cx, call| shift(cx, call, "a", "b", true)),
    operator::rshift => Rule::new(|cx, call| shift(cx, call, "a", "b", false)),
    operator::_assert => Rule::new(|_, call| {
        call.needs_no(&["condition", "message"]);
        Ok(Val::None)
    }),
    operator::assert_specialized => Rule::new(|_, call| {
        call.needs_no(&["value", "argument", "expected"]);
        Ok(Val::None)
    }),
    operator::getattr => Rule::refused("an attribute that is not a size is not part of a file"),
    operator::getitem => Rule::new(getitem),
} }

/// A power. Engines compute those of whole numbers as floats: these are products.
fn power(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let dtype = call.dtype()?;
    let (a, b) = both(cx, call, "a", "b", dtype)?;
    let exponent = call.val("b")?.as_f64();
    let has_roots = dtype.is_floating_point() && dtype != DType::F16;
    let name = match exponent {
        Some(2.0) => cx.cast_op("Mul", &[&a, &a])?,
        // What minus infinity gives tells a root from a power.
        Some(0.5) if has_roots => cx.op("Sqrt", &[&a.name]),
        Some(-0.5) if has_roots => {
            let root = cx.op("Sqrt", &[&a.name]);
            cx.op("Reciprocal", &[&root])
        }
        _ if dtype.is_floating_point() => cx.op("Pow", &[&a.name, &b.name]),
        _ => {
            let (a, b) = (cx.cast(&a, DType::I64)?, cx.cast(&b, DType::I64)?);
            let product = match call.val("b")?.as_int() {
                Some(exponent) if exponent >= 0 => squared(cx, &a.name, exponent),
                Some(_) => {
                    return Err(Error::msg(
                        "a whole number to a negative power: convert it to a float",
                    ));
                }
                None => whole_power(cx, &a.name, &b.name),
            };
            cx.given_as(product, DType::I64, dtype)?
        }
    };
    call.given(name)
}

/// A power by a known exponent, from squares.
fn squared(cx: &mut Cx, a: &Name, exponent: i64) -> Name {
    let (mut square, mut product): (Name, Option<Name>) = (a.clone(), None);
    let mut left = exponent;
    while left > 0 {
        if left % 2 == 1 {
            product = Some(match product {
                Some(product) => cx.op("Mul", &[&product, &square]),
                None => square.clone(),
            });
        }
        left /= 2;
        if left > 0 {
            square = cx.op("Mul", &[&square, &square]);
        }
    }
    match product {
        Some(product) => product,
        // One in each element.
        None => {
            let same = cx.op("Equal", &[a, a]);
            let seven = i64::from(7);
            cx.node("Cast").input(&same).int("to", seven).output()
        }
    }
}

/// A power by an exponent that a run knows: below 64, from squares where its bits are set; beyond, and below 0, what
/// is no unit gives 0.
fn whole_power(cx: &mut Cx, a: &Name, b: &Name) -> Name {
    let (zero, one, two) = (cx.i64(0), cx.i64(1), cx.i64(2));
    // An exponent beyond has the parity that a unit's sign needs.
    let most = cx.i64(63);
    let parity = cx.op("Mod", &[b, &two]);
    let far = cx.i64(62);
    let far = cx.op("Add", &[&far, &parity]);
    let beyond = cx.op("Greater", &[b, &most]);
    let mut left = cx.op("Where", &[&beyond, &far, b]);
    let below = cx.op("Less", &[b, &zero]);
    left = cx.op("Where", &[&below, &parity, &left]);
    let (mut square, mut product) = (a.clone(), one.clone());
    for bit in 0..6 {
        let rest = cx.op("Mod", &[&left, &two]);
        let is_set = cx.op("Equal", &[&rest, &one]);
        let factor = cx.op("Where", &[&is_set, &square, &one]);
        product = cx.op("Mul", &[&product, &factor]);
        left = cx.op("Div", &[&left, &two]);
        if bit < 5 {
            square = cx.op("Mul", &[&square, &square]);
        }
    }
    let size = cx.op("Abs", &[a]);
    let is_unit = cx.op("Equal", &[&size, &one]);
    let of_units = cx.op("Where", &[&is_unit, &product, &zero]);
    let outside = cx.op("Or", &[&below, &beyond]);
    cx.op("Where", &[&outside, &of_units, &product])
}

/// A comparison, in the type that holds both.
fn compared(cx: &mut Cx, call: &OpCall<'_>, op: &str, not: bool) -> Result<Val> {
    let dtype = common(&call.val("a")?, &call.val("b")?);
    let (a, b) = both(cx, call, "a", "b", dtype)?;
    let (a, b) = (cx.carried(op, &a)?, cx.carried(op, &b)?);
    let name = cx.op(op, &[&a.name, &b.name]);
    let name = if not { cx.op("Not", &[&name]) } else { name };
    call.given(name)
}

/// One part of an index.
enum Part {
    At(Val),
    Slice(Box<[Val; 3]>),
    New,
    Whole,
    Pick(Operand),
}

fn getitem(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let index = call.val("b")?;
    match call.val("a")? {
        Val::List(items) => match index {
            Val::Slice(parts) => {
                let size = items.len() as i64;
                let number = |val: &Val, or: i64| match val {
                    Val::None => Ok(or),
                    val => val.as_int().ok_or_else(|| {
                        Error::msg("a list is cut at a number that only a run knows")
                    }),
                };
                let end = |val: &Val, or: i64| -> Result<usize> {
                    let at = number(val, or)?;
                    let at = if at < 0 { at.saturating_add(size) } else { at };
                    Ok(at.clamp(0, size) as usize)
                };
                let (start, stop) = (end(&parts[0], 0)?, end(&parts[1], size)?);
                let step = number(&parts[2], 1)?;
                let step = usize::try_from(step).ok().filter(|step| *step > 0);
                let step = step.ok_or_else(|| Error::msg("a list is read backwards"))?;
                let items = items.into_iter().take(stop).skip(start);
                Ok(Val::List(items.step_by(step).collect()))
            }
            index => {
                let at = index.as_int().map(|at| wrapped(at, items.len()));
                let item = at.and_then(|at| items.get(usize::try_from(at).ok()?).cloned());
                item.ok_or_else(|| {
                    Error::msg("a list is indexed by a number that only a run knows")
                })
            }
        },
        Val::Dict(items) => {
            let Val::Str(key) = index else {
                return Err(Error::msg("a dict is indexed by something that is no text"));
            };
            let item = items.into_iter().find(|(known, _)| *known == key);
            item.map(|(_, item)| item)
                .ok_or_else(|| Error::msg(format_args!("there is no `{key}`")))
        }
        Val::Tensor(x) => indexed(cx, call, x, index),
        Val::Unranked(..) => {
            let x = call.elements("a")?;
            let parts = match &index {
                Val::List(parts) => &**parts,
                one => std::slice::from_ref(one),
            };
            // What stands behind dims that are not counted, or picks from several, needs their number.
            let is_counted = |part: &Val| match part {
                Val::Slice(_) | Val::Dim(_) | Val::None => true,
                Val::Tensor(of) => of.rank() == 0 && of.dtype != DType::Bool,
                _ => false,
            };
            match parts.iter().all(is_counted) {
                true => indexed(cx, call, x, index),
                // The error of a tensor that is asked for its dims.
                false => call.tensor("a").map(Val::Tensor),
            }
        }
        other => Err(Error::msg(format_args!(
            "{} has no items",
            other.describe()
        ))),
    }
}

/// The parts of an index, an ellipsis as the dims that it stands for.
fn parts_of(x: &Operand, index: Val) -> Result<Vec<Part>> {
    let given = match index {
        Val::List(parts) => parts,
        one => vec![one],
    };
    let used = given.iter().map(|val| match val {
        Val::None | Val::Ellipsis => 0,
        Val::Tensor(of) if of.dtype == DType::Bool => of.rank(),
        _ => 1,
    });
    let rest = x.rank().saturating_sub(used.sum());
    let mut parts = Vec::new();
    for val in given {
        match val {
            Val::None => parts.push(Part::New),
            Val::Ellipsis => parts.extend((0..rest).map(|_| Part::Whole)),
            Val::Slice(ends) => parts.push(Part::Slice(ends)),
            Val::Tensor(of) if of.rank() > 0 => parts.push(Part::Pick(of)),
            Val::Tensor(of) if of.dtype == DType::Bool => {
                return Err(Error::msg(
                    "a truth value as an index: use `where` or `masked_fill`",
                ));
            }
            Val::Tensor(_) | Val::Dim(_) => parts.push(Part::At(val)),
            other => {
                return Err(Error::msg(format_args!("{} is no index", other.describe())));
            }
        }
    }
    Ok(parts)
}

/// The elements of a tensor at an index.
fn indexed(cx: &mut Cx, call: &OpCall<'_>, x: Operand, index: Val) -> Result<Val> {
    let mut parts = parts_of(&x, index)?;
    let mut name = x.name.clone();
    if let [Part::Pick(mask), rest @ ..] = &*parts
        && mask.dtype == DType::Bool
        && mask.rank() <= x.rank()
        && rest.iter().all(|part| matches!(part, Part::Whole))
    {
        let places = cx.op("NonZero", &[&mask.name]);
        let places = cx
            .node("Transpose")
            .input(&places)
            .ints("perm", [1, 0])
            .output();
        let name = cx.op("GatherND", &[&name, &places]);
        return call.given(name);
    }
    // A mask of one dim is the places where it holds.
    for part in &mut parts {
        if let Part::Pick(mask) = part
            && mask.dtype == DType::Bool
        {
            if mask.rank() > 1 {
                return Err(Error::msg(
                    "a mask of several dims beside other indices: index in two steps",
                ));
            }
            let places = cx.op("NonZero", &[&mask.name]);
            let zero = cx.i64s(&[0]);
            mask.name = cx.op("Squeeze", &[&places, &zero]);
            mask.dtype = DType::I64;
        }
    }
    let picks = parts.iter().filter(|part| matches!(part, Part::Pick(_)));
    if picks.count() > 1 {
        return picked(cx, call, &x, &parts);
    }
    // All slices are one node.
    let (mut starts, mut ends, mut axes, mut steps) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut axis = 0i64;
    for part in &parts {
        if let Part::Slice(of) = part {
            let step = match &of[2] {
                Val::None => 1,
                step => step.as_int().ok_or_else(|| {
                    Error::msg("the step of a slice is a number that only a run knows")
                })?,
            };
            let starts_first = of[0] == Val::None || of[0].as_int() == Some(0);
            if !(starts_first && of[1] == Val::None && step == 1) {
                starts.push(end_of(cx, &of[0], if step < 0 { i64::MAX } else { 0 })?);
                ends.push(end_of(
                    cx,
                    &of[1],
                    if step < 0 { i64::MIN } else { i64::MAX },
                )?);
                axes.push(axis);
                steps.push(step);
            }
        }
        axis += i64::from(!matches!(part, Part::New));
    }
    if !axes.is_empty() {
        let (starts, ends) = (ends_as_one(cx, starts)?, ends_as_one(cx, ends)?);
        let mut node_inputs = vec![name.clone(), starts, ends];
        node_inputs.push(cx.i64s(&axes));
        if steps.iter().any(|s| *s != 1) {
            node_inputs.push(cx.i64s(&steps));
        }
        let inputs: Vec<&Name> = node_inputs.iter().collect();
        name = cx.op("Slice", &inputs);
    }
    let mut axis = 0i64;
    let mut new = Vec::new();
    for part in parts {
        match part {
            Part::At(val) => {
                let at = cx.operand(&val, DType::I64)?;
                name = cx
                    .node("Gather")
                    .input(&name)
                    .input(&at.name)
                    .int("axis", axis)
                    .output();
            }
            Part::Pick(of) => {
                let of = cx.cast(&of, DType::I64)?;
                name = cx
                    .node("Gather")
                    .input(&name)
                    .input(&of.name)
                    .int("axis", axis)
                    .output();
                axis += of.rank() as i64;
            }
            Part::New => {
                new.push(axis);
                axis += 1;
                if !new.is_empty() {
                    let at = cx.i64s(&[new.pop().unwrap_or(0)]);
                    name = cx.op("Unsqueeze", &[&name, &at]);
                }
            }
            Part::Slice(_) | Part::Whole => axis += 1,
        }
    }
    call.given(name)
}

/// An end of a slice: a size, or a number that a run knows.
enum End {
    Size(Dim),
    Run(Name),
}

fn end_of(cx: &mut Cx, val: &Val, or: i64) -> Result<End> {
    Ok(match val {
        Val::None => End::Size(Dim::from(or)),
        Val::Dim(dim) => End::Size(dim.clone()),
        Val::Tensor(of) => {
            let of = cx.cast(of, DType::I64)?;
            let one = cx.i64s(&[1]);
            End::Run(cx.op("Reshape", &[&of.name, &one]))
        }
        other => {
            return Err(Error::msg(format_args!(
                "{} is no end of a slice",
                other.describe()
            )));
        }
    })
}

/// The ends of slices as one value.
fn ends_as_one(cx: &mut Cx, ends: Vec<End>) -> Result<Name> {
    let sizes = ends.iter().map(|end| match end {
        End::Size(dim) => Some(dim.clone()),
        End::Run(_) => None,
    });
    if let Some(sizes) = sizes.collect::<Option<Vec<Dim>>>() {
        return cx.sizes(&sizes);
    }
    let mut names = Vec::new();
    for end in ends {
        names.push(match end {
            End::Size(dim) => cx.size(&dim)?,
            End::Run(name) => name,
        });
    }
    let mut node = cx.node("Concat").int("axis", 0);
    for name in &names {
        node = node.input(name);
    }
    Ok(node.output())
}

/// Elements at several tensors of places, for the first dims.
fn picked(cx: &mut Cx, call: &OpCall<'_>, x: &Operand, parts: &[Part]) -> Result<Val> {
    let mut places = Vec::new();
    for part in parts {
        let Part::Pick(of) = part else {
            return Err(Error::msg(
                "tensors of places beside slices: index in two steps",
            ));
        };
        places.push(cx.cast(of, DType::I64)?);
    }
    let rank = places.iter().map(Operand::rank).max().unwrap_or(0);
    let shape = &call.result()?.shape[..rank.min(call.result()?.shape.len())];
    let mut columns = Vec::new();
    for of in &places {
        let wide = Operand {
            name: cx.expand(of, shape)?,
            dtype: DType::I64,
            shape: shape.to_vec(),
        };
        let last = cx.i64s(&[-1]);
        columns.push(cx.op("Unsqueeze", &[&wide.name, &last]));
    }
    let mut node = cx.node("Concat").int("axis", -1);
    for column in &columns {
        node = node.input(column);
    }
    let places = node.output();
    let name = cx.op("GatherND", &[&x.name, &places]);
    call.given(name)
}
