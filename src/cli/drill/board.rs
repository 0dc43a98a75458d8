//! The table, which fills while the drill goes on. Programs get one document at the end.

use std::time::Duration;

use super::super::terminal::{Colour, Format, Look, print, wrapped};
use super::idle_guards;
use crate::ops::drill::{Guard, Hop, LATER, Row, Scene};

const FAULT: usize = 49;
const ORDER: usize = 18;
const GUARD: usize = 29;
/// The widest row: what is left for the last column.
const WIDE: usize = FAULT + ORDER + GUARD + 60;
/// Fault and class together, where a row takes two lines.
const BOTH: usize = 65;

const PROMISES: &str = "P1: what was acknowledged is kept. P2: one intent has one effect. P3: at most once is never \
                        twice, and at least once never lost. P4: a further copy follows a recorded unknown outcome \
                        and carries the same keys.";

pub struct Board {
    pub look: Look,
    pub seed: u64,
}

impl Board {
    pub fn write(&self, text: &str) -> anyhow::Result<()> {
        if self.look.format == Format::Table {
            print(text)?;
        }
        Ok(())
    }

    /// Whether a row takes two lines.
    fn is_narrow(&self) -> bool {
        self.look.width.is_some_and(|width| width < WIDE)
    }

    pub fn heading(&self, store: &str) -> String {
        let names = if self.is_narrow() {
            format!("{:<BOTH$}{:>5}{:>9}\n    GUARD: what breaks without it\n", "FAULT, CLASS", "WITH", "WITHOUT")
        } else {
            format!(
                "{:<FAULT$}{:<ORDER$}{:<GUARD$}{:>4}{:>9}  {}\n",
                "FAULT", "CLASS", "GUARD", "WITH", "WITHOUT", "AND"
            )
        };
        let title = format!("Copies that one person gets of one message, on {store}. Seed {}.", self.seed);
        format!("{title}\n\n{}", self.look.paint(Colour::Faint, &names))
    }

    pub fn hop(&self, hop: Hop) -> String {
        format!("{}\n", self.look.paint(Colour::Bold, hop.name()))
    }

    /// The beginning of a row: the plays come after it.
    pub fn scene(&self, scene: &Scene) -> String {
        let (name, class) = (scene.fault.name(), scene.class.name());
        if self.is_narrow() {
            return format!("{:<BOTH$}", format!("  {name}, {class}"));
        }
        format!("{:<FAULT$}{class:<ORDER$}{:<GUARD$}", format!("  {name}"), scene.guard.name())
    }

    pub fn row(&self, row: &Row) -> String {
        let narrow = self.is_narrow();
        let right = if row.with.is_right() { Colour::Green } else { Colour::Red };
        let with = format!("{:>1$}", row.with.received, if narrow { 5 } else { 4 });
        let with = self.look.paint(right, &with);
        let wrong = if row.without.is_right() { Colour::Yellow } else { Colour::Red };
        let without = self.look.paint(wrong, &format!("{:>9}", row.without.received));
        let and = match (row.with.broken.as_slice(), row.without.broken.first()) {
            ([], Some(promise)) => promise.clone(),
            ([], None) if row.without.received == 1 => "no damage shown".to_owned(),
            ([], None) => "not what was asked for".to_owned(),
            (broken, _) => format!("with the guard on: {}", broken.join("; ")),
        };
        if narrow {
            let room = self.look.width.map(|width| width.saturating_sub(4).max(16));
            let below = wrapped(&format!("{}: {and}", row.guard.name()), room, 4);
            return format!("{with}{without}\n    {below}\n");
        }
        format!("{with}{without}  {and}\n")
    }

    pub fn sum(&self, rows: &[Row], took: Duration) -> String {
        let later = LATER.map(|(hop, with)| self.look.paint(Colour::Faint, &format!("{hop}: joins with {with}\n")));
        let verdict = match (rows.iter().all(Row::was_kept), rows.iter().all(|row| row.with.is_right())) {
            (true, true) => {
                self.look.paint(Colour::Green, "With all guards on everybody got one copy and no promise was broken.")
            }
            (true, false) => self.look.paint(Colour::Yellow, "With all guards on no promise was broken."),
            (false, _) => self.look.paint(Colour::Red, "With all guards on a promise was broken."),
        };
        let idle: Vec<&str> = idle_guards(rows).map(Guard::name).collect();
        let idle = match idle.as_slice() {
            [] => String::new(),
            guards => format!("No damage was shown without: {}.\n", guards.join(", ")),
        };
        format!(
            "{}\n{}\n\n{verdict}\n{idle}{} plays in {:.1} s.\n",
            later.concat(),
            wrapped(PROMISES, self.look.width, 0),
            rows.len() * 2,
            took.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::drill::{Played, SCENES};

    fn board(width: Option<usize>) -> Board {
        Board { look: Look { format: Format::Table, colour: false, width }, seed: 7 }
    }

    fn played(received: usize, broken: &[&str]) -> Played {
        let broken = broken.iter().map(|one| (*one).to_owned()).collect();
        Played { received, calls: received, recognised: 0, states: Vec::new(), broken }
    }

    fn drawn(board: &Board) -> String {
        let mut text = board.heading("redis");
        for scene in &SCENES {
            text.push_str(&board.hop(scene.hop));
            text.push_str(&board.scene(scene));
            let without = played(2, &["P4: again without a recorded unknown outcome"]);
            let Scene { hop, fault, class, guard, .. } = *scene;
            text.push_str(&board.row(&Row { hop, fault, class, guard, with: played(1, &[]), without }));
        }
        text + &board.sum(&[], Duration::from_secs(1))
    }

    #[test]
    fn on_a_narrow_terminal_no_line_is_too_wide() {
        let text = drawn(&board(Some(80)));
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        assert!(text.contains("    fence: P4: again without"), "{text}");
        assert!(text.contains("P1: what was acknowledged"), "{text}");
        let wide = drawn(&board(None));
        assert!(wide.lines().any(|line| line.contains("fence") && line.contains("P4: again")), "{wide}");
        assert!(drawn(&board(Some(WIDE))).lines().all(|line| line.chars().count() <= WIDE));
    }
}
