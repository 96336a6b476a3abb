//! An evaluator of small StableHLO programs: numbers, tensors element by element, branches and loops.
//!
//! Invariant: it reads what the parser read, and knows nothing of the writer; an operation that it does not know is an
//! error.

use std::collections::HashMap;

use crate::parse::{Op, Program, Type};

/// A tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub ty: Type,
    pub numbers: Vec<f64>,
}

type Values = HashMap<String, Array>;

/// How many turns a loop may take.
const TURNS: usize = 10_000;

/// What a program gives for these arguments.
pub fn evaluate(program: &Program, arguments: Vec<Array>) -> Result<Vec<Array>, String> {
    if arguments.len() != program.names.len() {
        return Err(format!("{} arguments", program.names.len()));
    }
    let mut values: Values = program.names.iter().cloned().zip(arguments).collect();
    block(&program.ops, &mut values)
}

/// What the operations of a region return.
fn block(ops: &[Op], values: &mut Values) -> Result<Vec<Array>, String> {
    for op in ops {
        let takes = op.takes.iter().map(|name| {
            let found = values.get(name).cloned();
            found.ok_or_else(|| format!("{name} has no value"))
        });
        let takes: Vec<Array> = takes.collect::<Result<_, _>>()?;
        if op.name == "stablehlo.return" || op.name == "func.return" {
            return Ok(takes);
        }
        let given = given(op, takes, values)?;
        values.extend(op.gives.iter().cloned().zip(given));
    }
    Err("nothing is returned".to_string())
}

fn inner(
    op: &Op,
    at: usize,
    arguments: &[Array],
    values: &mut Values,
) -> Result<Vec<Array>, String> {
    let names = op.inner[at].iter().cloned();
    values.extend(names.zip(arguments.iter().cloned()));
    block(&op.regions[at], values)
}

fn given(op: &Op, takes: Vec<Array>, values: &mut Values) -> Result<Vec<Array>, String> {
    let short = op.name.strip_prefix("stablehlo.").unwrap_or(&op.name);
    if short == "case" {
        let last = op.regions.len() - 1;
        let chosen = takes[0].numbers[0];
        let at = if (0.0..=last as f64).contains(&chosen) {
            chosen as usize
        } else {
            last
        };
        return inner(op, at, &[], values);
    }
    if short == "while" {
        let mut state = takes;
        for _ in 0..TURNS {
            if inner(op, 0, &state, values)?[0].numbers[0] == 0.0 {
                return Ok(state);
            }
            state = inner(op, 1, &state, values)?;
        }
        return Err(format!("a loop takes more than {TURNS} turns"));
    }
    let ty = op.results[0].clone();
    let count = ty.shape.iter().product::<i64>() as usize;
    let numbers: Vec<f64> = match (short, &*takes) {
        ("constant", []) => constant(&op.attributes, count)?,
        ("reshape", [x]) => x.numbers.clone(),
        ("broadcast_in_dim", [x]) if x.numbers.len() == 1 => vec![x.numbers[0]; count],
        ("broadcast_in_dim", [x]) if x.ty.shape == ty.shape => x.numbers.clone(),
        ("reduce", [x, start]) if count == 1 => {
            let with = &op.regions[0][0].name;
            let mut sum = start.numbers[0];
            for number in &x.numbers {
                sum = two(
                    with.trim_start_matches("stablehlo."),
                    "",
                    sum,
                    *number,
                    &x.ty,
                )?;
            }
            vec![sum]
        }
        ("select", [mask, a, b]) => {
            let all = mask.numbers.iter().zip(&a.numbers).zip(&b.numbers);
            all.map(|((mask, a), b)| if *mask != 0.0 { *a } else { *b })
                .collect()
        }
        ("clamp", [low, x, high]) => {
            let (low, high) = (low.numbers[0], high.numbers[0]);
            x.numbers.iter().map(|x| x.max(low).min(high)).collect()
        }
        (name, [x]) => {
            let one = |x: &f64| one(name, *x, &x_ty(&takes));
            x.numbers.iter().map(one).collect::<Result<_, _>>()?
        }
        (name, [a, b]) => {
            let pairs = a.numbers.iter().zip(&b.numbers);
            let two = |(x, y): (&f64, &f64)| two(name, &op.attributes, *x, *y, &a.ty);
            pairs.map(two).collect::<Result<_, _>>()?
        }
        (name, _) => return Err(format!("`{name}` is not known here")),
    };
    let numbers = numbers
        .into_iter()
        .map(|number| rounded(number, &ty))
        .collect();
    Ok(vec![Array { ty, numbers }])
}

fn x_ty(takes: &[Array]) -> Type {
    takes[0].ty.clone()
}

/// As an element of the type.
fn rounded(number: f64, ty: &Type) -> f64 {
    match &*ty.element {
        "f32" => f64::from(number as f32),
        "f64" => number,
        "i1" => f64::from(u8::from(number != 0.0)),
        _ => number.trunc(),
    }
}

fn constant(attributes: &str, count: usize) -> Result<Vec<f64>, String> {
    let inner = attributes
        .split_once("dense<")
        .and_then(|(_, rest)| rest.split_once('>'));
    let (inner, _) = inner.ok_or("a constant without elements")?;
    let one = |text: &str| match text.trim() {
        "true" => Ok(1.0),
        "false" => Ok(0.0),
        text => text
            .parse::<f64>()
            .map_err(|_| format!("`{text}` is no number")),
    };
    let items = inner.trim_matches(['[', ']']).split(',');
    let items: Vec<f64> = items.map(one).collect::<Result<_, _>>()?;
    Ok(if items.len() == 1 {
        vec![items[0]; count]
    } else {
        items
    })
}

fn one(name: &str, x: f64, ty: &Type) -> Result<f64, String> {
    Ok(match name {
        "convert" => x,
        "negate" => -x,
        "abs" => x.abs(),
        "floor" => x.floor(),
        "round_nearest_even" => x.round_ties_even(),
        "sign" => {
            if x == 0.0 {
                0.0
            } else {
                x.signum()
            }
        }
        "not" if ty.element == "i1" => 1.0 - x,
        _ => return Err(format!("`{name}` of one is not known here")),
    })
}

fn two(name: &str, attributes: &str, a: f64, b: f64, ty: &Type) -> Result<f64, String> {
    let is_float = ty.element.starts_with('f');
    let truth = |truth: bool| f64::from(u8::from(truth));
    Ok(match name {
        "add" => a + b,
        "subtract" => a - b,
        "multiply" => a * b,
        "divide" if is_float => a / b,
        "divide" => (a / b).trunc(),
        "remainder" => a % b,
        "maximum" => a.max(b),
        "minimum" => a.min(b),
        "and" if ty.element == "i1" => a * b,
        "or" if ty.element == "i1" => a.max(b),
        "xor" if ty.element == "i1" => truth(a != b),
        "compare" => {
            let how = attributes.rsplit(' ').next().unwrap_or_default();
            match how.trim_end_matches('>') {
                "EQ" => truth(a == b),
                "NE" => truth(a != b),
                "LT" => truth(a < b),
                "LE" => truth(a <= b),
                "GT" => truth(a > b),
                "GE" => truth(a >= b),
                other => return Err(format!("`{other}` is no comparison")),
            }
        }
        _ => return Err(format!("`{name}` of two is not known here")),
    })
}
