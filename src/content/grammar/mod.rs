//! What a template may say, beyond being Jinja. Checked once, when its files are read.
//!
//! The engine counts work, but not everything: a list that holds itself twice, made forty times
//! over, is a terabyte to print, to compare or to add, and one that is wrapped ten thousand times
//! overflows the stack when it goes. Both need a list or an object, made of variables, to be *kept*
//! and built upon. So the language has no way to keep one: [`kinds`] holds the rule. The engine's
//! parser, in turn, is recursive without a bound of its own in some places: [`fits`] counts what it
//! is given before it sees it.

mod kinds;
mod literals;
mod origins;

use std::collections::BTreeSet;

use minijinja::machinery::ast::{Expr, Stmt};
use minijinja::machinery::{Span, Token, parse, tokenize};

use super::language::syntax;
use kinds::Reader;
pub use origins::Origins;

/// Of one `{{ … }}` or `{% … %}`, in words and marks: the parser goes a step deeper with each.
const MOST_IN_A_TAG: usize = 2_000;
/// Of one file.
const MOST_IN_A_FILE: usize = 50_000;
/// Each is a step deeper than the one before.
const MOST_ELIFS: usize = 500;

/// The functions that there are.
const FUNCTIONS: [&str; 1] = ["range"];
/// Names that the language itself binds.
const BOUND: [&str; 4] = ["caller", "loop", "self", "super"];
/// The filters that there are. What is left out of Jinja's own either prints everything (`pprint`)
/// or makes lists of lists: `batch`, `chain`, `groupby`, `slice`, `zip`.
pub(super) const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "bool",
    "capitalize",
    "count",
    "d",
    "date",
    "datetime",
    "decimal",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "format",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "link",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "number",
    "percent",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "sum",
    "time",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
];
pub(super) const TESTS: &[&str] = &[
    "!=",
    "<",
    "<=",
    "==",
    ">",
    ">=",
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "int",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
    "upper",
];

/// What a template may not say.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    pub message: String,
}

impl Fault {
    fn at(span: Span, message: impl Into<String>) -> Self {
        Self { line: usize::from(span.start_line), message: message.into() }
    }
}

/// Names that a template's files bind: whatever is called has to be one of them, or a function.
#[derive(Debug, Default)]
pub struct Names(BTreeSet<String>);

/// Whether the parser may see this text.
///
/// # Errors
/// Where the text is so written that parsing it would go too deep.
pub fn fits(text: &str) -> Result<(), Fault> {
    let (mut here, mut all, mut elifs) = (0, 0, 0);
    // What the tokenizer cannot read, the parser cannot either, and says why.
    for (token, span) in tokenize(text, false, syntax()).map_while(Result::ok) {
        match token {
            Token::VariableStart | Token::BlockStart => here = 0,
            Token::Ident("elif") if here == 1 => elifs += 1,
            _ => {}
        }
        here += 1;
        all += 1;
        let told = |what: String| Err(Fault::at(span, what));
        if here > MOST_IN_A_TAG {
            return told(format!("a tag has more than {MOST_IN_A_TAG} words and marks"));
        }
        if all > MOST_IN_A_FILE {
            return told(format!("a file's tags have more than {MOST_IN_A_FILE} words and marks"));
        }
        if elifs > MOST_ELIFS {
            return told(format!("a file has more than {MOST_ELIFS} `elif`"));
        }
    }
    Ok(())
}

/// Adds the names that `text` binds. A text that is no template binds none; compiling it says why.
pub fn names(text: &str, into: &mut Names) {
    if let Ok(tree) = parse(text, "", syntax()) {
        bound(&tree, &mut into.0);
    }
}

/// Where the names that `text` gives come from.
#[must_use]
pub fn origins(text: &str) -> Origins {
    let mut origins = Origins::new();
    if let Ok(tree) = parse(text, "", syntax()) {
        origins::read(&tree, &mut origins);
    }
    origins
}

/// Whether a text is one that an author can mend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    New,
    /// Messages are frozen on it, and most of them never met what is wrong in it.
    Kept,
}

/// Everything in `text` that a template may not say, where it is a template at all.
#[must_use]
pub fn faults(text: &str, names: &Names, age: Age) -> Vec<Fault> {
    let Ok(tree) = parse(text, "", syntax()) else { return Vec::new() };
    let mut reader = Reader { names, faults: Vec::new(), age };
    reader.statement(&tree);
    reader.faults.sort();
    reader.faults.dedup();
    reader.faults
}

impl Names {
    fn has(&self, name: &str) -> bool {
        self.0.contains(name) || FUNCTIONS.contains(&name) || BOUND.contains(&name)
    }
}

fn is_filter(name: &str) -> bool {
    FILTERS.contains(&name)
}

fn is_test(name: &str) -> bool {
    TESTS.contains(&name)
}

/// The statements within a statement.
fn within<'t, 'a>(statement: &'t Stmt<'a>) -> Vec<&'t [Stmt<'a>]> {
    match statement {
        Stmt::Template(it) => vec![&it.children],
        Stmt::ForLoop(it) => vec![&it.body, &it.else_body],
        Stmt::IfCond(it) => vec![&it.true_body, &it.false_body],
        Stmt::WithBlock(it) => vec![&it.body],
        Stmt::SetBlock(it) => vec![&it.body],
        Stmt::AutoEscape(it) => vec![&it.body],
        Stmt::FilterBlock(it) => vec![&it.body],
        Stmt::Block(it) => vec![&it.body],
        Stmt::Macro(it) => vec![&it.body],
        Stmt::CallBlock(it) => vec![&it.macro_decl.body],
        Stmt::EmitExpr(_)
        | Stmt::EmitRaw(_)
        | Stmt::Set(_)
        | Stmt::Import(_)
        | Stmt::FromImport(_)
        | Stmt::Extends(_)
        | Stmt::Include(_)
        | Stmt::Do(_) => Vec::new(),
    }
}

fn bound(statement: &Stmt<'_>, into: &mut BTreeSet<String>) {
    match statement {
        Stmt::ForLoop(it) => target(&it.target, into),
        Stmt::WithBlock(it) => it.assignments.iter().for_each(|(one, _)| target(one, into)),
        Stmt::Set(it) => target(&it.target, into),
        Stmt::SetBlock(it) => target(&it.target, into),
        Stmt::Import(it) => target(&it.name, into),
        Stmt::FromImport(it) => {
            it.names.iter().for_each(|(name, alias)| target(alias.as_ref().unwrap_or(name), into));
        }
        Stmt::Macro(it) => {
            into.insert(it.name.to_owned());
            it.args.iter().for_each(|one| target(one, into));
        }
        Stmt::CallBlock(it) => it.macro_decl.args.iter().for_each(|one| target(one, into)),
        Stmt::Template(_)
        | Stmt::EmitExpr(_)
        | Stmt::EmitRaw(_)
        | Stmt::IfCond(_)
        | Stmt::AutoEscape(_)
        | Stmt::FilterBlock(_)
        | Stmt::Block(_)
        | Stmt::Extends(_)
        | Stmt::Include(_)
        | Stmt::Do(_) => {}
    }
    within(statement).into_iter().flatten().for_each(|one| bound(one, into));
}

fn target(expression: &Expr<'_>, into: &mut BTreeSet<String>) {
    match expression {
        Expr::Var(it) => {
            into.insert(it.id.to_owned());
        }
        Expr::List(it) => it.items.iter().for_each(|one| target(one, into)),
        Expr::Tuple(it) => it.items.iter().for_each(|one| target(one, into)),
        _ => {}
    }
}
