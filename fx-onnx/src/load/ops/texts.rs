//! Operators of text.

use fx_nn::Error;
use fx_nn::prelude::*;

use crate::load::operator::{Operator, op};
use crate::load::text_leaves::{text_concat, text_normalize};
use crate::load::text_pieces::{text_matches, text_split, text_tokens};
use crate::load::value::V;
use crate::texts::Texts;

pub(super) const TABLE: &[Operator] = &[
    op("StringConcat", |cx| {
        let both = text_concat(&cx.input(0).texts()?, &cx.input(1).texts()?)?;
        Ok(vec![V::Texts(both)])
    })
    .reads_text(),
    op("StringSplit", |cx| {
        let (delimiter, most) = (cx.text("delimiter", ""), cx.int("maxsplit", -1));
        let (pieces, counts) = text_split(&cx.input(0).texts()?, &delimiter, most)?;
        Ok(vec![V::Texts(pieces), V::of(counts, DType::I64)])
    })
    .reads_text(),
    op("RegexFullMatch", |cx| {
        let pattern = cx.text("pattern", "");
        cx.of(text_matches(&cx.input(0).texts()?, &pattern)?, DType::Bool)
    })
    .reads_text(),
    op("StringNormalizer", |cx| {
        let left_out = Texts::from(cx.texts("stopwords").unwrap_or_default());
        let case = cx.text("case_change_action", "NONE");
        let locale = cx.text("locale", "");
        let is_sensitive = cx.flag("is_case_sensitive");
        let x = cx.input(0).texts()?;
        if cx.rank(0).is_ok_and(|rank| !(1..3).contains(&rank)) {
            return Err(Error::msg("a row of words is expected, or a matrix of one"));
        }
        Ok(vec![V::Texts(text_normalize(
            &x,
            &case,
            &left_out,
            is_sensitive,
            &locale,
        )?)])
    })
    .reads_text(),
    op("Tokenizer", |cx| {
        let x = cx.input(0).texts()?;
        let separators = Texts::from(cx.texts("separators").unwrap_or_default());
        let (pattern, fill) = (cx.text("tokenexp", ""), cx.text("pad_value", ""));
        let least = usize::try_from(cx.int("mincharnum", 1)).unwrap_or(0);
        let mark = cx.flag("mark");
        let pieces = text_tokens(&x, &pattern, &separators, &fill, mark, least)?;
        Ok(vec![V::Texts(pieces)])
    })
    .domain("com.microsoft")
    .reads_text(),
];
