//! Log lines and metrics: what facts become.
