//! Tensors move to and from files piece by piece: whole, in every element type, and named in
//! errors.

use fx_nn::models::mlp;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::tensor::Object;
use fx_nn::value::{DType, IntoValue};
use fx_nn::weights;

use super::support::{Scratch, bits, json_of};

/// The element types that candle has.
fn held() -> impl Iterator<Item = DType> {
    let all = DType::ALL.iter().copied();
    all.filter(|dtype| fx_nn::candle_dtype(*dtype).is_ok())
}

/// A module with tensors longer than what is read at once, of which no piece is like another.
fn large() -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 1.0))?;
    let count = 150_001u32;
    let numbers: Vec<f64> = (0..count).map(|i| f64::from(i) * 0.37 - 11.0).collect();
    let numbers = Tensor::from_vec(numbers, [count as usize])?;
    for dtype in held() {
        gm.set_buffer(&format!("long.{dtype}"), &numbers.to_dtype(dtype)?)?;
    }
    let turned = Tensor::rand((300, 500))?.transpose(0, 1)?;
    gm.set_buffer("turned", &turned)?;
    gm.set_buffer("part", &turned.i(3..403)?)?;
    gm.set_parameter("learned", &Tensor::rand((300, 500))?.into_parameter()?)?;
    Ok(gm)
}

#[test]
fn long_tensors_come_back_bit_by_bit() -> Result<()> {
    let gm = large()?;
    let file = Scratch::new("long");
    gm.save(file.path())?;
    let loaded = GraphModule::load(file.path())?;
    let (state, other) = (gm.state_dict(), loaded.state_dict());
    assert_eq!(state.len(), other.len());
    for (path, value) in &state {
        assert!(bits(value)? == bits(&other[path])?, "{path}");
    }
    assert!(std::fs::read(file.path()).map_err(Error::other)? == gm.to_bytes()?);
    Ok(())
}

#[test]
fn the_file_is_what_the_safetensors_library_writes() -> Result<()> {
    let bytes = large()?.to_bytes()?;
    let json = json_of(&bytes)?.to_string();
    assert!(super::support::with_json(&bytes, &json)? == bytes);
    Ok(())
}

#[test]
fn a_file_that_was_cut_is_named_with_the_tensor() -> Result<()> {
    let file = Scratch::new("cut");
    let gm = symbolic_trace(&mlp::Mlp::new(4, 8, 2)?)?;
    gm.save(file.path())?;
    let whole = std::fs::read(file.path()).map_err(Error::other)?;
    // Sorted by name, the last one is `fc3.weight`.
    let mut linear = nn::Linear::new(8, 2)?;
    for (missing, name) in [(1, "fc3.weight"), (2 * 8 * 4 + 1, "fc3.bias")] {
        std::fs::write(file.path(), &whole[..whole.len() - missing]).map_err(Error::other)?;
        let errors = [
            GraphModule::load(file.path()).err(),
            weights::load(&mut linear, file.path()).err(),
        ];
        for error in errors {
            let told = error.map(|e| e.to_string()).unwrap_or_default();
            let start = format!(
                "{}: not a complete safetensors file: tensor `{name}`: its bytes ",
                file.path().display()
            );
            assert!(told.starts_with(&start), "{told}\n  instead of\n{start}");
        }
    }
    Ok(())
}

/// A module of one tensor.
#[derive(Module)]
struct One {
    weight: Tensor,
}

#[test]
fn weights_of_every_element_type_load_into_every_other() -> Result<()> {
    let numbers = Tensor::from_vec(vec![0.0f64, 1.0, 2.0, 100.0, 3.0, 1.0], [2, 3])?;
    for stored in held() {
        let file = Scratch::new("types");
        let weight = numbers.to_dtype(stored)?;
        weights::save(
            &One {
                weight: weight.clone(),
            },
            file.path(),
        )?;
        for dtype in held() {
            let own = Tensor::zeros([2, 3])?.to_dtype(dtype)?;
            for own in [own.clone(), own.into_parameter()?] {
                let mut module = One {
                    weight: own.clone(),
                };
                weights::load(&mut module, file.path())?;
                let expected = weight.to_dtype(dtype)?.to_vec()?;
                assert_eq!(module.weight.to_vec()?, expected, "{stored} into {dtype}");
                // In place: every holder of the tensor sees it.
                assert_eq!(own.to_vec()?, expected, "{stored} into {dtype}");
                assert_eq!(module.weight.dtype()?, dtype);
            }
        }
    }
    Ok(())
}

/// Writes a file of one tensor by hand.
fn write(file: &Scratch, dtype: &str, shape: &str, elements: &[u8]) -> Result<()> {
    let header = format!(
        r#"{{"weight":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{}]}}}}"#,
        elements.len()
    );
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.extend_from_slice(elements);
    std::fs::write(file.path(), bytes).map_err(Error::other)
}

#[test]
fn element_types_that_candle_has_not_are_read_and_widened_where_that_is_asked_for() -> Result<()> {
    let file = Scratch::new("narrow");
    let small = [-128i8, -1, 0, 127].map(|n| n as u8);
    let large = [0u16, 1, 32768, 65535].map(u16::to_le_bytes).concat();
    let cases = [
        (
            "I8",
            DType::I8,
            DType::I16,
            &small[..],
            [-128.0, -1.0, 0.0, 127.0],
        ),
        (
            "U16",
            DType::U16,
            DType::I32,
            &large[..],
            [0.0, 1.0, 32768.0, 65535.0],
        ),
    ];
    for (code, dtype, wide, elements, expected) in cases {
        write(&file, code, "[2,2]", elements)?;
        for own in [DType::F32, DType::I32] {
            let mut module = One {
                weight: Tensor::zeros((2, 2))?.to_dtype(own)?,
            };
            weights::load(&mut module, file.path())?;
            assert_eq!(module.weight.to_vec()?, expected);
            weights::load_widened(&mut module, file.path())?;
            assert_eq!(module.weight.to_vec()?, expected);
            assert_eq!(module.weight.dtype()?, own);
        }
        let read = weights::Checkpoint::open(file.path())?;
        let held = read.tensor("weight")?;
        assert_eq!((held.dtype()?, held.to_vec()?), (dtype, expected.to_vec()));
        assert_eq!(read.widen().tensor("weight")?.dtype()?, wide);
    }
    write(&file, "F32", "[1,1]", &2.5f32.to_le_bytes())?;
    let mut module = One {
        weight: Tensor::zeros((1, 1))?,
    };
    weights::load_widened(&mut module, file.path())?;
    assert_eq!(module.weight.to_vec()?, [2.5]);
    Ok(())
}

#[test]
fn weights_of_other_layouts_load() -> Result<()> {
    let file = Scratch::new("layouts");
    let weight = Tensor::rand((300, 500))?;
    weights::save(
        &One {
            weight: weight.clone(),
        },
        file.path(),
    )?;
    let mut turned = One {
        weight: Tensor::zeros((500, 300))?.transpose(0, 1)?,
    };
    weights::load(&mut turned, file.path())?;
    assert!(turned.weight.to_vec()? == weight.to_vec()?);

    let around = Tensor::zeros((600, 500))?;
    let mut part = One {
        weight: around.i(200..500)?,
    };
    weights::load(&mut part, file.path())?;
    assert!(around.i(200..500)?.to_vec()? == weight.to_vec()?);
    assert_eq!(around.i(0..200)?.sum([0, 1])?.item()?, 0.0);
    assert_eq!(around.i(500..600)?.sum([0, 1])?.item()?, 0.0);
    Ok(())
}

#[test]
fn a_load_that_is_refused_has_changed_nothing() -> Result<()> {
    let mut model = mlp::Mlp::new(4, 8, 2)?;
    let other = mlp::Mlp::new(4, 8, 2)?;
    let file = Scratch::new("refused");
    weights::save(&other, file.path())?;
    let whole = std::fs::read(file.path()).map_err(Error::other)?;
    let state = |model: &mlp::Mlp| -> Result<Vec<_>> {
        let state = model.state_dict();
        state.values().map(bits).collect()
    };
    let before = state(&model)?;
    let length = u64::from_le_bytes(*whole.first_chunk().ok_or_else(|| Error::msg("short"))?);
    let (head, elements) = whole.split_at(8 + length as usize);
    let header = std::str::from_utf8(&head[8..]).map_err(Error::other)?;
    let changed = |from: &str, to: &str| -> Vec<u8> {
        let header = header.replacen(from, to, 1);
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(elements);
        bytes
    };
    let broken = [
        whole[..whole.len() - 1].to_vec(),
        changed("\"shape\":[2,8]", "\"shape\":[8,2]"),
        changed("fc3.weight", "fc3.weighs"),
        changed(
            "\"dtype\":\"F32\",\"shape\":[2,8]",
            "\"dtype\":\"F8_E4M3\",\"shape\":[64]",
        ),
    ];
    for bytes in broken {
        assert!(bytes != whole);
        std::fs::write(file.path(), bytes).map_err(Error::other)?;
        let told = weights::load(&mut model, file.path()).err();
        let told = told.map(|e| e.to_string()).unwrap_or_default();
        assert!(told.contains("fc3.weigh"), "{told}");
        assert!(
            told.starts_with(&file.path().display().to_string()),
            "{told}"
        );
        assert!(state(&model)? == before, "{told}");
    }
    std::fs::write(file.path(), &whole).map_err(Error::other)?;
    weights::load(&mut model, file.path())?;
    assert!(state(&model)? == state(&other)?);
    Ok(())
}

#[test]
fn a_modules_own_tensors_can_be_given_under_other_names() -> Result<()> {
    #[derive(Module)]
    struct Two {
        a: Tensor,
        b: Tensor,
    }
    for parameters in [false, true] {
        let make = |number: f64| -> Result<Tensor> {
            let tensor = Tensor::full(3, number, DType::F32)?;
            if parameters {
                tensor.into_parameter()
            } else {
                Ok(tensor)
            }
        };
        let mut two = Two {
            a: make(1.0)?,
            b: make(2.0)?,
        };
        let swapped = [
            ("a".to_string(), two.b.clone()),
            ("b".to_string(), two.a.clone()),
        ];
        weights::load_state_dict(&mut two, &swapped.into_iter().collect())?;
        assert_eq!(two.a.to_vec()?, [2.0; 3]);
        assert_eq!(two.b.to_vec()?, [1.0; 3]);
    }
    Ok(())
}

#[test]
fn a_tensors_elements_are_as_many_as_its_shape_says() -> Result<()> {
    use fx_nn::tensor::TensorData;
    let given = |pieces: &'static [usize]| {
        TensorData::streamed("x::T", DType::F32, vec![4], move |sink| {
            pieces.iter().try_for_each(|piece| sink(&vec![0; *piece]))
        })
    };
    assert_eq!(given(&[4, 12])?.bytes()?.len(), 16);
    for wrong in [&[4, 8][..], &[16, 4], &[2, 14], &[]] {
        assert!(given(wrong)?.bytes().is_err(), "{wrong:?}");
    }
    let value = Tensor::rand((2, 3))?.into_value();
    let data = value.as_object().map(Object::to_data);
    let data = data.ok_or_else(|| Error::msg("a tensor is an object"))??;
    assert_eq!(data.byte_len(), 24);
    Ok(())
}
