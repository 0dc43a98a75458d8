//! What a run is made of; `scripts/bench` hands its arguments on.

use anyhow::{Context, Result, bail, ensure};

use crate::stores::StoreKind;

/// The parts, in the order in which they run.
pub(crate) const PARTS: [&str; 9] = ["accept", "store", "smtp", "webhook", "apns", "peers", "code", "idle", "growth"];

pub(crate) struct Plan {
    pub rounds: usize,
    /// Small numbers, for trying out: the figures mean little.
    pub quick: bool,
    /// What lies under the rows that are about either store.
    pub store: StoreKind,
    /// Messages queued before codes are sent.
    pub backlog: usize,
    /// Remembered notifications at which growth is measured, the smallest first.
    pub growth: Vec<usize>,
    only: Vec<String>,
}

impl Plan {
    pub(crate) fn read(arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut arguments = arguments;
        let mut plan = Self {
            rounds: 0,
            quick: false,
            store: StoreKind::Sqlite,
            backlog: 0,
            growth: Vec::new(),
            only: Vec::new(),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => plan.quick = true,
                "--rounds" => plan.rounds = value()?.parse()?,
                "--store" => plan.store = value()?.parse()?,
                "--backlog" => plan.backlog = value()?.parse()?,
                "--growth" => {
                    plan.growth = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                part if PARTS.contains(&part) => plan.only.push(part.to_owned()),
                other => bail!("{other}: neither an option nor one of {}", PARTS.join(", ")),
            }
        }
        let or = |given: usize, quick: usize, whole: usize| match (given, plan.quick) {
            (0, true) => quick,
            (0, false) => whole,
            (given, _) => given,
        };
        plan.rounds = or(plan.rounds, 1, 5);
        plan.backlog = or(plan.backlog, 20_000, 1_000_000);
        if plan.growth.is_empty() {
            plan.growth = if plan.quick { vec![2_000, 20_000] } else { vec![100_000, 1_000_000, 10_000_000] };
        }
        ensure!(plan.growth.is_sorted(), "--growth: the smallest first");
        Ok(plan)
    }

    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == part)
    }

    /// How many of something: a tenth when it has to be quick.
    pub(crate) const fn sized(&self, whole: usize) -> usize {
        if self.quick { whole / 10 } else { whole }
    }
}
