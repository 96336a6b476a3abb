//! What `code()` gives, where it was traced.

use fx_nn::prelude::*;
use crate::emitted::Settings;

/// Where a function stands.
#[derive(Module)]
pub struct Code {
    /// Tells it from others.
    pub tag: Tag,
}

#[trace]
impl Code {
    pub fn forward(&self, settings: Settings) -> Result<Tensor> {
        let settings_1 = &settings.x;
        let settings_2 = settings.times;
        let settings_3 = settings.scale;
        let settings_4 = settings.is_on;
        let settings_5 = &settings.mode;
        let settings_6 = &settings.mask;
        if settings_2 != 2 { return Err(Error::msg("`settings[\"times\"]` was specialised")); }
        if settings_3 != 0.5 { return Err(Error::msg("`settings[\"scale\"]` was specialised")); }
        if settings_4 != true { return Err(Error::msg("`settings[\"is_on\"]` was specialised")); }
        if settings_5 != "relu" { return Err(Error::msg("`settings[\"mode\"]` was specialised")); }
        if settings_6.is_some() { return Err(Error::msg("`settings[\"mask\"]` was specialised")); }
        let mul = (settings_1 * 0.5)?;
        let mul_1 = (&mul * 0.5)?;  drop(mul);
        let relu = mul_1.relu()?;  drop(mul_1);
        Ok(relu)
    }
}
