//! Contract suites: what every store must keep, run on each.
