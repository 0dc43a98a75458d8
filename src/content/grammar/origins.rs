//! Where a loop's variable comes from: a caller knows `/sections`, and not the name that a template
//! gives to one of them.

use std::collections::BTreeMap;

use minijinja::machinery::ast::{Expr, Stmt};

use super::{target, within};

/// Names that a file gives to something, with the place in the data where that is; `None` where it is
/// no one place.
pub type Origins = BTreeMap<String, Option<String>>;

/// A place that is further in is no help to anybody.
const LONGEST: usize = 200;

pub(super) fn read(statement: &Stmt<'_>, origins: &mut Origins) {
    match statement {
        Stmt::ForLoop(it) => {
            let from = place(&it.iter, origins);
            match &it.target {
                Expr::Var(name) => add(origins, name.id, from),
                several => names(several).into_iter().for_each(|name| add(origins, &name, from.clone())),
            }
        }
        Stmt::Set(it) => {
            let from = place(&it.expr, origins);
            names(&it.target).into_iter().for_each(|name| add(origins, &name, from.clone()));
        }
        Stmt::WithBlock(it) => {
            for (one, value) in &it.assignments {
                let from = place(value, origins);
                names(one).into_iter().for_each(|name| add(origins, &name, from.clone()));
            }
        }
        Stmt::Macro(it) => it.args.iter().flat_map(names).for_each(|name| add(origins, &name, None)),
        Stmt::CallBlock(it) => it.macro_decl.args.iter().flat_map(names).for_each(|name| add(origins, &name, None)),
        Stmt::SetBlock(it) => names(&it.target).into_iter().for_each(|name| add(origins, &name, None)),
        _ => {}
    }
    within(statement).into_iter().flatten().for_each(|one| read(one, origins));
}

fn names(expression: &Expr<'_>) -> Vec<String> {
    let mut found = std::collections::BTreeSet::new();
    target(expression, &mut found);
    found.into_iter().collect()
}

/// The same name for two places is a name for neither.
fn add(origins: &mut Origins, name: &str, from: Option<String>) {
    origins
        .entry(name.to_owned())
        .and_modify(|known| *known = known.take().filter(|it| Some(it) == from.as_ref()))
        .or_insert(from);
}

fn place(expression: &Expr<'_>, origins: &Origins) -> Option<String> {
    match expression {
        Expr::Var(it) => origins.get(it.id).cloned().unwrap_or_else(|| Some(format!("/{}", it.id))),
        Expr::GetAttr(it) => {
            let within = place(&it.expr, origins)?;
            (within.len() < LONGEST).then(|| format!("{within}/{}", it.name))
        }
        Expr::Filter(it) => place(it.expr.as_ref()?, origins),
        Expr::Slice(it) => place(&it.expr, origins),
        _ => None,
    }
}
