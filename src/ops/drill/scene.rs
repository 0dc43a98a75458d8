//! The scenes: which fault, at which hop, for which class, against which guard.

use serde::{Serialize, Serializer};

use super::Guard;

macro_rules! named {
    ($(#[$doc:meta])* $kind:ident { $($member:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kind { $($member),+ }

        impl $kind {
            pub const ALL: &[Self] = &[$(Self::$member),+];

            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$member => $name),+ }
            }
        }

        impl std::str::FromStr for $kind {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let names = Self::ALL.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ");
                Self::ALL.iter().copied().find(|one| one.name() == text).ok_or(format!("there are {names}"))
            }
        }

        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.serialize_str(self.name())
            }
        }
    };
}

named!(
    /// Where on its way the intent is.
    Hop {
        App = "app",
        Balancer = "balancer",
        Api = "api",
        Worker = "worker",
        Provider = "provider",
        Device = "device",
    }
);

named!(
    /// The order of sending and recording that a class has.
    Class {
        SendThenRecord = "send_then_record",
        RecordThenSend = "record_then_send",
    }
);

named!(
    /// What goes wrong.
    Fault {
        DoubleTap = "a double tap",
        LostReply = "retries after a lost reply",
        FreshKeys = "each tap with a fresh key",
        ProxyRepeats = "the proxy repeats it to another node",
        KilledBeforeReply = "killed after the commit, before the reply",
        KilledAfterReply = "killed right after the reply",
        KilledBeforeCall = "killed between claim and call",
        KilledInCall = "killed in the call, the provider has it",
        KilledBeforeSettle = "killed after the call, before the settle",
        SleptBeforeCall = "stopped at the call for longer than its lease",
        SleptAndReports = "stopped, and reports when another has sent",
        TimedOut = "a time-out after the provider took it",
    }
);

/// One line of the drill.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    pub hop: Hop,
    pub fault: Fault,
    pub class: Class,
    /// What prevents the damage, and is off in the second play.
    pub guard: Guard,
    pub way: Way,
}

/// Which way the message goes, and who at its end recognises a second copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By mail: nobody.
    Mail,
    /// To a provider that takes our key.
    Keyed,
    /// To a phone, on whose screen a second copy with the same collapse id replaces the first.
    Phone,
}

const fn scene(hop: Hop, fault: Fault, class: Class, guard: Guard) -> Scene {
    let way = match (hop, guard) {
        (Hop::Device, _) => Way::Phone,
        (_, Guard::StableKey) => Way::Keyed,
        _ => Way::Mail,
    };
    Scene { hop, fault, class, guard, way }
}

use Class::{RecordThenSend, SendThenRecord};

/// All of them, along the path.
pub const SCENES: [Scene; 25] = [
    scene(Hop::App, Fault::DoubleTap, SendThenRecord, Guard::IdempotencyKey),
    scene(Hop::App, Fault::DoubleTap, RecordThenSend, Guard::IdempotencyKey),
    scene(Hop::App, Fault::LostReply, SendThenRecord, Guard::IdempotencyKey),
    scene(Hop::App, Fault::LostReply, RecordThenSend, Guard::IdempotencyKey),
    scene(Hop::App, Fault::FreshKeys, SendThenRecord, Guard::Unique),
    scene(Hop::App, Fault::FreshKeys, RecordThenSend, Guard::Unique),
    scene(Hop::Balancer, Fault::ProxyRepeats, SendThenRecord, Guard::SharedRecord),
    scene(Hop::Balancer, Fault::ProxyRepeats, RecordThenSend, Guard::SharedRecord),
    scene(Hop::Api, Fault::KilledBeforeReply, SendThenRecord, Guard::SharedRecord),
    scene(Hop::Api, Fault::KilledBeforeReply, RecordThenSend, Guard::SharedRecord),
    scene(Hop::Api, Fault::KilledAfterReply, SendThenRecord, Guard::DurableFirst),
    scene(Hop::Api, Fault::KilledAfterReply, RecordThenSend, Guard::DurableFirst),
    scene(Hop::Worker, Fault::KilledBeforeCall, SendThenRecord, Guard::LeaseLapses),
    scene(Hop::Worker, Fault::KilledBeforeCall, RecordThenSend, Guard::LeaseLapses),
    scene(Hop::Worker, Fault::KilledInCall, SendThenRecord, Guard::StableKey),
    scene(Hop::Worker, Fault::KilledInCall, RecordThenSend, Guard::SpentMark),
    scene(Hop::Worker, Fault::KilledBeforeSettle, SendThenRecord, Guard::StableKey),
    scene(Hop::Worker, Fault::KilledBeforeSettle, RecordThenSend, Guard::LapseIsUnknown),
    // At most once it has been recorded as spent by then, and is nobody's to send any more.
    scene(Hop::Worker, Fault::SleptBeforeCall, SendThenRecord, Guard::LeaseGate),
    scene(Hop::Worker, Fault::SleptAndReports, SendThenRecord, Guard::Fence),
    scene(Hop::Worker, Fault::SleptAndReports, RecordThenSend, Guard::Fence),
    scene(Hop::Provider, Fault::TimedOut, SendThenRecord, Guard::StableKey),
    scene(Hop::Provider, Fault::TimedOut, RecordThenSend, Guard::TimeOutIsUnknown),
    // At most once has its guards above; here a second copy would not show.
    scene(Hop::Device, Fault::KilledInCall, SendThenRecord, Guard::CollapseId),
    scene(Hop::Device, Fault::TimedOut, SendThenRecord, Guard::CollapseId),
];

/// Hops that are not walked yet, and with what they join.
pub const LATER: [(&str, &str); 2] = [("queue", "queues"), ("callback", "receipts")];
