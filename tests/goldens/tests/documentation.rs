//! torch.fx's documented examples beyond graph and numbers: the texts, and the graphs that have no numbers.

#[path = "documentation/features.rs"]
mod features;

use fx_core::prelude::*;
use fx_goldens::cases::documentation::my_module;

#[test]
fn my_module_reads_as_the_readme_says() -> Result<()> {
    let module = my_module()?;
    let traced = symbolic_trace(&module)?;
    assert_eq!(
        traced.graph().to_string(),
        "\
graph():
    %x : [num_users=1] = placeholder[target=x]
    %param : [num_users=1] = get_attr[target=param]
    %add : [num_users=1] = call_function[target=fx_core::operator::add](args = (%x, %param), kwargs = {})
    %linear : [num_users=1] = call_module[target=linear](args = (%add,), kwargs = {})
    %clamp : [num_users=1] = call_method[target=clamp](args = (%linear,), kwargs = {min: 0.0, max: 1.0})
    return %clamp"
    );
    assert_eq!(
        traced.code(),
        "\
pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
    let param = &self.param;
    let add = (x + param)?;
    let linear = self.linear.forward(&add)?;  drop(add);
    let clamp = linear.clamp(0.0, 1.0)?;  drop(linear);
    Ok(clamp)
}
"
    );
    assert_eq!(
        traced.graph().tabular(),
        "\
opcode         name    target                  args          kwargs
-------------  ------  ----------------------  ------------  --------------------
placeholder    x       x                       ()            {}
get_attr       param   param                   ()            {}
call_function  add     fx_core::operator::add  (%x, %param)  {}
call_module    linear  linear                  (%add,)       {}
call_method    clamp   clamp                   (%linear,)    {min: 0.0, max: 1.0}
output         output  output                  (%clamp,)     {}
"
    );
    Ok(())
}
