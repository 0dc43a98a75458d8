//! The project's files, read once, as text and as tokens.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A text file of the project.
pub(super) struct File {
    /// From the project's root, with slashes.
    pub path: String,
    pub text: String,
    /// Empty unless it is Rust.
    pub tokens: Vec<Token>,
}

/// A token with its groups opened up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word(String),
    Mark(char),
    Open(char),
    Close(char),
    Literal(String),
}

impl Token {
    pub(super) fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    pub(super) fn is(&self, mark: char) -> bool {
        match self.kind {
            Kind::Mark(one) | Kind::Open(one) | Kind::Close(one) => one == mark,
            Kind::Word(_) | Kind::Literal(_) => false,
        }
    }
}

impl File {
    /// Words of the path after `src/`, without `mod` and the ending: the module it is.
    pub(super) fn module(&self) -> Option<Vec<&str>> {
        let inner = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        Some(inner.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).collect())
    }

    /// Product code, not its tests or benches.
    pub(super) fn is_product(&self) -> bool {
        self.path.starts_with("src/") || self.path.starts_with("crates/domain/src/")
    }

    pub(super) fn is_test(&self) -> bool {
        self.path.starts_with("tests/") || self.path.starts_with("crates/domain/tests/")
    }

    /// Whether the words and marks of `pattern` stand at `at`, one after the other.
    pub(super) fn stands(&self, at: usize, pattern: &[&str]) -> bool {
        pattern.iter().enumerate().all(|(offset, expected)| {
            self.tokens.get(at + offset).is_some_and(|token| match &token.kind {
                Kind::Word(word) => word == expected,
                Kind::Mark(mark) | Kind::Open(mark) | Kind::Close(mark) => {
                    expected.len() == 1 && expected.starts_with(*mark)
                }
                Kind::Literal(_) => false,
            })
        })
    }
}

pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All Rust files but those that were built.
pub(super) fn rust() -> &'static [File] {
    static FILES: OnceLock<Vec<File>> = OnceLock::new();
    FILES.get_or_init(|| read(|path| path.extension().is_some_and(|it| it == "rs")))
}

/// All text files: what people read and what machines do.
pub(super) fn texts() -> &'static [File] {
    static FILES: OnceLock<Vec<File>> = OnceLock::new();
    FILES.get_or_init(|| read(|path| path.file_name().is_none_or(|it| it != "Cargo.lock")))
}

fn read(wanted: impl Fn(&Path) -> bool) -> Vec<File> {
    let mut paths = Vec::new();
    walk(root(), &mut paths);
    paths.sort();
    paths.into_iter().filter(|path| wanted(path)).filter_map(|path| open(&path)).collect()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let built = ["target", "node_modules", "dist", ".git", ".belfry", ".ci"].contains(&name.as_str());
        if path.is_dir() && !built {
            walk(&path, found);
        } else if path.is_file() && !built {
            found.push(path);
        }
    }
}

/// `None` for what is not text.
fn open(path: &Path) -> Option<File> {
    let text = String::from_utf8(fs::read(path).unwrap()).ok()?;
    let path = path.strip_prefix(root()).unwrap().to_string_lossy().into_owned();
    Some(from_text(&path, &text))
}

pub(super) fn from_text(path: &str, text: &str) -> File {
    let mut tokens = Vec::new();
    if path.ends_with(".rs") {
        let stream: TokenStream = text.parse().unwrap_or_else(|problem| panic!("{path}: {problem}"));
        flatten(stream, &mut tokens);
    }
    File { path: path.to_owned(), text: text.to_owned(), tokens }
}

fn flatten(stream: TokenStream, into: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        match tree {
            TokenTree::Ident(word) => into.push(Token { kind: Kind::Word(word.to_string()), line }),
            TokenTree::Punct(mark) => into.push(Token { kind: Kind::Mark(mark.as_char()), line }),
            TokenTree::Literal(literal) => into.push(Token { kind: Kind::Literal(literal.to_string()), line }),
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ('(', ')'),
                    Delimiter::Brace => ('{', '}'),
                    Delimiter::Bracket => ('[', ']'),
                    Delimiter::None => {
                        flatten(group.stream(), into);
                        continue;
                    }
                };
                into.push(Token { kind: Kind::Open(open), line });
                flatten(group.stream(), into);
                into.push(Token { kind: Kind::Close(close), line: group.span_close().start().line });
            }
        }
    }
}
