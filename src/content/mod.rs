//! Content: frozen inputs in, one rendered message per address out. Rendering is pure.

pub mod inputs;
