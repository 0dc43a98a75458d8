//! Words that are only true once.

/// Phrases of whole words, lower case; `*` stands for one word or one value.
const NOT_TRUE_TWICE: &[&str] = &[
    // English
    "just now",
    "right now",
    "a moment ago",
    "* minutes ago",
    "* hours ago",
    "minutes ago",
    "hours ago",
    "in * minutes",
    "in * hours",
    "* minutes from now",
    "for the next * minutes",
    "again",
    "another",
    "one more",
    "you have new",
    "you have * new",
    "* new message",
    "* new messages",
    "* new notification",
    "* new notifications",
    "since your last visit",
    "since yesterday",
    "today",
    "tomorrow",
    "yesterday",
    // German
    "gerade eben",
    "soeben",
    "vor * minuten",
    "in * minuten",
    "erneut",
    "noch eine",
    "noch einen",
    "noch einmal",
    "neue nachricht",
    "neue nachrichten",
    "heute",
    "gestern",
    // Swedish
    "just nu",
    "nyss",
    "för * minuter sedan",
    "om * minuter",
    "igen",
    "ännu en",
    "ännu ett",
    "nytt meddelande",
    "nya meddelanden",
    "idag",
    "imorgon",
    "igår",
];

/// Words of a key that tell a change and not a state.
const CHANGES: &[&str] =
    &["delta", "increment", "incremented", "diff", "added", "gained", "newly", "increase", "decrease"];
/// Keys that do so as a whole, or after the last dot.
const CHANGE_KEYS: &[&str] = &[
    "new_count",
    "count_new",
    "new_messages",
    "new_items",
    "new_total",
    "since_last",
    "unread_since",
    "plus",
    "more_count",
];

/// Lines, from 1, with the phrase that stands there.
pub(super) fn not_true_twice(text: &str, html: bool) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (at, line) in blank_out(text, html).lines().enumerate() {
        let words: Vec<String> = line
            .split(|c: char| !(c.is_alphanumeric() || c == '#' || c == '\''))
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let mut here: Vec<&'static str> =
            NOT_TRUE_TWICE.iter().copied().filter(|phrase| holds(&words, phrase)).collect();
        // The longest says it best.
        here.sort_by_key(|phrase| std::cmp::Reverse(phrase.len()));
        found.extend(here.first().map(|phrase| (at + 1, *phrase)));
    }
    found
}

fn holds(words: &[String], phrase: &str) -> bool {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    words
        .windows(phrase.len())
        .any(|window| window.iter().zip(&phrase).all(|(word, wanted)| *wanted == "*" || word == wanted))
}

/// The text with values as `#` and everything that nobody reads as blanks; lines stay lines.
fn blank_out(text: &str, html: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let openings = ["{{", "{%", "{#", "<style", "<"];
        let usable = if html { &openings[..] } else { &openings[..3] };
        let next = usable
            .iter()
            .filter_map(|open| rest.find(open).map(|at| (at, *open)))
            .min_by_key(|(at, open)| (*at, usize::MAX - open.len()));
        let Some((at, open)) = next else {
            out.push_str(rest);
            return out;
        };
        out.push_str(&rest[..at]);
        let close = match open {
            "{{" => "}}",
            "{%" => "%}",
            "{#" => "#}",
            "<style" => "</style>",
            _ => ">",
        };
        let end = rest[at..].find(close).map_or(rest.len(), |found| at + found + close.len());
        out.push_str(if open == "{{" { "#" } else { "" });
        out.extend(rest[at..end].chars().filter(|c| *c == '\n'));
        rest = &rest[end..];
    }
}

/// Whether a variable's or key's name tells of a change.
pub(super) fn is_delta(name: &str) -> bool {
    let key = name.rsplit('.').next().unwrap_or_default();
    let mut snake = String::new();
    for c in key.chars() {
        if c.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    let snake = snake.replace('-', "_");
    CHANGE_KEYS.contains(&snake.as_str()) || snake.split('_').any(|word| CHANGES.contains(&word))
}

/// The line, from 1, where `needle` first stands; 0 where it does not.
pub(super) fn line_of(text: &str, needle: &str) -> usize {
    text.find(needle).map_or(0, |at| text[..at].matches('\n').count() + 1)
}

/// Lines on which a filter is used.
pub(super) fn lines_with_filter(text: &str, filter: &'static str) -> impl Iterator<Item = usize> {
    let uses = move |line: &str| {
        line.split('|').skip(1).any(|rest| {
            rest.trim_start()
                .strip_prefix(filter)
                .is_some_and(|after| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    text.lines().enumerate().filter(move |(_, line)| uses(line)).map(|(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wording_that_is_true_once() {
        for (text, phrase) in [
            ("You have 1 new message", Some("you have * new")),
            ("Only 1 new message", Some("* new message")),
            ("You have {{ n }} new\nmessages", Some("you have * new")),
            ("Sent just now.", Some("just now")),
            ("We tried <b>again</b>", Some("again")),
            ("valid for {{ n }} minutes, in {{ n }} minutes", Some("in * minutes")),
            ("Ihre Nachricht, erneut", Some("erneut")),
            ("New in the shop: {{ again }} {% if again %}{# again #}", None),
            ("Order 42 has shipped. It is against nothing.", None),
            ("<p class=\"again\">x</p>", None),
            ("<style>.again { }</style>", None),
        ] {
            let found = not_true_twice(text, true);
            assert_eq!(found.first().map(|(_, phrase)| *phrase), phrase, "{text}");
        }
        assert_eq!(not_true_twice("{{ a\n}}\n\njust now", false), [(4, "just now")]);
    }

    #[test]
    fn keys_that_tell_a_change() {
        for delta in
            ["new_count", "newCount", "order.delta", "balance_delta", "increment", "points-added", "stats.diff"]
        {
            assert!(is_delta(delta), "{delta}");
        }
        for state in ["count", "news", "order.number", "address", "different", "renewed_at", "total"] {
            assert!(!is_delta(state), "{state}");
        }
    }

    #[test]
    fn filters_are_found_as_words() {
        let text = "{{ a|safe }}\n{{ a|safely }}\n{{ a | safe}}\nsafe | b";
        assert_eq!(lines_with_filter(text, "safe").collect::<Vec<_>>(), [1, 3]);
    }
}
