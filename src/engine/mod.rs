//! From due to settled: claims, attempts, renewals, sweeps.
