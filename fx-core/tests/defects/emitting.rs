//! Defects once met in emitting, each by its number: what broke must stay whole.
