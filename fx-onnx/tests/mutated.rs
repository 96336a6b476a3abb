//! Whatever bytes a file has, reading it gives a module or an error: files of the node tests, changed at random.
//!
//! `FX_MUTATED_SECONDS=600 cargo test --release -p fx-onnx --test behaviour mutated` goes on for that long.
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

#[path = "node/case.rs"]
#[allow(dead_code, reason = "the tests are not run, their files are changed")]
mod case;
#[path = "node/sample.rs"]
mod sample;

use std::time::{Duration, Instant};

use fx_onnx::Load;
use fx_onnx::proto::{Dimension, DimensionValue, ModelProto, TensorProto, TypeValue};
use prost::Message;

/// Numbers of one seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

/// The file with some bytes changed, cut, repeated, or taken from another.
fn mutated(file: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = file.to_vec();
    for _ in 0..=numbers.next(4) {
        let at = numbers.next(bytes.len());
        let length = 1 + numbers.next(8);
        let end = (at + length).min(bytes.len());
        match numbers.next(6) {
            0 => bytes[at] ^= 1 << numbers.next(8),
            1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][numbers.next(5)],
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            4 => {
                let from = numbers.next(other.len());
                let piece = other[from..(from + length).min(other.len())].to_vec();
                bytes.splice(at..end, piece);
            }
            _ => bytes[at] = numbers.next(256) as u8,
        }
        if bytes.is_empty() {
            return file.to_vec();
        }
    }
    bytes
}

/// The model with some of what it says changed: operators, attributes, names, sizes, types.
fn restated(file: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    const ODD: [i64; 12] = [-9, -2, -1, 0, 1, 2, 3, 7, 64, 1 << 20, i64::MAX, i64::MIN];
    let mut model = ModelProto::decode(file).expect("the sample has models");
    let other = ModelProto::decode(other).expect("the sample has models");
    let (Some(graph), Some(other)) = (&mut model.graph, &other.graph) else {
        return file.to_vec();
    };
    for _ in 0..=numbers.next(2) {
        let count = graph.node.len();
        let names: Vec<String> = graph
            .node
            .iter()
            .flat_map(|n| n.input.iter().chain(&n.output))
            .cloned()
            .collect();
        let odd = ODD[numbers.next(ODD.len())];
        let node = &mut graph.node[numbers.next(count)];
        match numbers.next(9) {
            0 => node.op_type.clone_from(&other.node[0].op_type),
            1 => node
                .attribute
                .extend(other.node[0].attribute.iter().cloned()),
            2 => {
                let at = numbers.next(node.input.len());
                if let Some(name) = node.input.get_mut(at) {
                    name.clone_from(&names[numbers.next(names.len())]);
                }
            }
            3 => drop(node.input.pop()),
            4 => {
                let at = numbers.next(node.attribute.len());
                if let Some(attribute) = node.attribute.get_mut(at) {
                    attribute.i = attribute.i.map(|_| odd);
                    attribute.f = attribute.f.map(|_| odd as f32);
                    let place = numbers.next(attribute.ints.len());
                    if let Some(number) = attribute.ints.get_mut(place) {
                        *number = odd;
                    }
                }
            }
            5 => {
                let at = numbers.next(node.attribute.len());
                if let Some(attribute) = node.attribute.get_mut(at) {
                    attribute.ints.pop();
                    attribute.floats.pop();
                }
            }
            6 => {
                let at = numbers.next(graph.input.len());
                let ty = graph
                    .input
                    .get_mut(at)
                    .and_then(|info| info.r#type.as_mut());
                if let Some(TypeValue::Tensor(tensor)) = ty.and_then(|ty| ty.value.as_mut()) {
                    tensor.elem_type = 1 + numbers.next(16) as i32;
                }
            }
            7 => {
                let at = numbers.next(graph.input.len());
                let ty = graph
                    .input
                    .get_mut(at)
                    .and_then(|info| info.r#type.as_mut());
                if let Some(TypeValue::Tensor(tensor)) = ty.and_then(|ty| ty.value.as_mut())
                    && let Some(shape) = &mut tensor.shape
                {
                    match (numbers.next(3), shape.dim.is_empty()) {
                        (0, false) => drop(shape.dim.pop()),
                        (1, false) => {
                            let at = numbers.next(shape.dim.len());
                            shape.dim[at].value = Some(DimensionValue::Value(odd));
                        }
                        _ => shape.dim.push(Dimension::default()),
                    }
                }
            }
            // An input as a constant: what depends on it is computed while the file is read.
            _ => {
                let at = numbers.next(graph.input.len());
                if at < graph.input.len() {
                    let info = graph.input.remove(at);
                    let Some(TypeValue::Tensor(tensor)) = info.r#type.and_then(|ty| ty.value)
                    else {
                        continue;
                    };
                    let dims = tensor.shape.unwrap_or_default().dim;
                    let dims = dims.iter().map(|dim| match dim.value {
                        Some(DimensionValue::Value(size)) => size.clamp(0, 9),
                        _ => 2,
                    });
                    let dims: Vec<i64> = dims.collect();
                    let bytes = dims.iter().product::<i64>() as usize * 8;
                    let raw: Vec<u8> = (0..bytes).map(|_| numbers.next(5) as u8).collect();
                    graph.initializer.push(TensorProto {
                        name: info.name,
                        data_type: if numbers.next(2) == 0 { 7 } else { 11 },
                        dims,
                        raw_data: Some(raw.into()),
                        ..TensorProto::default()
                    });
                }
            }
        }
    }
    model.encode_to_vec()
}

#[test]
fn changed_files_are_read_or_refused() {
    let cases = sample::cases();
    let seconds = std::env::var("FX_MUTATED_SECONDS")
        .ok()
        .and_then(|s| s.parse::<u64>().ok());
    // The same numbers in each run of the gate, and others in each long run.
    let other = u64::from(std::process::id()) << 20;
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 ^ seconds.map_or(0, |_| other));
    let start = Instant::now();
    let (mut read, mut refused) = (0usize, 0usize);
    loop {
        let count = read + refused;
        match seconds {
            Some(seconds) if start.elapsed() > Duration::from_secs(seconds) => break,
            None if count >= 2000 => break,
            _ => {}
        }
        let file = &cases[numbers.next(cases.len())].1.model;
        let other = &cases[numbers.next(cases.len())].1.model;
        let bytes = match count % 4 {
            0 => mutated(file, other, &mut numbers),
            _ => restated(file, other, &mut numbers),
        };
        if let Some(path) = std::env::var_os("FX_MUTATED_LAST") {
            std::fs::write(path, &bytes).expect("a file can be written");
        }
        match Load::new().from_bytes(bytes) {
            Ok(import) => {
                read += 1;
                assert!(import.module.lint().is_ok());
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    println!("changed files: read {read} refused {refused}");
    assert!(read > 0 && refused > 0);
}
