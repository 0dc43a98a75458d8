//! Rows of the report: what was measured beside what, and how it stands to floor and goal.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Better {
    Higher,
    Lower,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub what: String,
    pub unit: &'static str,
    pub better: Better,
    pub floor: f64,
    pub goal: f64,
    /// One of each round: ours, and what it is measured against (1 where the value stands alone).
    pub rounds: Vec<(f64, f64)>,
}

impl Row {
    /// Median of the rounds' ratios.
    fn ratio(&self) -> f64 {
        median(self.rounds.iter().map(|(ours, other)| ours / other).collect())
    }

    fn verdict(&self) -> &'static str {
        let reaches = |mark: f64| match self.better {
            Better::Higher => self.ratio() >= mark,
            Better::Lower => self.ratio() <= mark,
        };
        match (reaches(self.floor), reaches(self.goal)) {
            (_, true) => "goal",
            (true, false) => "floor",
            (false, false) => "BELOW",
        }
    }
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[odd / 2],
        even => f64::midpoint(values[even / 2 - 1], values[even / 2]),
    }
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Report {
    pub rows: Vec<Row>,
}

impl Report {
    pub(crate) fn print(&self) {
        println!(
            "\n{:<58} {:>10} {:>10} {:>8} {:>8} {:>8}  verdict",
            "what", "ours", "other", "ratio", "floor", "goal"
        );
        for row in &self.rows {
            let ours = median(row.rounds.iter().map(|(ours, _)| *ours).collect());
            let other = median(row.rounds.iter().map(|(_, other)| *other).collect());
            println!(
                "{:<58} {ours:>10.1} {other:>10.1} {:>8.3} {:>8} {:>8}  {} ({})",
                row.what,
                row.ratio(),
                row.floor,
                row.goal,
                row.verdict(),
                row.unit,
            );
        }
    }

    /// Beside the builds: `target/bench/results.json`.
    pub(crate) fn write(&self) -> Result<()> {
        let folder = crate::child::target().join("bench");
        fs::create_dir_all(&folder)?;
        let path: PathBuf = folder.join("results.json");
        fs::write(path, serde_json::to_vec_pretty(self)?)?;
        Ok(())
    }
}
