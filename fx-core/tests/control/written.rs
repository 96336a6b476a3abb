//! Written by the tests of `source.rs`.
#![allow(clippy::all, unused, reason = "generated")]

use fx_core::module::Tag;
use fx_core::prelude::*;

#[derive(Module, Default)]
pub struct Sides {
    tag: Tag,
}

#[trace(control_flow)]
impl Sides {
    pub fn forward(&self, x: Float) -> Result<Float> {
        let gt = (x > 1.0)?;
        let cond_1 = if gt {
            let mul = (x * 3.0)?;
            mul
        } else {
            let gt_1 = (x > -2.0)?;
            let cond = if gt_1 {
                let sub = (x - 1.0)?;
                let mul_1 = (sub * sub)?;
                mul_1
            } else {
                x
            };
            cond
        };
        let gt_2 = (cond_1 > 5.0)?;
        let cond_2 = if gt_2 {
            let mul_2 = (cond_1 * 0.5)?;
            mul_2
        } else {
            let add = (cond_1 + 0.25)?;
            add
        };
        let add_1 = (cond_1 + cond_2)?;
        Ok(add_1)
    }
}

#[derive(Module, Default)]
pub struct Breaks {
    tag: Tag,
}

#[trace(control_flow)]
impl Breaks {
    pub fn forward(&self, x: Float) -> Result<Float> {
        let lt = (x < 100.0)?;
        let while_loop = {
            let (mut while_loop_go, mut while_loop_0) = (lt, x);
            while while_loop_go {
                let carry = while_loop_0;
                let mul = (carry * 2.0)?;
                let gt = (mul > 20.0)?;
                let cond_1 = if gt {
                    let add = (mul + 0.5)?;
                    add
                } else {
                    let lt_1 = (mul < 3.0)?;
                    let cond = if lt_1 {
                        let mul_1 = (mul * 0.25)?;
                        let add_1 = (mul_1 + 3.0)?;
                        add_1
                    } else {
                        let add_2 = (mul + 0.25)?;
                        add_2
                    };
                    cond
                };
                let invert = (!gt)?;
                let cond_2 = if invert {
                    let lt_2 = (cond_1 < 100.0)?;
                    lt_2
                } else {
                    Bool::from(false)
                };
                (while_loop_go, while_loop_0) = (cond_2, cond_1);
            }
            while_loop_0
        };
        Ok(while_loop)
    }
}

#[derive(Module, Default)]
pub struct Early {
    tag: Tag,
}

#[trace(control_flow)]
impl Early {
    pub fn forward(&self, x: Float) -> Result<Float> {
        let lt = (x < -5.0)?;
        let invert = (!lt)?;
        assert!(invert, "the input is too small");
        let mul = (x * 2.0)?;
        let gt = (mul > 50.0)?;
        let cond_1 = if gt {
            mul
        } else {
            let add = (mul + 1.0)?;
            let gt_1 = (add > 3.0)?;
            let cond = if gt_1 {
                let mul_1 = (add * add)?;
                let sub = (mul_1 - 1.0)?;
                sub
            } else {
                let mul_2 = (add * 0.5)?;
                mul_2
            };
            cond
        };
        Ok(cond_1)
    }
}

#[derive(Module, Default)]
pub struct Collatz {
    tag: Tag,
}

#[trace(control_flow)]
impl Collatz {
    pub fn forward(&self, n: Int) -> Result<Int> {
        let gt = (n > 1)?;
        let while_loop = {
            let (mut while_loop_go, mut while_loop_0, mut while_loop_1) = (gt, n, Int::from(0));
            while while_loop_go {
                let (carry, carry_1) = (while_loop_0, while_loop_1);
                let mod_1 = (carry % 2)?;
                let eq = (mod_1 == 0)?;
                let cond = if eq {
                    let floordiv = carry.floordiv(2)?;
                    floordiv
                } else {
                    let mul = (carry * 3)?;
                    let add = (mul + 1)?;
                    add
                };
                let add_1 = (carry_1 + 1)?;
                let gt_1 = (cond > 1)?;
                (while_loop_go, while_loop_0, while_loop_1) = (gt_1, cond, add_1);
            }
            (while_loop_0, while_loop_1)
        };
        let getitem_1 = while_loop.1.clone();
        Ok(getitem_1)
    }
}

#[derive(Module, Default)]
pub struct Repeats {
    tag: Tag,
}

#[trace(control_flow)]
impl Repeats {
    pub fn forward(&self, x: Float) -> Result<Float> {
        let mul = (x * 0.5)?;
        let lt = (mul < 0.1)?;
        let cond = if lt {
            (mul, Int::from(0))
        } else {
            let add = (mul + 0.01)?;
            (add, Int::from(1))
        };
        let getitem = cond.0.clone();
        let getitem_1 = cond.1.clone();
        let invert = (!lt)?;
        let while_loop = {
            let (mut while_loop_go, mut while_loop_0, mut while_loop_1) =
                (invert, getitem, getitem_1);
            while while_loop_go {
                let (carry, carry_1) = (while_loop_0, while_loop_1);
                let mul_1 = (carry * 0.5)?;
                let lt_1 = (mul_1 < 0.1)?;
                let cond_2 = if lt_1 {
                    (Bool::from(false), mul_1, carry_1)
                } else {
                    let add_1 = (carry_1 + 1)?;
                    let ge = (add_1 >= 4)?;
                    let cond_1 = if ge {
                        mul_1
                    } else {
                        let add_2 = (mul_1 + 0.01)?;
                        add_2
                    };
                    let invert_1 = (!ge)?;
                    (invert_1, cond_1, add_1)
                };
                let getitem_2 = cond_2.0.clone();
                let getitem_3 = cond_2.1.clone();
                let getitem_4 = cond_2.2.clone();
                (while_loop_go, while_loop_0, while_loop_1) = (getitem_2, getitem_3, getitem_4);
            }
            (while_loop_0, while_loop_1)
        };
        let getitem_5 = while_loop.0.clone();
        let getitem_6 = while_loop.1.clone();
        let add_3 = (getitem_5 + getitem_6)?;
        Ok(add_3)
    }
}

#[derive(Module, Default)]
pub struct Chooses {
    tag: Tag,
}

#[trace(control_flow)]
impl Chooses {
    pub fn forward(&self, x: Float, n: Int, up: Bool) -> Result<Float> {
        let eq = (n == 0)?;
        let cond_3 = if eq {
            let mul = (x * 2.0)?;
            mul
        } else {
            let eq_1 = (n == 1)?;
            let eq_2 = (n == 2)?;
            let or_ = (eq_1 | eq_2)?;
            let cond_2 = if or_ {
                let add = (x + 1.0)?;
                add
            } else {
                let ge = (n >= -5)?;
                let le = (n <= -2)?;
                let and_ = (ge & le)?;
                let cond_1 = if and_ {
                    x
                } else {
                    let ge_1 = (n >= 7)?;
                    let cond = if ge_1 {
                        let sub = (x - 3.0)?;
                        sub
                    } else {
                        let mul_1 = (x * n)?;
                        mul_1
                    };
                    cond
                };
                cond_1
            };
            cond_2
        };
        let cond_4 = if up {
            let add_1 = (cond_3 + 0.5)?;
            add_1
        } else {
            let sub_1 = (cond_3 - 0.5)?;
            sub_1
        };
        Ok(cond_4)
    }
}

#[derive(Module, Default)]
pub struct Counted {
    tag: Tag,
}

#[trace(control_flow)]
impl Counted {
    pub fn forward(&self, x: Float, n: Int) -> Result<Float> {
        let gt = (n > 0)?;
        let while_loop = {
            let (mut while_loop_go, mut while_loop_0, mut while_loop_1) = (gt, Int::from(0), x);
            while while_loop_go {
                let (carry, carry_1) = (while_loop_0, while_loop_1);
                let add = (carry + 1)?;
                let eq = (carry == 3)?;
                let cond = if eq {
                    carry_1
                } else {
                    let add_1 = (carry_1 + carry)?;
                    add_1
                };
                let lt = (add < n)?;
                (while_loop_go, while_loop_0, while_loop_1) = (lt, add, cond);
            }
            (while_loop_0, while_loop_1)
        };
        let getitem_1 = while_loop.1.clone();
        let sub = (n - 1)?;
        let le = (n <= 4)?;
        let while_loop_1 = {
            let (mut while_loop_1_go, mut while_loop_1_0, mut while_loop_1_1) =
                (le, sub, getitem_1);
            while while_loop_1_go {
                let (carry_2, carry_3) = (while_loop_1_0, while_loop_1_1);
                let add_2 = (carry_2 + 1)?;
                let mul = (carry_3 * 2.0)?;
                let add_3 = (mul + add_2)?;
                let lt_1 = (add_2 < 4)?;
                (while_loop_1_go, while_loop_1_0, while_loop_1_1) = (lt_1, add_2, add_3);
            }
            (while_loop_1_0, while_loop_1_1)
        };
        let getitem_3 = while_loop_1.1.clone();
        Ok(getitem_3)
    }
}
