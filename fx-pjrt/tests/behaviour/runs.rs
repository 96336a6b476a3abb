//! Runs that go wrong: on the device, in what is given, in what comes back.

use fx_nn::Result;
use fx_nn::prelude::*;
use fx_pjrt::{Client, Code, DeviceTensor, LoadedProgram, PjrtError};
use fx_stablehlo::{Export, Program};

use super::stub::{Stub, program, run};

#[test]
fn a_run_gives_what_the_plugin_gives() -> Result<()> {
    for mode in ["", "late"] {
        let stub = Stub::new(mode);
        assert_eq!(run(&stub)?.to_vec()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(stub.live(), 0, "{mode}");
    }
    Ok(())
}

#[test]
fn other_results_than_the_program_has_are_refused() {
    for (mode, expected) in [
        ("more results", "gives 2 results, and the graph gives 1"),
        ("fewer results", "gives 0 results, and the graph gives 1"),
        (
            "another shape",
            "with the sizes [2, 3, 7] as result 0, and the graph gives float32 with [2, 3]",
        ),
        ("another type", "gives int64 with the sizes [2, 3]"),
        ("unknown type", "elements of a type that fx does not have"),
        (
            "run gives less",
            "the run gave fewer results than the program has",
        ),
    ] {
        let stub = Stub::new(mode);
        let error = run(&stub).expect_err(mode).to_string();
        assert!(error.contains(expected), "{mode}: {error}");
        assert_eq!(stub.live(), 0, "{mode}");
    }
}

#[test]
fn devices_fail_later_and_have_no_room() {
    for (mode, expected) in [
        ("dies", "INTERNAL: the device died"),
        ("copy dies", "INTERNAL: the device died"),
        (
            "memory",
            "RESOURCE_EXHAUSTED: no room\nThe device's memory is full: use a smaller batch",
        ),
    ] {
        let stub = Stub::new(mode);
        let error = run(&stub).expect_err(mode).to_string();
        assert!(error.contains(expected), "{mode}: {error}");
        assert_eq!(stub.live(), 0, "{mode}");
    }
}

#[test]
fn a_donated_tensor_is_not_read() -> Result<()> {
    let stub = Stub::new("");
    {
        let client = stub.client()?;
        let program = LoadedProgram::new(&client, &program()?)?;
        let x = Tensor::ones((2, 3))?;
        let inputs = program.place([&x, &x])?;
        let [cache, x] = &inputs[..] else {
            unreachable!("there are two inputs")
        };
        program.run(&[cache, x])?;
        assert_eq!(x.to_tensor()?.to_vec()?, [1.0; 6]);
        for error in [
            cache.to_tensor().map(drop),
            cache.wait(),
            cache.address().map(drop),
        ] {
            let error = error.expect_err("it was donated").to_string();
            assert!(
                error.contains("this tensor was donated to `cache`"),
                "{error}"
            );
        }
        let again = program
            .run(&[cache, x])
            .expect_err("it was donated")
            .to_string();
        assert!(
            again.contains("the input `cache`: this tensor was donated"),
            "{again}"
        );
    }
    assert_eq!(stub.live(), 0);
    Ok(())
}

#[test]
fn inputs_that_do_not_fit_are_refused() -> Result<()> {
    let stub = Stub::new("");
    let client: Client = stub.client()?;
    let program = LoadedProgram::new(&client, &program()?)?;
    let (x, wide) = (Tensor::ones((2, 3))?, Tensor::ones((2, 4))?);
    let whole = ops::to_dtype(&x, DType::I64)?;
    for (inputs, expected) in [
        (vec![&x], "takes 2 inputs (cache, x), and 1 are given"),
        (
            vec![&x, &wide],
            "the input `x` is a tensor of float32 with the sizes [2, 4]",
        ),
        (vec![&whole, &x], "the input `cache` is a tensor of int64"),
    ] {
        let error = program.call(inputs).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let there = DeviceTensor::new(&client, &wide)?;
    let error = program
        .run(&[&there, &there])
        .expect_err("the sizes differ");
    assert!(
        error.to_string().contains("the program was compiled for"),
        "{error}"
    );
    Ok(())
}

#[test]
fn what_a_plugin_refuses_is_blamed_on_its_node() -> Result<()> {
    let stub = Stub::new("refuse the second place");
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()?.exp()))?;
    let program = Program::of(&gm, &Export::example(&Tensor::ones(3)?))?;
    let error = LoadedProgram::new(&stub.client()?, &program);
    let error = error.expect_err("it is refused");
    // The plugin's error is behind it.
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source.filter(|error| !error.is::<PjrtError>()) {
        source = error.source();
    }
    let of_plugin = source.and_then(|error| error.downcast_ref::<PjrtError>());
    assert_eq!(
        of_plugin.map(|error| error.code),
        Some(Code::InvalidArgument)
    );
    let error = error.to_string();
    assert!(
        error.starts_with("%relu: PJRT_Client_Compile: INVALID_ARGUMENT: "),
        "{error}"
    );
    assert!(error.contains("runs.rs:"), "{error}");
    Ok(())
}
