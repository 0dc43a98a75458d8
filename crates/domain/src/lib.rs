//! Belfry's pure core: it decides, it never does.
//!
//! Nothing here reads a clock, draws a random number, logs, or touches a store or a network.
//! Callers pass the time and the dice in (`Env`) and carry out what comes back (`Transition`).

pub mod action;
pub mod admission;
pub mod around;
pub mod breaker;
pub mod broadcast;
pub mod budget;
pub mod caps;
pub mod class;
pub mod delivery;
pub mod device;
pub mod explain;
pub mod gather;
pub mod key;
pub mod lane;
pub mod notification;
pub mod outcome;
pub mod pace;
pub mod pause;
pub mod preferences;
pub mod quiet;
pub mod retry;
pub mod schedule;
pub mod share;
pub mod skew;
pub mod step;
pub mod subject;
pub mod suppression;
pub mod time;
pub mod timeline;
pub mod warm_up;
pub mod wave;
pub mod zone;

pub use action::{Action, Asked};
pub use class::{Class, Order};
pub use delivery::{Delivery, State};
pub use key::{BroadcastId, DeliveryId, Key, KeyKind, NotificationId, child_key, hex};
pub use lane::{ChannelKind, Lane, Priority};
pub use notification::Notification;
pub use outcome::{Outcome, Why, WhyCode};
pub use pace::Pace;
pub use step::{Env, Event, Transition, step};
pub use time::UnixMs;
pub use warm_up::PacePlan;
