//! Defects once met in patterns, each by its number: what broke must stay whole.
