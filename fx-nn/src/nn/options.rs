//! `options!`: the options of a layer, as methods that take the layer and return it.
//!
//! Invariant: an option has the name of the field that it sets, and the field's docs state its
//! default.

/// Writes a method for each named field, which sets it.
macro_rules! options {
    ($layer:ident { $($name:ident: $type:ty),* $(,)? }) => {
        impl $layer {
            $(
                #[doc = concat!(
                    "Sets the option [`", stringify!($name), "`](", stringify!($layer), "#structfield.",
                    stringify!($name), ")."
                )]
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    self.$name = $name.into();
                    self
                }
            )*
        }
    };
}

/// Writes a method for each named option, which removes these tensors from the layer if it is
/// `false`.
macro_rules! kept {
    ($layer:ident { $($name:ident: [$($field:ident),+]),* $(,)? }) => {
        impl $layer {
            $(
                #[doc = concat!("Whether the layer keeps", $(" `", stringify!($field), "`",)+ ": yes.")]
                ///
                /// Removed tensors do not come back.
                #[must_use]
                pub fn $name(mut self, $name: bool) -> Self {
                    $(self.$field = self.$field.filter(|_| $name);)+
                    self
                }
            )*
        }
    };
}

pub(super) use {kept, options};
