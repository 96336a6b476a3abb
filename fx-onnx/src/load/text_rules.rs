//! How functions of text are written as ONNX.
//!
//! Invariant: words that ONNX has as attributes are constants of the file.

use fx_nn::lowering::{Name, OpCall, Val};
use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use crate::dtype::{TEXT, code};
use crate::out::{Cx, Rule};

/// The domain of classic models, and the version of it that is written.
const CLASSIC: (&str, i64) = ("ai.onnx.ml", 3);

/// Refuses an operator that the file's version of ONNX does not have.
fn since(cx: &Cx, op: &str, version: i64) -> Result<()> {
    match cx.opset() >= version {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "ONNX has `{op}` of text from opset {version} on: write the file with `Export::opset({version})`"
        ))),
    }
}

/// All texts one after another, as one row.
fn flat(cx: &mut Cx, all: &[(Name, Vec<fx_nn::value::Dim>)]) -> Name {
    let whole = cx.i64s(&[-1]);
    let rows = all.iter().map(|(name, shape)| match shape.len() {
        1 => name.clone(),
        _ => cx.op("Reshape", &[name, &whole]),
    });
    let rows: Vec<Name> = rows.collect();
    if let [one] = &*rows {
        return one.clone();
    }
    let node = cx.node("Concat").int("axis", 0);
    rows.iter().fold(node, |node, row| node.input(row)).output()
}

/// The texts of a constant.
fn known(cx: &Cx, call: &OpCall<'_>, param: &str) -> Result<Vec<String>> {
    let (name, _) = call.texts(param)?;
    cx.constant_texts(&name).ok_or_else(|| {
        Error::msg(format_args!(
            "`{param}` of `{}` is computed, and ONNX has its words as an attribute: fold constants first",
            call.function().name()
        ))
    })
}

/// A node with an attribute of texts.
fn pair(cx: &mut Cx, call: &OpCall<'_>, op: &str) -> Result<Name> {
    let ((x, _), (y, _)) = (call.texts("x")?, call.texts("y")?);
    Ok(cx.op(op, &[&x, &y]))
}

fx_nn::function_table! { Rule {
    fx_nn::function!(crate::load::text_places) => Rule::new(|cx, call| {
        let (all, at) = (call.all_texts("all")?, call.int("at")?);
        let own = usize::try_from(at).ok().and_then(|at| all.get(at));
        let (own, _) = own.ok_or_else(|| Error::msg("there is no such tensor"))?;
        let mut start = cx.i64(0);
        for (before, _) in &all[..at as usize] {
            let size = cx.op("Size", &[before]);
            start = cx.op("Add", &[&start, &size]);
        }
        let (size, one) = (cx.op("Size", &[own]), cx.i64(1));
        let end = cx.op("Add", &[&start, &size]);
        let places = cx.op("Range", &[&start, &end, &one]);
        let shape = cx.op("Shape", &[own]);
        let name = cx.op("Reshape", &[&places, &shape]);
        call.given(name)
    }),
    fx_nn::function!(crate::load::text_take) => Rule::new(|cx, call| {
        let (all, places) = (call.all_texts("all")?, call.tensor("places")?);
        let places = cx.cast(&places, DType::I64)?;
        let flat = flat(cx, &all);
        let name = cx.op("Gather", &[&flat, &places.name]);
        call.given_texts(name)
    }),
    fx_nn::function!(crate::load::text_ids) => Rule::new(|cx, call| {
        let (x, _) = call.texts("x")?;
        let mut words = known(cx, call, "words")?;
        // The operator has a word at least.
        let mut ids: Vec<i64> = (0..words.len() as i64).collect();
        if words.is_empty() {
            (words, ids) = (vec![String::new()], vec![-1]);
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let node = cx.node("LabelEncoder").domain(CLASSIC.0, CLASSIC.1).input(&x);
        let node = node.texts("keys_strings", &words).ints("values_int64s", ids);
        let name = node.int("default_int64", -1).output();
        call.given(name)
    }),
    fx_nn::function!(crate::load::text_equal) => Rule::new(|cx, call| {
        since(cx, "Equal", 19)?;
        let name = pair(cx, call, "Equal")?;
        call.given(name)
    }),
    fx_nn::function!(crate::load::text_concat) => Rule::new(|cx, call| {
        since(cx, "StringConcat", 20)?;
        let name = pair(cx, call, "StringConcat")?;
        call.given_texts(name)
    }),
    fx_nn::function!(crate::load::text_split) => Rule::new(|cx, call| {
        since(cx, "StringSplit", 20)?;
        let (x, _) = call.texts("x")?;
        let mut node = cx.node("StringSplit").input(&x).text("delimiter", &call.text("delimiter")?);
        let most = call.int("most")?;
        if most >= 0 {
            node = node.int("maxsplit", most);
        }
        let names = node.outputs(2);
        let ([pieces, counts], [a, b]) = (&*names, &*call.results()?) else {
            return Err(Error::msg("pieces and counts are expected"));
        };
        let counts = fx_nn::lowering::operand(counts.clone(), b)?;
        Ok(Val::List(vec![Val::Texts(pieces.clone(), a.shape.clone()), Val::Tensor(counts)]))
    }),
    fx_nn::function!(crate::load::text_matches) => Rule::new(|cx, call| {
        since(cx, "RegexFullMatch", 20)?;
        let (x, _) = call.texts("x")?;
        let name = cx.node("RegexFullMatch").input(&x).text("pattern", &call.text("pattern")?).output();
        call.given(name)
    }),
    fx_nn::function!(crate::load::text_tokens) => Rule::new(|cx, call| {
        let (x, _) = call.texts("x")?;
        let separators = known(cx, call, "separators")?;
        let separators: Vec<&str> = separators.iter().map(String::as_str).collect();
        let pattern = call.text("pattern")?;
        let node = cx.node("Tokenizer").domain("com.microsoft", 1).input(&x);
        let node = node.int("mark", i64::from(call.flag("mark")?));
        let node = node.int("mincharnum", call.int("least")?).text("pad_value", &call.text("fill")?);
        let node = match pattern.is_empty() {
            true => node.texts("separators", &separators),
            false => node.text("tokenexp", &pattern),
        };
        call.given_texts(node.output())
    }),
    fx_nn::function!(crate::load::text_normalize) => Rule::new(|cx, call| {
        let (x, _) = call.texts("x")?;
        let left_out = known(cx, call, "left_out")?;
        let left_out: Vec<&str> = left_out.iter().map(String::as_str).collect();
        let sensitive = i64::from(call.flag("is_case_sensitive")?);
        let node = cx.node("StringNormalizer").input(&x).text("case_change_action", &call.text("case")?);
        let mut node = node.int("is_case_sensitive", sensitive);
        if !left_out.is_empty() {
            node = node.texts("stopwords", &left_out);
        }
        let locale = call.text("locale")?;
        if !locale.is_empty() {
            node = node.text("locale", &locale);
        }
        let name = node.output();
        call.given_texts(name)
    }),
    fx_nn::function!(crate::load::text_of) => Rule::new(|cx, call| {
        let x = call.tensor("x")?;
        let name = cx.node("Cast").input(&x.name).int("to", i64::from(TEXT)).output();
        call.given_texts(name)
    }),
    fx_nn::function!(crate::load::text_numbers) => Rule::new(|cx, call| {
        let (x, _) = call.texts("x")?;
        let to = i64::from(code(call.dtype()?)?);
        let name = cx.node("Cast").input(&x).int("to", to).output();
        call.given(name)
    }),
    fx_nn::function!(crate::load::text_scores) => Rule::new(|cx, call| {
        let scores = cx.cast(&call.tensor("scores")?, DType::F32)?;
        let labels = known(cx, call, "labels")?;
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let node = cx.node("ZipMap").domain(CLASSIC.0, CLASSIC.1).input(&scores.name);
        Ok(Val::Maps(node.texts("classlabels_strings", &labels).output()))
    }),
} }
