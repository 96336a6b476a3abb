//! How rules of numbers are used for text: an operator that moves elements moves their places, and the texts are taken
//! at the end.
//!
//! Invariant: what becomes a part of the graph is symbolic or a constant of it.

use fx_nn::prelude::*;
use fx_nn::{Error, Result};

use super::checks;
use super::node::NodeCx;
use super::operator::{OfText, Operator};
use super::text_leaves::{text_places, text_take};
use super::value::{Given, V};
use crate::texts::Texts;

/// What a node gives that has text among its inputs.
pub(super) fn ruled(cx: &mut NodeCx<'_>, entry: &Operator) -> Given {
    match entry.text {
        OfText::Read => return (entry.rule)(cx),
        OfText::Refused => {
            return Err(Error::msg(
                "ONNX has no such operator for text, or fx lacks it",
            ));
        }
        OfText::Moved | OfText::Sized => {}
    }
    let mut all = Vec::new();
    for input in &cx.inputs {
        all.extend(input.texts().ok());
    }
    let mut count = 0;
    for input in &mut cx.inputs {
        if let V::Texts(_) = input {
            *input = V::of(text_places(&all, count)?, DType::I64);
            count += 1;
        }
    }
    // Places of constants are constants too.
    checks::room(cx, entry.made)?;
    let given = (entry.rule)(cx)?;
    match entry.text {
        OfText::Moved => given.into_iter().map(|v| taken(&all, v)).collect(),
        _ => Ok(given),
    }
}

/// The texts at places, in whatever form the places are.
fn taken(all: &[Texts], places: V) -> Result<V> {
    match places {
        V::Seq(items) => {
            let items = items.into_iter().map(|places| at(all, &places));
            items.collect::<Result<_>>().map(V::Seq)
        }
        V::Absent => Ok(V::Absent),
        places => at(all, &places),
    }
}

fn at(all: &[Texts], places: &V) -> Result<V> {
    text_take(all, &places.tensor()?).map(V::Texts)
}

/// Tensors of text as one, by what puts their places together.
pub(super) fn joined(all: &[Texts], join: impl FnOnce(&[Tensor]) -> Result<Tensor>) -> Given {
    let places = (0..all.len()).map(|at| text_places(all, at as i64));
    let places = places.collect::<Result<Vec<Tensor>>>()?;
    Ok(vec![at(all, &V::of(join(&places)?, DType::I64))?])
}

/// Texts of a list, at places of it.
pub(super) fn picked(list: &[String], places: &Tensor) -> Result<V> {
    let list = Texts::from(list.to_vec());
    text_take(&[list], places).map(V::Texts)
}
