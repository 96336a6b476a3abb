//! Results that no memory holds: an error before anything is allocated, whatever makes them.

use std::process::Command;

use fx_nn::prelude::*;

/// Says to a program of this test which growth it is to try.
const GROWTH: &str = "FX_TEST_GROWTH";

/// What makes a tensor much larger than its operands.
fn growth(name: &str) -> Result<Tensor> {
    let million = 1usize << 20;
    let (column, row) = (Tensor::ones((million, 1))?, Tensor::ones((1, million))?);
    let flat = Tensor::ones(million)?;
    let far = 1i64 << 40;
    match name {
        "doubling by cat" => {
            let mut x = Tensor::ones(1 << 20)?;
            for _ in 0..35 {
                x = ops::cat(&[&x, &x], 0)?;
            }
            Ok(x)
        }
        "doubling by cat of columns" => {
            let mut x = Tensor::ones((1 << 10, 1 << 10))?;
            for _ in 0..35 {
                x = ops::cat(&[&x, &x], 1)?;
            }
            Ok(x)
        }
        "doubling by stack" => {
            let mut x = Tensor::ones(1 << 20)?;
            for _ in 0..35 {
                x = ops::stack(&[&x, &x], 0)?;
            }
            Ok(x)
        }
        "doubling by repeat" => {
            let mut x = Tensor::ones(1 << 20)?;
            for _ in 0..35 {
                x = x.repeat(2)?;
            }
            Ok(x)
        }
        "doubling by pad" => {
            let mut x = Tensor::ones(1 << 20)?;
            for at in 0..35 {
                x = ops::pad(&x, [0, 1 << (20 + at)], "constant", None)?;
            }
            Ok(x)
        }
        "doubling by expand" => {
            let mut x = Tensor::ones((1, 1 << 20))?;
            for _ in 0..35 {
                let wide = x.expand((2, -1))?.contiguous()?;
                x = ops::reshape(&wide, [1, -1])?;
            }
            Ok(x)
        }
        "doubling by repeat_interleave" => {
            let mut x = Tensor::ones(1 << 20)?;
            for _ in 0..35 {
                x = ops::repeat_interleave(&x, 2, Some(0))?;
            }
            Ok(x)
        }
        "doubling by index_select" => {
            let mut x = Tensor::ones((1 << 10, 1 << 10))?;
            let twice = Tensor::from_vec(
                (0..1 << 11).map(|at| at % (1 << 10)).collect::<Vec<i64>>(),
                1 << 11,
            )?;
            for _ in 0..35 {
                x = ops::reshape(&ops::index_select(&x, 0, &twice)?, [1 << 10, -1])?;
            }
            Ok(x)
        }
        "add" => &column + &row,
        "where" => ops::r#where(&column.gt(0.0)?, &column, &row),
        "eq" => column.eq(&row),
        "maximum" => ops::maximum(&column, &row),
        "pow" => column.pow(&row),
        "lerp" => ops::lerp(&column, &row, 0.5),
        "outer" => ops::outer(&flat, &flat),
        "matmul" => ops::matmul(&column, &row),
        "einsum" => ops::einsum("i,j->ij", &[&flat, &flat]),
        "kron" => ops::kron(&flat, &flat),
        "cdist" => ops::cdist(&column, &column, 2.0, "donot_use_mm_for_euclid_dist"),
        "repeat" => flat.repeat(far),
        "tile" => ops::tile(&flat, [far]),
        "expand" => Tensor::ones(1)?.expand(far)?.contiguous(),
        "diag_embed" => ops::diag_embed(&flat, 0, 0, 1),
        "repeat_interleave" => ops::repeat_interleave(&flat, far, None),
        "pad" => ops::pad(&row, [far, far], "constant", None),
        "replicate" => ops::pad(&row, [far, far], "replicate", None),
        "one_hot" => ops::one_hot(&Tensor::zeros(million)?.to_dtype(DType::I64)?, far),
        "cartesian_prod" => Ok(ops::cartesian_prod(&[&flat, &flat])?),
        "Upsample" => nn::Upsample::new(1e6).forward(&Tensor::ones((1, 1, 8, 8))?),
        "zeros" => Tensor::zeros(far as usize),
        "arange" => ops::arange(0, far, 1, None),
        other => Err(Error::msg(format_args!("there is no growth `{other}`"))),
    }
}

const ALL: [&str; 31] = [
    "doubling by cat",
    "doubling by cat of columns",
    "doubling by stack",
    "doubling by repeat",
    "doubling by pad",
    "doubling by expand",
    "doubling by repeat_interleave",
    "doubling by index_select",
    "add",
    "where",
    "eq",
    "maximum",
    "pow",
    "lerp",
    "outer",
    "matmul",
    "einsum",
    "kron",
    "cdist",
    "repeat",
    "tile",
    "expand",
    "diag_embed",
    "repeat_interleave",
    "pad",
    "replicate",
    "one_hot",
    "cartesian_prod",
    "Upsample",
    "zeros",
    "arange",
];

/// Each in a program of its own with 1.4 GB of memory, which an allocation that fails would abort.
#[test]
#[cfg(target_os = "linux")]
fn defect_t3_p3_what_grows_ends_in_an_error() -> Result<()> {
    if let Ok(name) = std::env::var(GROWTH) {
        let problem = growth(&name).map_or_else(|e| e.to_string(), |_| "it was made".to_string());
        assert!(
            problem.contains("not enough memory") || problem.contains("than can be counted"),
            "{name}: {problem}"
        );
        return Ok(());
    }
    let own = std::env::current_exe().map_err(Error::other)?;
    let test = "defects::trust_memory::defect_t3_p3_what_grows_ends_in_an_error";
    let mut failed = Vec::new();
    for name in ALL {
        let run = Command::new("sh")
            .args(["-c", "ulimit -v 1400000; exec \"$0\" --exact \"$1\""])
            .arg(&own)
            .arg(test)
            .env(GROWTH, name)
            .env("RAYON_NUM_THREADS", "2")
            .output()
            .map_err(Error::other)?;
        if !run.status.success() {
            let text = [run.stdout, run.stderr].concat();
            failed.push(format!("{name}: {}", String::from_utf8_lossy(&text)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Memory that the system lends and does not have: writing it would end the process.
#[test]
#[cfg(target_os = "linux")]
fn defect_t3_p3_more_than_the_machine_has_left_is_refused() -> Result<()> {
    let text = std::fs::read_to_string("/proc/meminfo").map_err(Error::other)?;
    let of = |name: &str| -> Option<usize> {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    let (Some(total), Some(left)) = (of("MemTotal:"), of("MemAvailable:")) else {
        return Ok(());
    };
    let swap = of("SwapFree:").unwrap_or(0);
    let elements = (total + left + 2 * swap) / 2 * 1024 / 4;
    let large = Tensor::ones(1)?
        .expand(elements as i64)
        .and_then(|x| x.contiguous());
    let problem = large.map_or_else(|e| e.to_string(), |_| "it was made".to_string());
    assert!(problem.contains("not enough memory"), "{problem}");
    Ok(())
}
