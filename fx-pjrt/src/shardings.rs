//! What a plugin's partitioner made of the arguments and results of a program, as its compiled program says it.
//!
//! Invariant: what is not understood is an error; nothing is guessed.

use fx_nn::{Error, Result};
use prost::Message;

use crate::placement::Placement;

/// XLA's `HloModuleProtoWithConfig`.
#[derive(Clone, PartialEq, Message)]
struct ModuleWithConfig {
    #[prost(message, optional, tag = "1")]
    module: Option<Module>,
}

/// XLA's `HloModuleProto`.
#[derive(Clone, PartialEq, Message)]
struct Module {
    #[prost(message, optional, tag = "12")]
    output: Option<OpSharding>,
    #[prost(message, repeated, tag = "14")]
    parameters: Vec<OpSharding>,
}

/// XLA's `OpSharding`.
#[derive(Clone, PartialEq, Message)]
struct OpSharding {
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(int64, repeated, tag = "3")]
    tiles: Vec<i64>,
    #[prost(int64, repeated, tag = "4")]
    devices: Vec<i64>,
    #[prost(message, repeated, tag = "5")]
    items: Vec<OpSharding>,
    #[prost(bool, tag = "6")]
    is_last_tile_replicated: bool,
    #[prost(int32, repeated, tag = "8")]
    last_tiles: Vec<i32>,
    #[prost(int64, repeated, tag = "9")]
    iota_shape: Vec<i64>,
    #[prost(int32, repeated, tag = "10")]
    iota_order: Vec<i32>,
}

/// Kinds of `OpSharding`.
const REPLICATED: i32 = 0;
const MAXIMAL: i32 = 1;
const TUPLE: i32 = 2;
const TILED: i32 = 3;

/// The placements of the arguments and the results of a compiled program over so many devices, which have these whole
/// sizes.
///
/// # Errors
/// Returns an error if the message cannot be read, or says something that is not understood.
pub(crate) fn placements(
    (bytes, format): &(Vec<u8>, String),
    arguments: &[Vec<usize>],
    results: &[Vec<usize>],
    devices: usize,
) -> Result<(Vec<Placement>, Vec<Placement>)> {
    let module = match &**format {
        "hlo_with_config" => ModuleWithConfig::decode(&bytes[..]).map(|with| with.module),
        "hlo" => Module::decode(&bytes[..]).map(Some),
        other => {
            return Err(Error::msg(format_args!(
                "the plugin gives its compiled program as `{other}`, which fx does not read"
            )));
        }
    };
    let module = module.map_err(Error::other)?.unwrap_or_default();
    let outputs = match module.output {
        Some(of) if of.kind == TUPLE => of.items,
        Some(of) => vec![of],
        None => Vec::new(),
    };
    let all = |shardings: &[OpSharding], shapes: &[Vec<usize>], of: &str| {
        // A plugin says nothing if everything is replicated.
        if shardings.is_empty() {
            let all = shapes.iter().cloned();
            return Ok(all
                .map(|shape| Placement::replicated(shape, devices))
                .collect());
        }
        if shardings.len() != shapes.len() {
            return Err(Error::msg(format_args!(
                "the plugin says how {} {of} are split, and the program has {}",
                shardings.len(),
                shapes.len()
            )));
        }
        let both = shardings.iter().zip(shapes);
        both.map(|(sharding, shape)| sharding.placement(shape, devices))
            .collect::<Result<Vec<_>>>()
    };
    Ok((
        all(&module.parameters, arguments, "arguments")?,
        all(&outputs, results, "results")?,
    ))
}

impl OpSharding {
    fn placement(&self, shape: &[usize], devices: usize) -> Result<Placement> {
        let replicated = || Placement::replicated(shape.to_vec(), devices);
        match self.kind {
            REPLICATED => return Ok(replicated()),
            MAXIMAL if devices == 1 => return Ok(replicated()),
            TILED => {}
            _ => return Err(self.unknown("its kind is none that fx knows")),
        }
        let tiles: Vec<usize> =
            sizes(&self.tiles).ok_or_else(|| self.unknown("a size is negative"))?;
        let replicated_dims = match self.is_last_tile_replicated {
            true => 1,
            false if self.last_tiles.iter().all(|kind| *kind == REPLICATED) => {
                self.last_tiles.len()
            }
            false => return Err(self.unknown("a part of it is left to the program")),
        };
        if tiles.len() != shape.len() + replicated_dims
            || tiles.iter().product::<usize>() != devices
        {
            return Err(self.unknown("it has other dims or devices than the program"));
        }
        let order = self.order(devices)?;
        let mut coordinates = vec![Vec::new(); devices];
        for (at, device) in order.into_iter().enumerate() {
            let mut left = at;
            let mut own = vec![0; tiles.len()];
            for dim in (0..tiles.len()).rev() {
                own[dim] = left % tiles[dim];
                left /= tiles[dim];
            }
            own.truncate(shape.len());
            match coordinates.get_mut(device) {
                Some(place) if place.is_empty() || shape.is_empty() => *place = own,
                _ => return Err(self.unknown("a device has two parts")),
            }
        }
        Ok(Placement::tiled(
            shape.to_vec(),
            &tiles[..shape.len()],
            coordinates,
        ))
    }

    /// The devices of the tiles, in the order of the tiles.
    fn order(&self, devices: usize) -> Result<Vec<usize>> {
        let listed = match self.iota_shape.is_empty() {
            true => sizes(&self.devices),
            false => self.iota(),
        };
        match listed {
            Some(order) if order.len() == devices => Ok(order),
            _ => Err(self.unknown("it does not list the devices")),
        }
    }

    /// The numbers from 0 on in a shape, transposed.
    fn iota(&self) -> Option<Vec<usize>> {
        let shape = sizes(&self.iota_shape)?;
        let order: Vec<i64> = self.iota_order.iter().map(|dim| (*dim).into()).collect();
        let order = sizes(&order)?;
        let mut strides = vec![1; shape.len()];
        for at in (1..shape.len()).rev() {
            strides[at - 1] = strides[at] * shape[at];
        }
        let mut all = vec![0];
        for dim in order {
            let (size, stride) = (*shape.get(dim)?, *strides.get(dim)?);
            let inner = |start: usize| (0..size).map(move |at| start + at * stride);
            all = all.into_iter().flat_map(inner).collect();
        }
        Some(all)
    }

    fn unknown(&self, why: &str) -> Error {
        Error::msg(format_args!(
            "the plugin splits a tensor in a way that fx does not read: {why} ({self:?})"
        ))
    }
}

fn sizes(all: &[i64]) -> Option<Vec<usize>> {
    let all = all.iter().map(|size| usize::try_from(*size).ok());
    all.collect()
}
