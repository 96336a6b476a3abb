//! Layouts: which items give images in blocks of channels, and where floats change between the two
//! layouts.
//!
//! Invariant: afterwards every item gets its inputs in the layout that it reads.

use std::collections::HashMap;

use fx_kernels::conv;
use fx_kernels::pointwise::Binary;

use super::draft::{Draft, Id, Item, Kind, PointOp};
use super::fuse::{is_sum, only_activation};
use crate::Tensor;

/// Chooses layouts, and adds the items that change them.
pub(super) fn choose(draft: &mut Draft) {
    let mut made = Draft {
        output: draft.output.take(),
        halves: std::mem::take(&mut draft.halves),
        input_halves: std::mem::take(&mut draft.input_halves),
        ..Draft::default()
    };
    // Each item of the draft, and its copy in the other layout, if there is one.
    let mut renamed: Vec<Id> = Vec::with_capacity(draft.items.len());
    let mut copies: HashMap<Id, Id> = HashMap::new();
    for mut item in std::mem::take(&mut draft.items) {
        item.visit_uses(&mut |id| *id = renamed[*id]);
        on_images(&mut item, &made);
        let wants = wants_images(&item);
        let reads_any = matches!(item.kind, Kind::ShapeOf | Kind::SizeOf(_) | Kind::RankOf);
        let plain = match &item.kind {
            Kind::Conv { spec, .. } if conv::reads_plain(spec) => Some(item.inputs[0]),
            _ => None,
        };
        let plain =
            plain.filter(|id| !made.items[*id].is_image() && !item.inputs[1..].contains(id));
        if !reads_any {
            item.visit_uses(&mut |id| {
                if Some(*id) != plain {
                    *id = in_layout(*id, wants, &mut made, &mut copies);
                }
            });
        }
        renamed.push(made.items.len());
        made.items.push(item);
    }
    for (node, id) in std::mem::take(&mut draft.returned) {
        let id = in_layout(renamed[id], false, &mut made, &mut copies);
        made.returned.insert(node, id);
    }
    *draft = made;
    draft.without_dead();
}

/// Whether an item reads images: as those do that give images, but for the one that makes them.
fn wants_images(item: &Item) -> bool {
    item.is_image() && !matches!(item.kind, Kind::ToImage)
}

/// The item, or its copy in the other layout.
fn in_layout(id: Id, image: bool, made: &mut Draft, copies: &mut HashMap<Id, Id>) -> Id {
    let item = &made.items[id];
    if item.is_image() == image || !(item.is_image() || image) {
        return id;
    }
    if let Some(copy) = copies.get(&id) {
        return *copy;
    }
    let kind = match image {
        true => Kind::ToImage,
        false => Kind::ToArray,
    };
    made.items.push(Item {
        kind,
        inputs: vec![id],
        nodes: Vec::new(),
        is_floats: true,
        is_kept: false,
    });
    copies.insert(id, made.items.len() - 1);
    made.items.len() - 1
}

/// Turns an item into one on images, if all that it reads are images.
fn on_images(item: &mut Item, made: &Draft) {
    let is_image = |id: &Id| made.items[*id].is_image();
    let all = !item.inputs.is_empty() && item.inputs.iter().all(is_image);
    match &mut item.kind {
        Kind::Cat(1 | -3) if all => item.kind = Kind::ImageCat,
        Kind::ChannelAffine { is_image, .. } => *is_image = all,
        Kind::Gather { dim, places } if all => {
            let is_row = match dim {
                2 | -2 => true,
                3 | -1 => false,
                _ => return,
            };
            let places = std::mem::take(places);
            item.kind = Kind::ImagePlaces { is_row, places };
        }
        Kind::Pad { sides, value } if all => {
            let sides = match sides[..] {
                [] => [[0; 2]; 2],
                [columns] => [columns, [0; 2]],
                [columns, rows] => [columns, rows],
                _ => return,
            };
            let value = *value;
            item.kind = Kind::ImagePad { sides, value };
        }
        Kind::Pointwise(points) if all => {
            if let Some(activation) = only_activation(points) {
                item.kind = Kind::ImageActivate(activation);
            } else if is_sum(points) {
                item.kind = Kind::ImageAdd(fx_kernels::Activation::None);
            } else if let [sum @ .., PointOp::Unary(f, 2)] = &points[..]
                && is_sum(sum)
                && let Some(activation) =
                    only_activation(&[PointOp::Input(0), PointOp::Unary(*f, 0)])
            {
                item.kind = Kind::ImageAdd(activation);
            } else if let [
                PointOp::Input(a),
                PointOp::Input(b),
                PointOp::Binary(Binary::Mul, 0, 1),
            ] = points[..]
                && a != b
                && is_gate(item.inputs[a], made) != is_gate(item.inputs[b], made)
            {
                // The gate comes from a pool over all places.
                let (a, b) = (item.inputs[a], item.inputs[b]);
                item.inputs = if is_gate(b, made) {
                    vec![a, b]
                } else {
                    vec![b, a]
                };
                item.kind = Kind::ImageScale;
            } else {
                steps_on_images(item, made);
            }
        }
        Kind::Pointwise(_) => steps_on_images(item, made),
        _ => {}
    }
}

/// Turns steps into those of images of one size and numbers of channels, if that is all that they read.
fn steps_on_images(item: &mut Item, made: &Draft) {
    let Kind::Pointwise(points) = &item.kind else {
        return;
    };
    let (mut images, mut channels) = (Vec::new(), Vec::new());
    for id in &item.inputs {
        match &made.items[*id].kind {
            _ if made.items[*id].is_image() => images.push(*id),
            Kind::Constant(tensor) if made.items[*id].is_floats && is_of_channels(tensor) => {
                channels.push(tensor.clone());
            }
            _ => return,
        }
    }
    if images.is_empty() {
        return;
    }
    // Images come first.
    let place = |at: usize| {
        let before = item.inputs[..at].iter();
        let images_before = before.filter(|id| made.items[**id].is_image()).count();
        match made.items[item.inputs[at]].is_image() {
            true => images_before,
            false => images.len() + at - images_before,
        }
    };
    let points = points
        .iter()
        .map(|point| match *point {
            PointOp::Input(at) => PointOp::Input(place(at)),
            other => other,
        })
        .collect();
    item.inputs = images;
    item.kind = Kind::ImagePointwise(points, channels);
}

/// Whether a tensor has one number, or one for each channel of images.
fn is_of_channels(tensor: &Tensor) -> bool {
    matches!(
        tensor.dims(),
        Ok([] | [1] | [1, 1] | [_, 1, 1] | [1, _, 1, 1])
    )
}

/// Whether an image has one pixel: behind a pool to one pixel, through 1x1 convolutions.
fn is_gate(mut id: Id, made: &Draft) -> bool {
    loop {
        let item = &made.items[id];
        match &item.kind {
            Kind::AdaptivePool([1, 1]) => return true,
            Kind::Conv { .. } | Kind::ImageActivate(_) | Kind::ImagePointwise(..) => {
                id = item.inputs[0];
            }
            _ => return false,
        }
    }
}
