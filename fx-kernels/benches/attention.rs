//! Attention of a token over a cache of 4,096 others, by the type of the cache: prints `name value` lines.
//! Parts of names as arguments choose.
#![allow(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use fx_kernels::Level;
use fx_kernels::attention::{Attention, HeadRows, attention};
use fx_kernels::convert::Element;
use half::{bf16, f16};

/// Milliseconds of a token at best, and the gigabytes of keys and values that it reads in a second.
fn token<T: Element + Default>(name: &str, heads: usize, kv_heads: usize, queries: usize) {
    let name = format!("{name}/{heads}_{kv_heads}x{queries}");
    let mut arguments = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"));
    if arguments.by_ref().next().is_some()
        && !std::env::args().any(|argument| name.contains(&argument))
    {
        return;
    }
    const KEYS: usize = 4096;
    const SIZE: usize = 64;
    let floats = vec![0.25f32; kv_heads * KEYS * SIZE];
    let mut cache = vec![T::default(); floats.len()];
    T::narrow(&floats, &mut cache);
    // Layers one after another, so that no cache stays in the processor's.
    let layers: Vec<[Vec<T>; 2]> = (0..24).map(|_| [cache.clone(), cache.clone()]).collect();
    let q = vec![0.5f32; heads * queries * SIZE];
    fn rows<T>(data: &[T], places: usize) -> HeadRows<'_, T> {
        HeadRows {
            data,
            start: 0,
            batch: 0,
            head: places * SIZE,
            place: SIZE,
            column: 1,
        }
    }
    let sizes = Attention {
        kv_heads,
        keys: KEYS,
        ..Attention::new(1, heads, queries, SIZE)
    };
    let mut out = vec![0.0; q.len()];
    let mut best = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        for [k, v] in &layers {
            let (k, v) = (rows(k, KEYS), rows(v, KEYS));
            attention(Level::best(), sizes, rows(&q, queries), k, v, &mut out)
                .expect("the sizes fit");
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    let bytes = 24 * 2 * size_of_val(&cache[..]);
    println!(
        "attention.{name} {:.2} ms {:.1} GB/s",
        best * 1e3,
        bytes as f64 / best / 1e9
    );
}

fn main() {
    for (heads, kv_heads) in [(14, 2), (12, 12), (32, 8)] {
        token::<f32>("f32", heads, kv_heads, 1);
        token::<bf16>("bf16", heads, kv_heads, 1);
        token::<f16>("f16", heads, kv_heads, 1);
    }
}
