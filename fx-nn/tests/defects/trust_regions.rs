//! Branches, loops and scans with layers inside, each by the number of its defect: none may come back.

use fx_nn::control;
use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::passes::{Decompositions, FuseBatchNorm};
use fx_nn::prelude::*;

/// Layers in a branch, in a loop with a `break` on a count, and in a scan.
#[derive(Module)]
struct Net {
    up: nn::Linear,
    down: nn::LayerNorm,
}

#[trace(control_flow)]
impl Net {
    fn forward(&self, x: &Tensor, n: Int) -> Result<Tensor> {
        let mut h = x.clone();
        if h.sum(..)?.gt(0.0)? {
            h = self.up.forward(&h)?.relu()?;
        } else {
            h = self.down.forward(&h)?;
        }
        let mut turns = Int::from(0);
        while h.abs()?.amax(..)?.gt(0.5)? {
            h = (self.down.forward(&h)? * 0.25)?;
            turns = (turns + 1)?;
            if turns == 3 {
                break;
            }
        }
        for i in 0..n {
            h = (self.up.forward(&h)?.tanh()? + i)?;
        }
        let (_, all) = control::scan(h.i(0)?, h.clone(), |sum: Tensor, row: Tensor| {
            let sum = (sum + self.up.forward(&row.unsqueeze(0)?)?.squeeze(0)?)?;
            Ok((sum.clone(), sum))
        })?;
        Ok(all)
    }
}

fn net() -> Result<Net> {
    fx_nn::manual_seed(3);
    Ok(Net {
        up: nn::Linear::new(4, 4)?,
        down: nn::LayerNorm::new(4)?,
    })
}

fn close(gm: &GraphModule, net: &Net) -> Result<()> {
    for (sign, n) in [(1.0, 0i64), (-1.0, 2), (0.01, -3), (3.0, 1)] {
        let x = (Tensor::arange(0, 12)?.to_dtype(DType::F32)?.view((3, 4))? * sign)?;
        let eager = net.forward(&x, Int::from(n))?;
        let found: Tensor = gm.forward((&x, n))?;
        let (eager, found) = (eager.to_vec()?, found.to_vec()?);
        let most = eager.iter().zip(&found).map(|(a, b)| (a - b).abs());
        assert!(
            most.fold(0.0, f64::max) < 1e-4,
            "{n}: {eager:?} {found:?}\n{}",
            gm.code()
        );
    }
    Ok(())
}

#[test]
fn defect_t3_c7_layers_inside_of_branches_loops_and_scans_are_opened() -> Result<()> {
    let net = net()?;
    let gm = symbolic_trace(&net)?;
    close(&gm, &net)?;
    let mut opened = gm.opened()?;
    close(&opened, &net)?;
    assert_eq!(opened.modules_of::<nn::Linear>().count(), 0);
    opened.apply(&Decompositions::core()?)?;
    close(&opened, &net)?;
    let again = opened.opened()?;
    close(&again, &net)
}

/// Rows of the module's own, which no input decides.
#[derive(Module)]
struct Own {
    act: nn::Mish,
    rows: Tensor,
}

#[trace]
impl Own {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let rows = self.rows.abs()?;
        let (last, _) = control::scan(x.clone(), rows, |sum: Tensor, row: Tensor| {
            let sum = (self.act.forward(&sum)? + row)?;
            Ok((sum.clone(), sum))
        })?;
        Ok(last)
    }
}

#[test]
fn a_scan_over_a_constant_stays_one_where_it_is_opened() -> Result<()> {
    let rows = Tensor::from_vec(vec![1.0f32, -2.0, 3.0], 3)?;
    let net = Own {
        act: nn::Mish::new(),
        rows,
    };
    let x = Tensor::ones(())?;
    let want = net.forward(&x)?.to_vec()?;
    let mut gm = symbolic_trace(&net)?;
    gm.apply(&fx_nn::passes::FoldConstants::new())?;
    assert!(gm.graph().find_name("abs").is_none());
    let mut opened = gm.opened()?;
    assert!(
        opened.graph().find_name("scan").is_some(),
        "{}",
        opened.graph()
    );
    for _ in 0..2 {
        assert_eq!(opened.forward::<Tensor>(&x)?.to_vec()?, want);
        opened.apply(&Decompositions::core()?)?;
    }
    Ok(())
}

#[test]
fn defect_t3_c6_the_report_says_of_loops_what_is_so() -> Result<()> {
    let net = net()?;
    let gm = symbolic_trace(&net)?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let report = fast.meta::<LowerReport>();
    let report = report.ok_or_else(|| Error::msg("the report stays with the module"))?;
    let text = report.to_string();
    assert!(!text.contains("cannot be traced"), "{text}");
    let regions = report.left.iter();
    let regions =
        regions.filter(|left| left.reason.contains("its sides are lowered by themselves"));
    assert!(regions.count() >= 4, "{text}");
    let parts = report.parts.iter().filter(|part| part.path.contains('.'));
    assert!(parts.count() > 0, "{text}");
    Ok(())
}

#[test]
fn defect_t3_e11_a_fused_convolution_is_another() -> Result<()> {
    let mut model = nn::Sequential::new()
        .push(nn::Conv2d::new(2, 3, 3)?)
        .push(nn::BatchNorm2d::new(3)?);
    model.eval();
    let before = symbolic_trace(&model)?;
    let mut after = before.clone();
    after.apply(&FuseBatchNorm)?;
    let text = before.diff(&after).to_string();
    assert!(
        text.contains("call_module[0]") && text.contains("with another weight"),
        "{text}"
    );
    // The same elements in other tensors are the same.
    let loaded = GraphModule::from_bytes(&before.to_bytes()?)?;
    assert!(before.diff(&loaded).is_empty(), "{}", before.diff(&loaded));
    Ok(())
}
