//! Defects once met in scalars, each by its number: what broke must stay whole.
