//! Bugs that a simulation worth its time has to find, planted one at a time.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Settles without comparing the claim.
    NoFence,
    /// Answers an accept before it is durable.
    AckBeforeCommit,
    /// Takes a time-out for "not sent".
    TimeoutIsNotSent,
    /// Mints another provider key for each attempt.
    NewKeyOnRetry,
    /// Calls without having recorded *spent*.
    NoSpend,
    /// Puts a lapsed claim back although it was spent.
    LapseIsNotSent,
    /// Derives the intent's id from the node that took the request.
    KeyPerNode,
    /// Renders anew, with a counter, for each attempt.
    ThawedContent,
    /// Gives back the places of calls that may have reached somebody.
    CountedIsGivenBack,
    /// Counts a call at its take, whenever it had its effect.
    CountedAtTake,
    /// Takes a store that does not answer for one in which nothing is paused.
    AwayIsUnpaused,
    /// Makes a digest of items without having marked them.
    UnmarkedItems,
    /// Moves a schedule on before its slot is sent.
    MovedOnFirst,
}

pub const ALL: [Bug; 8] = [
    Bug::NoFence,
    Bug::AckBeforeCommit,
    Bug::TimeoutIsNotSent,
    Bug::NewKeyOnRetry,
    Bug::NoSpend,
    Bug::LapseIsNotSent,
    Bug::KeyPerNode,
    Bug::ThawedContent,
];

/// Those that only runs with caps can find.
pub const OF_CAPS: [Bug; 2] = [Bug::CountedIsGivenBack, Bug::CountedAtTake];
