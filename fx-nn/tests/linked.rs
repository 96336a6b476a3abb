//! A program that looks nothing up by name: it holds the functions that it calls, and no others.

use fx_nn::prelude::*;

/// A generic layer.
#[derive(Module)]
struct Twice<M> {
    inner: M,
}

#[trace(leaf)]
impl<M: Module> Twice<M> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let once: Tensor = self.inner.forward((x,))?;
        self.inner.forward((&once,))
    }
}

fx_nn::register_module!(Twice<nn::Tanh>);

#[derive(Module)]
struct Net {
    twice: Twice<nn::Tanh>,
}

#[trace]
impl Net {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.twice.forward(&x.matmul(&x.t()?)?)?.relu()
    }
}

fn traced() -> Result<(Net, GraphModule)> {
    let net = Net {
        twice: Twice {
            inner: nn::Tanh::new(),
        },
    };
    let gm = symbolic_trace(&net)?;
    Ok((net, gm))
}

#[test]
fn methods_and_modules_are_known_without_the_tables() -> Result<()> {
    let (net, gm) = traced()?;
    let x = Tensor::from_vec(vec![1f32, -2.0, 3.0, 4.0], (2, 2))?;
    let y: Tensor = gm.forward(&x)?;
    assert_eq!(y.to_vec()?, net.forward(&x)?.to_vec()?);
    let methods = gm.graph().nodes().filter(|node| node.function().is_some());
    assert_eq!(methods.count(), 3);
    for path in ["twice", "twice.inner"] {
        assert!(gm.submodule(path)?.module().is_ok(), "{path}");
    }
    Ok(())
}

/// Whether this program has a text, which is given backwards, so that it is not in the program because of the question.
fn has(backwards: &str) -> bool {
    let text: Vec<u8> = backwards.bytes().rev().collect();
    let program = std::env::current_exe().and_then(std::fs::read);
    let program = program.expect("a program may read itself");
    program.windows(text.len()).any(|window| window == text)
}

/// The linker drops what nothing reads, on ELF targets; mold does not.
#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "the tables are lists")]
fn a_program_holds_what_it_calls() -> Result<()> {
    traced()?;
    assert!(
        has("noisnemid 1 tsael ta evah htob tsum"),
        "the error of a product"
    );
    assert!(
        !has("suougitnoc ton era smhtiragol eht"),
        "the program has the error of a loss that it does not call: something that every program reaches reads a table \
         of all functions or modules (`-C link-arg=-Wl,--why-live=SYMBOL -W linker-messages` says what)"
    );
    Ok(())
}
