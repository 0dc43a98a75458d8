//! Simulation: virtual time, seeded, one thread.
