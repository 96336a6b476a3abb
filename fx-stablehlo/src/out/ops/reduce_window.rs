//! The operation `reduce_window`: the elements of each window as one.
//!
//! Invariant: what windows are is said for every dim of the tensor.

use crate::out::cx::{Array, Cx, Region};
use crate::out::text;

/// What windows are over all dims of a tensor.
pub(super) struct Windows<'w> {
    pub window: &'w [i64],
    pub strides: &'w [i64],
    pub dilations: &'w [i64],
    pub around: &'w [[i64; 2]],
}

impl Windows<'_> {
    pub fn attributes(&self) -> String {
        format!(
            "window_dimensions = {}, window_strides = {}, base_dilations = {}, window_dilations = {}, padding = {}",
            text::array(self.window),
            text::array(self.strides),
            text::array(&vec![1; self.window.len()]),
            text::array(self.dilations),
            text::pairs(self.around)
        )
    }
}

/// The elements of each window as one, by a region of two.
pub(super) fn reduce_window(
    cx: &mut Cx,
    body: Region,
    x: &Array,
    start: f64,
    windows: &Windows<'_>,
    shape: &[i64],
) -> Array {
    let start = cx.splat(start, x.dtype, &[]);
    let results = [(x.dtype, shape.to_vec())];
    let attributes = windows.attributes();
    let mut made = cx.operations(
        "reduce_window",
        &[x, &start],
        &attributes,
        vec![body],
        &results,
    );
    made.pop().expect("one result was asked for")
}
