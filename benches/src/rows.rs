//! Rows of the report: what was measured beside what, and how it stands to floor and goal.

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::Serialize;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Better {
    Higher,
    Lower,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub what: String,
    pub unit: &'static str,
    pub better: Better,
    /// What it is measured against; absent where the figure stands alone.
    pub baseline: Option<String>,
    pub floor: Option<f64>,
    pub goal: Option<f64>,
    /// One of each round: ours, and the baseline's (1 where the figure stands alone).
    pub rounds: Vec<(f64, f64)>,
    /// Why there is nothing to see.
    #[serde(skip)]
    pub absent: Option<&'static str>,
    pub note: Option<String>,
}

/// What the report says of a row once all rounds are in.
#[derive(Serialize)]
struct Judged<'a> {
    #[serde(flatten)]
    row: &'a Row,
    ours: Option<f64>,
    other: Option<f64>,
    ratio: Option<f64>,
    verdict: &'static str,
}

impl Row {
    pub(crate) fn higher(what: &str, unit: &'static str, floor: f64, goal: f64) -> Self {
        Self {
            what: what.to_owned(),
            unit,
            better: Better::Higher,
            baseline: None,
            floor: Some(floor),
            goal: Some(goal),
            rounds: Vec::new(),
            absent: None,
            note: None,
        }
    }

    pub(crate) fn lower(what: &str, unit: &'static str, floor: f64, goal: f64) -> Self {
        Self { better: Better::Lower, ..Self::higher(what, unit, floor, goal) }
    }

    /// A figure that nothing is asked of.
    pub(crate) fn told(what: &str, unit: &'static str) -> Self {
        Self { floor: None, goal: None, ..Self::lower(what, unit, 0.0, 0.0) }
    }

    /// A row that has nothing to show: why it was not measured.
    pub(crate) fn absent(what: &str, floor: f64, goal: f64, why: &'static str) -> Self {
        Self { absent: Some(why), ..Self::lower(what, "", floor, goal) }
    }

    pub(crate) fn beside(self, baseline: &str) -> Self {
        Self { baseline: Some(baseline.to_owned()), ..self }
    }

    pub(crate) fn noted(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }

    pub(crate) fn alone(mut self, figures: impl IntoIterator<Item = f64>) -> Self {
        self.rounds.extend(figures.into_iter().map(|figure| (figure, 1.0)));
        self
    }

    /// Median of the rounds' ratios.
    fn ratio(&self) -> f64 {
        median(self.rounds.iter().map(|(ours, other)| ours / other).collect())
    }

    fn judged(&self) -> Judged<'_> {
        let some = |value: f64| value.is_finite().then_some(value);
        let ours = median(self.rounds.iter().map(|(ours, _)| *ours).collect());
        let other = median(self.rounds.iter().map(|(_, other)| *other).collect());
        Judged {
            row: self,
            ours: some(ours),
            other: self.baseline.is_some().then_some(other).and_then(some),
            ratio: some(self.ratio()),
            verdict: self.verdict(),
        }
    }

    fn verdict(&self) -> &'static str {
        let reaches = |mark: f64| match self.better {
            Better::Higher => self.ratio() >= mark,
            Better::Lower => self.ratio() <= mark,
        };
        if let Some(why) = self.absent {
            return why;
        }
        match (self.floor, self.goal) {
            (Some(floor), Some(goal)) => match (reaches(floor), reaches(goal)) {
                (_, true) => "met",
                (true, false) => "floor met",
                (false, false) => "MISSED",
            },
            _ => "told",
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

/// What it was measured on: the figures mean nothing without it, the ratios little.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Machine {
    day: String,
    cpu: String,
    cores: usize,
    memory_mib: u64,
    kernel: String,
}

impl Machine {
    fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal");
        let kib: u64 = memory.split(' ').next().and_then(|kib| kib.parse().ok()).unwrap_or_default();
        Self {
            day: day(0),
            cpu: value(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_mib: kib / 1024,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

impl Report {
    /// Takes the rows and shows how they stand, so that a run that is broken off has told something.
    pub(crate) fn add(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            eprintln!("{}", line(&row));
            self.rows.push(row);
        }
    }

    pub(crate) fn print(&self) {
        println!(
            "\n{:<64} {:>10} {:>10} {:>8} {:>7} {:>7}  verdict",
            "what", "ours", "other", "ratio", "floor", "goal"
        );
        for row in &self.rows {
            println!("{}", line(row));
        }
    }

    /// Beside the builds: `target/bench/results.json`.
    pub(crate) fn write(&self, quick: bool) -> Result<()> {
        let folder = crate::child::target().join("bench");
        fs::create_dir_all(&folder)?;
        let path: PathBuf = folder.join("results.json");
        let rows: Vec<Judged<'_>> = self.rows.iter().map(Row::judged).collect();
        let all = serde_json::json!({ "machine": Machine::here(), "quick": quick, "rows": rows });
        fs::write(&path, serde_json::to_vec_pretty(&all)?)?;
        println!("\n{}", path.display());
        Ok(())
    }
}

fn line(row: &Row) -> String {
    let judged = row.judged();
    let shown = |value: Option<f64>, digits: usize| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.digits$}"));
    let mark = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |it| format!("{it:.3}"));
    let name = row.baseline.as_ref().map_or_else(|| row.what.clone(), |other| format!("{} ÷ {other}", row.what));
    format!(
        "{name:<64} {:>10} {:>10} {:>8} {:>7} {:>7}  {}{}{}",
        shown(judged.ours, 1),
        shown(judged.other, 1),
        shown(judged.ratio, 3),
        mark(row.floor),
        mark(row.goal),
        judged.verdict,
        if row.unit.is_empty() { String::new() } else { format!(" ({})", row.unit) },
        row.note.as_ref().map_or_else(String::new, |note| format!(": {note}")),
    )
}

/// Midnight UTC so many days from now, as RFC 3339.
pub(crate) fn day(ahead: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let days = i64::try_from(now.as_secs() / 86_400 + ahead).unwrap_or(0);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}T00:00:00Z")
}

/// Days since 1970-01-01 as a date (Howard Hinnant, "chrono-compatible low-level date algorithms").
const fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ratio_decides() {
        let row = |better: fn(&str, &'static str, f64, f64) -> Row, ratios: &[f64]| {
            let rounds = ratios.iter().map(|ratio| (*ratio * 10.0, 10.0)).collect();
            Row { rounds, ..better("it", "s", 2.0, 1.5) }.verdict()
        };
        assert_eq!(row(Row::lower, &[9.0, 1.4, 1.2]), "met");
        assert_eq!(row(Row::lower, &[1.9, 1.8, 0.1]), "floor met");
        assert_eq!(row(Row::lower, &[2.1]), "MISSED");
        assert_eq!(row(Row::higher, &[1.4]), "MISSED");
        let lower_goal = Row { rounds: vec![(3.0, 1.0)], ..Row::higher("it", "s", 2.0, 4.0) };
        assert_eq!(lower_goal.verdict(), "floor met");
        assert_eq!(Row::absent("bytes", 1.2, 1.1, "not measured").verdict(), "not measured");
        assert_eq!(Row::told("it", "s").alone([1.0]).verdict(), "told");
        assert_eq!(Row::lower("it", "s", 2.0, 1.5).verdict(), "MISSED", "without a round nothing is met");
    }

    #[test]
    fn days_are_dates() {
        assert_eq!([civil(0), civil(11_016), civil(20_787)], [(1970, 1, 1), (2000, 2, 29), (2026, 11, 30)]);
    }
}
