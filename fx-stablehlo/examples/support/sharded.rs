//! Models of fx-nn split over eight devices: their batch, their layers, and both.

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_stablehlo::shard::{Mesh, ShardReport, ShardRules, mesh, shard, shard_rules};

use crate::models::Case;

/// The rules of the models that are split over devices.
fn rules(name: &str) -> Result<Option<ShardRules>> {
    Ok(match name {
        "hf_llama" => Some(ShardRules::llama("model")),
        // As `ShardRules::gpt2`, but that eight devices do not divide these 101 words.
        "gpt2" => Some(shard_rules! {
            "**.attn.c_attn.weight" => ["model", _],
            "**.attn.c_attn.bias" => ["model"],
            "**.attn.c_proj.weight" => [_, "model"],
            "**.mlp.c_fc.weight" => ["model", _],
            "**.mlp.c_fc.bias" => ["model"],
            "**.mlp.c_proj.weight" => [_, "model"],
        }),
        "hf_vit" => Some(ShardRules::vit("model")),
        "resnet18" => Some(shard_rules! {
            "**.conv1.weight" => ["model", _, _, _],
            "**.conv2.weight" => [_, "model", _, _],
        }),
        _ => None,
    })
}

/// A model that is split.
pub struct Sharded {
    pub name: String,
    pub gm: GraphModule,
    #[allow(dead_code, reason = "one of the programs costs it")]
    pub mesh: Mesh,
    #[allow(dead_code, reason = "one of the programs prints it")]
    pub report: ShardReport,
}

/// The model over eight devices in three ways, for these inputs; none if there are no rules for it.
pub fn sharded(case: &Case, inputs: &[Tensor]) -> Result<Vec<Sharded>> {
    let Some(rules) = rules(case.name)? else {
        return Ok(Vec::new());
    };
    let data = ShardRules::data_parallel("data");
    let both = rules.clone().and(data.clone());
    let all = [
        ("data", mesh!["data" = 8]?, data),
        ("tensor", mesh!["model" = 8]?, rules),
        ("both", mesh!["data" = 2, "model" = 4]?, both),
    ];
    let all = all.into_iter().map(|(kind, mesh, rules)| {
        let mut gm = case.gm.opened()?;
        let specs = inputs.iter().map(|x| Spec::of(Value::object(x.clone())));
        gm.infer_shapes(&specs.collect::<Vec<_>>())?;
        let report = shard(&mut gm, &mesh, &rules)?;
        let name = format!("{}.{kind}", case.name);
        Ok(Sharded {
            name,
            gm,
            mesh,
            report,
        })
    });
    all.collect()
}
