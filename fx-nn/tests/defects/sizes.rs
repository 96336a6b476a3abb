//! Defects once met in sizes, each by its number: what broke must stay whole.
