//! The models of fx-nn, small where they can be, with calls of several batches.

use fx_nn::models;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;

/// A model, traced, with a call of a batch.
pub struct Case {
    pub name: &'static str,
    pub gm: GraphModule,
    /// The inputs for a batch.
    pub inputs: fn(usize) -> Result<Vec<Tensor>>,
    /// The batches, the first for the export.
    pub batches: [usize; 3],
}

impl Case {
    /// The inputs of which the first dim is the batch.
    pub fn axes(&self) -> Vec<(String, usize)> {
        let names = self
            .gm
            .graph()
            .placeholders()
            .map(|node| node.target().to_string());
        let fixed = self.name == "gpt2_scalar";
        names
            .filter(|_| !fixed)
            .take(self.inputs_len())
            .map(|name| (name, 0))
            .collect()
    }

    fn inputs_len(&self) -> usize {
        (self.inputs)(1).map_or(1, |inputs| inputs.len())
    }
}

pub fn images(batch: usize, channels: usize, size: usize) -> Result<Vec<Tensor>> {
    Ok(vec![Tensor::randn((batch, channels, size, size))?])
}

pub fn tokens(batch: usize, length: usize, vocab: i64) -> Result<Tensor> {
    let ids: Vec<i64> = (0..(batch * length) as i64)
        .map(|i| (i * 7 + 3) % vocab)
        .collect();
    Tensor::from_vec(ids, (batch, length))
}

fn traced<M: Module>(mut model: M) -> Result<GraphModule> {
    model.eval();
    symbolic_trace(&model)
}

/// All of them, filled from one seed.
pub fn all() -> Result<Vec<Case>> {
    fx_nn::manual_seed(7);
    let mut cases = Vec::new();
    let mut add = |name, gm: GraphModule, inputs: fn(usize) -> Result<Vec<Tensor>>, batches| {
        cases.push(Case {
            name,
            gm,
            inputs,
            batches,
        });
    };
    let small = [2, 3, 5];
    add(
        "alexnet",
        traced(models::alexnet::alexnet(10)?)?,
        |n| images(n, 3, 224),
        [1, 2, 3],
    );
    add(
        "autoencoder",
        traced(models::autoencoder::AutoEncoder::new()?)?,
        |n| images(n, 3, 16),
        small,
    );
    let bert = models::bert::Config {
        vocab_size: 97,
        max_positions: 24,
        length: 10,
        width: 48,
        heads: 4,
        intermediate: 96,
        layers: 2,
        labels: 3,
        dropout: 0.1,
    };
    add(
        "bert",
        traced(models::bert::Bert::new(&bert)?)?,
        |n| {
            let ids = tokens(n, 10, 97)?;
            Ok(vec![
                ids.clone(),
                ops::ones_like(&ids, None)?,
                ops::zeros_like(&ids, None)?,
            ])
        },
        small,
    );
    add(
        "convnext_tiny",
        traced(models::convnext::convnext_tiny(10)?)?,
        |n| images(n, 3, 64),
        small,
    );
    add(
        "dict_out",
        traced(models::dict_out::DictOut::new(8)?)?,
        |n| Ok(vec![Tensor::randn((n, 8))?]),
        small,
    );
    let gpt2 = models::gpt2::Config {
        vocab_size: 101,
        block_size: 16,
        n_layer: 2,
        n_head: 4,
        n_embd: 64,
        dropout: 0.1,
    };
    add(
        "gpt2",
        traced(models::gpt2::Gpt2::new(&gpt2)?)?,
        |n| Ok(vec![tokens(n, 16, 101)?]),
        small,
    );
    add(
        "lstm_classifier",
        traced(models::lstm_classifier::LstmClassifier::new(50, 16, 24, 5)?)?,
        |n| Ok(vec![tokens(n, 7, 50)?]),
        small,
    );
    add(
        "mlp",
        traced(models::mlp::Mlp::new(16, 32, 4)?)?,
        |n| Ok(vec![Tensor::randn((n, 16))?]),
        small,
    );
    add(
        "mobilenet_v2",
        traced(models::mobilenet::mobilenet_v2(10)?)?,
        |n| images(n, 3, 64),
        small,
    );
    add(
        "nested",
        traced(models::nested::Nested::new(8)?)?,
        |n| Ok(vec![Tensor::randn((n, 8))?]),
        small,
    );
    add(
        "resnet18",
        traced(models::resnet::resnet18(10)?)?,
        |n| images(n, 3, 64),
        small,
    );
    add(
        "resnet50",
        traced(models::resnet::resnet50(10)?)?,
        |n| images(n, 3, 64),
        [1, 2, 3],
    );
    add(
        "shared_sub",
        traced(models::shared_sub::SharedSub::new(6)?)?,
        |n| Ok(vec![Tensor::randn((n, 6))?]),
        small,
    );
    add(
        "siamese",
        traced(models::siamese::Siamese::new()?)?,
        |n| {
            Ok(vec![
                Tensor::randn((n, 1, 28, 28))?,
                Tensor::randn((n, 1, 28, 28))?,
            ])
        },
        small,
    );
    add(
        "transformer",
        traced(models::transformer::TransformerEncoderLayer::new(
            32, 4, 64,
        )?)?,
        |n| Ok(vec![Tensor::randn((n, 6, 32))?]),
        small,
    );
    add(
        "tuple_out",
        {
            let mut model = models::tuple_out::TupleOut::new(8)?;
            model.eval();
            Trace::new(&model).concrete("y", PH).graph_module()?
        },
        |n| Ok(vec![Tensor::randn((n, 8))?, Tensor::randn((n, 8))?]),
        small,
    );
    add(
        "unet",
        traced(models::unet::UNet::new(3, 2, 8)?)?,
        |n| images(n, 3, 32),
        small,
    );
    add(
        "vgg11_bn",
        traced(models::vgg::vgg11_bn(10)?)?,
        |n| images(n, 3, 224),
        [1, 2, 2],
    );
    add(
        "vit_b_16",
        traced(models::vit::vit_b_16(64, 10)?)?,
        |n| images(n, 3, 64),
        [1, 2, 3],
    );
    cases.extend(super::families::all()?);
    Ok(cases)
}
