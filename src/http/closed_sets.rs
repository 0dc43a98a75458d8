//! The domain's closed sets as OpenAPI enums, taken from the enums themselves.

use std::borrow::Cow;

use belfry_domain::ChannelKind;
use belfry_domain::delivery::StateName;
use belfry_domain::device::{LeftOutWhy as WhyLeftOut, TokenFault as Fault};
use belfry_domain::outcome::{OutcomeKind, WhyCode};
use belfry_domain::suppression::SuppressionKind as Suppression;
use belfry_domain::timeline::Resolution;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::intake::suppressions::KINDS;
use crate::ports::suppressions::takes;

macro_rules! closed_set {
    ($(#[$doc:meta])* $name:ident = $values:expr) => {
        $(#[$doc])*
        pub struct $name;

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                let values: Vec<&str> = $values;
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some(values)).into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    };
}

fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().map(|one| name(*one)).collect()
}

closed_set!(
    /// The states of a delivery.
    State = names(StateName::ALL, StateName::name)
);
closed_set!(
    /// The channels.
    Channel = names(ChannelKind::ALL, ChannelKind::name)
);
closed_set!(
    /// What a request may name: a channel, or `push` for all devices.
    ChannelAsked = [names(ChannelKind::ALL, ChannelKind::name), vec![crate::intake::channels::PUSH]].concat()
);
closed_set!(
    /// What a pause is of.
    PausedWhat = belfry_domain::pause::KINDS.to_vec()
);
closed_set!(
    /// What an attempt told us.
    Outcome = names(OutcomeKind::ALL, OutcomeKind::name)
);
closed_set!(
    /// Why an attempt ended as it did.
    Why = names(WhyCode::ALL, WhyCode::name)
);
closed_set!(
    /// What a person decides about an unknown or parked delivery.
    ResolvedTo = names(Resolution::ALL, Resolution::name)
);
closed_set!(
    /// What a key may do.
    Permission = vec!["send", "read", "admin"]
);
closed_set!(
    /// What is wrong with a token: no longer in use, not known to the provider, or another app's.
    TokenFault = names(Fault::ALL, Fault::name)
);
closed_set!(
    /// The channels that addresses can be suppressed on.
    SuppressedChannel = ChannelKind::ALL.iter().filter(|channel| takes(**channel)).map(|channel| channel.name()).collect()
);
closed_set!(
    /// Whose word a suppression is.
    SuppressionKind = names(Suppression::ALL, Suppression::name)
);
closed_set!(
    /// Of these what may be said over the API.
    SuppressionAsked = names(KINDS, Suppression::name)
);
closed_set!(
    /// Why a stored device was left out: the provider said that its token is no longer in use, or does not take it.
    LeftOutWhy = names(WhyLeftOut::ALL, WhyLeftOut::name)
);
