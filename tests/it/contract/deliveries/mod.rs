//! [`belfry::ports::deliveries::Deliveries`].

mod accept;
mod attached;
mod claim;
mod claim_turns;
mod depths;
mod lost_replies;
mod model;
mod purge;
mod read;
mod search;
mod sequences;
mod sweep;
mod write;
