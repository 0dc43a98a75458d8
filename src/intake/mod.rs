//! The one door: every way in ends at `accept`.
