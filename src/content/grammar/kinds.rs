//! Which expressions may be kept in a variable. Nothing is followed through variables: an
//! expression shows by itself what it can be, or is taken for anything.

use minijinja::machinery::Span;
use minijinja::machinery::ast::{BinOpKind, Call, CallArg, CompareOpKind, Expr, Filter, Stmt, Test, UnaryOpKind};
use minijinja::value::{Value, ValueKind};

use super::literals::{self, Called};
use super::{Age, Fault, Names, is_filter, is_test, within};

/// What an expression's value can be, from harmless to not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Text,
    /// A text, a number, true, false or null.
    Plain,
    /// Whatever is in the data or was kept before: no larger than it was.
    Any,
    /// A part of such a list, looked at through one more layer.
    View,
    /// A list or an object that is written here and holds variables.
    Written,
    /// Of `+` or `*`: a number, or a list as long as both together.
    Sum,
}

/// These make a text of anything.
const TO_TEXT: [&str; 13] = [
    "capitalize",
    "e",
    "escape",
    "format",
    "indent",
    "link",
    "lower",
    "replace",
    "safe",
    "string",
    "title",
    "trim",
    "upper",
];
/// These make a number of anything, or refuse it.
const TO_NUMBER: [&str; 8] = ["abs", "bool", "count", "float", "int", "length", "number", "round"];
/// These pick one of the items.
const PICKING: [&str; 5] = ["attr", "first", "last", "max", "min"];

pub(super) struct Reader<'n> {
    pub names: &'n Names,
    pub faults: Vec<Fault>,
    pub age: Age,
}

impl Reader<'_> {
    fn fault(&mut self, span: Span, message: impl Into<String>) {
        self.faults.push(Fault::at(span, message));
    }

    pub fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::EmitExpr(it) => self.read(&it.expr),
            Stmt::ForLoop(it) => {
                self.read(&it.iter);
                it.filter_expr.iter().for_each(|one| self.read(one));
            }
            Stmt::IfCond(it) => self.read(&it.expr),
            Stmt::WithBlock(it) => it.assignments.iter().for_each(|(target, value)| self.assigned(target, value)),
            Stmt::Set(it) => self.assigned(&it.target, &it.expr),
            Stmt::SetBlock(it) => it.filter.iter().for_each(|one| self.read(one)),
            Stmt::AutoEscape(it) => self.read(&it.enabled),
            Stmt::FilterBlock(it) => self.read(&it.filter),
            Stmt::Import(it) => self.read(&it.expr),
            Stmt::FromImport(it) => self.read(&it.expr),
            Stmt::Extends(it) => self.read(&it.name),
            Stmt::Include(it) => self.read(&it.name),
            Stmt::Macro(it) => it.defaults.iter().for_each(|one| self.kept(one, Kind::Any)),
            Stmt::CallBlock(it) => {
                self.call(&it.call, it.call_expr_span);
                it.macro_decl.defaults.iter().for_each(|one| self.kept(one, Kind::Any));
            }
            Stmt::Do(it) => {
                self.call(&it.call, it.call.span());
            }
            Stmt::Template(_) | Stmt::EmitRaw(_) | Stmt::Block(_) => {}
        }
        within(statement).into_iter().flatten().for_each(|one| self.statement(one));
    }

    fn read(&mut self, expression: &Expr<'_>) {
        self.kind(expression);
    }

    /// `{% set a, b = x, y %}` keeps the items and not the list.
    fn assigned(&mut self, target: &Expr<'_>, value: &Expr<'_>) {
        match (target, value) {
            (Expr::List(_) | Expr::Tuple(_), Expr::List(_) | Expr::Tuple(_)) => self.read(value),
            _ => self.kept(value, Kind::Any),
        }
    }

    /// A value that goes on living under a name, or inside another.
    fn kept(&mut self, expression: &Expr<'_>, most: Kind) {
        let kind = self.kind(expression);
        if kind > most {
            self.fault(expression.span(), unkept(kind));
        }
    }

    fn kind(&mut self, expression: &Expr<'_>) -> Kind {
        match expression {
            Expr::Var(_) => Kind::Any,
            Expr::Const(it) => match it.value.kind() {
                ValueKind::String => Kind::Text,
                ValueKind::Number | ValueKind::Bool | ValueKind::None => Kind::Plain,
                _ => Kind::Any,
            },
            Expr::Slice(it) => {
                [&it.start, &it.stop, &it.step].into_iter().flatten().for_each(|one| self.read(one));
                self.viewed(&it.expr)
            }
            Expr::UnaryOp(it) => {
                self.read(&it.expr);
                match it.op {
                    UnaryOpKind::Not | UnaryOpKind::Neg => Kind::Plain,
                }
            }
            Expr::BinOp(it) => self.operation(it.op, &it.left, &it.right),
            Expr::Compare(it) => {
                let mut left = self.side(&it.expr);
                for next in &it.ops {
                    let inside = matches!(next.op, CompareOpKind::In | CompareOpKind::NotIn);
                    let right = self.side(&next.expr);
                    self.compared(left, right, inside);
                    left = right;
                }
                Kind::Plain
            }
            Expr::IfExpr(it) => {
                self.read(&it.test_expr);
                let otherwise = it.false_expr.as_ref().map_or(Kind::Text, |one| self.kind(one));
                self.kind(&it.true_expr).max(otherwise)
            }
            Expr::Filter(it) => self.filtered(it, it.span()),
            Expr::Test(it) => self.tested(it, it.span()),
            Expr::GetAttr(it) => {
                self.read(&it.expr);
                let counts = ["index", "index0", "revindex", "revindex0", "length", "depth", "depth0", "first", "last"];
                let of_loop = matches!(&it.expr, Expr::Var(var) if var.id == "loop");
                if of_loop && counts.contains(&it.name) { Kind::Plain } else { Kind::Any }
            }
            Expr::GetItem(it) => {
                self.read(&it.expr);
                self.read(&it.subscript_expr);
                Kind::Any
            }
            Expr::Call(it) => self.call(it, it.span()),
            Expr::List(it) => self.written(it.items.iter()),
            Expr::Tuple(it) => self.written(it.items.iter()),
            Expr::Map(it) => self.written(it.keys.iter().chain(&it.values)),
        }
    }

    fn written<'t, 'a: 't>(&mut self, items: impl Iterator<Item = &'t Expr<'a>>) -> Kind {
        let mut all_constant = true;
        for item in items {
            all_constant &= is_constant(item);
            self.kept(item, Kind::Any);
        }
        if all_constant { Kind::Any } else { Kind::Written }
    }

    fn viewed(&mut self, expression: &Expr<'_>) -> Kind {
        match self.kind(expression) {
            Kind::Sum => {
                self.fault(expression.span(), unkept(Kind::Sum));
                Kind::View
            }
            kind @ (Kind::Text | Kind::Written) => kind,
            Kind::Plain | Kind::Any | Kind::View => Kind::View,
        }
    }

    fn operation(&mut self, op: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> Kind {
        match op {
            BinOpKind::ScAnd | BinOpKind::ScOr => self.kind(left).max(self.kind(right)),
            BinOpKind::Eq | BinOpKind::Ne | BinOpKind::Lt | BinOpKind::Lte | BinOpKind::Gt | BinOpKind::Gte => {
                let sides = (self.side(left), self.side(right));
                self.compared(sides.0, sides.1, false);
                Kind::Plain
            }
            BinOpKind::In => {
                let sides = (self.side(left), self.side(right));
                self.compared(sides.0, sides.1, true);
                Kind::Plain
            }
            BinOpKind::Concat => {
                self.kept(left, Kind::View);
                self.kept(right, Kind::View);
                Kind::Text
            }
            // A number, or an error.
            BinOpKind::Sub | BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem | BinOpKind::Pow => {
                self.read(left);
                self.read(right);
                Kind::Plain
            }
            // A list takes nothing but a list.
            BinOpKind::Add => {
                let kinds = (self.kind(left), self.kind(right));
                if kinds.0.min(kinds.1) <= Kind::Plain { Kind::Plain } else { Kind::Sum }
            }
            // A list takes a number, and a text nothing else.
            BinOpKind::Mul => {
                let kinds = (self.kind(left), self.kind(right));
                let number = kinds.0.max(kinds.1) <= Kind::Plain || kinds.0.min(kinds.1) == Kind::Text;
                if number { Kind::Plain } else { Kind::Sum }
            }
        }
    }

    /// Read once: a chain of comparisons within another would else be read twice for each step in.
    fn side(&mut self, expression: &Expr<'_>) -> (Kind, Span) {
        (self.kind(expression), expression.span())
    }

    fn compared(&mut self, left: (Kind, Span), right: (Kind, Span), inside: bool) {
        for (one, other) in [(left, right), (right, left)] {
            if one.0 == Kind::Sum && (inside || other.0 > Kind::Plain) {
                self.fault(one.1, unkept(Kind::Sum));
            }
        }
    }

    fn filtered(&mut self, filter: &Filter<'_>, span: Span) -> Kind {
        let name = filter.name;
        let subject = filter.expr.as_ref().map_or(Kind::Text, |one| self.kind(one));
        let most = self.arguments(&filter.args, Kind::Any);
        if !is_filter(name) {
            self.fault(span, format!("there is no filter `{name}`"));
            return Kind::Any;
        }
        let subject_written = filter.expr.as_ref().and_then(constant);
        self.literals(Called { filter: name, subject: subject_written, span }, &filter.args);
        if matches!(name, "map" | "select" | "reject" | "selectattr" | "rejectattr") {
            self.by_name(name, &filter.args, span);
        }
        if matches!(name, "map" | "sum") && !filter.args.iter().all(|one| is_constant_scalar(argument(one))) {
            self.fault(span, format!("`{name}` takes texts and numbers that are written here, and no variables"));
        }
        if TO_NUMBER.contains(&name) {
            return Kind::Plain;
        }
        if subject == Kind::Sum && name != "default" && name != "d" {
            self.fault(span, unkept(Kind::Sum));
            return Kind::Any;
        }
        match name {
            "join" | "tojson" => Kind::Text,
            "sum" => Kind::Plain,
            "default" | "d" => subject.max(most),
            "list" if subject == Kind::View => Kind::Any,
            "reverse" if subject == Kind::Text => Kind::Text,
            "reverse" | "items" => subject.max(Kind::View),
            _ if PICKING.contains(&name) => Kind::Any,
            _ if TO_TEXT.contains(&name) => {
                if subject == Kind::Written {
                    self.fault(span, unkept(Kind::Written));
                }
                Kind::Text
            }
            _ => subject.max(Kind::Any),
        }
    }

    /// A filter or a test that is called by a name in a text.
    fn by_name(&mut self, filter: &str, args: &[CallArg<'_>], span: Span) {
        let at = usize::from(filter.ends_with("attr"));
        let positional = args.iter().filter_map(|one| if let CallArg::Pos(it) = one { Some(it) } else { None });
        let Some(Expr::Const(named)) = positional.into_iter().nth(at) else { return };
        let Some(name) = named.value.as_str() else { return };
        if filter == "map" && is_filter(name) {
            let rest = args.iter().position(|one| matches!(one, CallArg::Pos(_))).map_or(&[][..], |at| &args[at + 1..]);
            self.literals(Called { filter: name, subject: None, span }, rest);
        } else if filter == "map" {
            self.fault(span, format!("there is no filter `{name}`"));
        } else if filter != "map" && !is_test(name) {
            self.fault(span, format!("there is no test `{name}`"));
        }
    }

    fn literals(&mut self, called: Called<'_>, args: &[CallArg<'_>]) {
        if self.age == Age::New {
            self.faults.extend(literals::wrong(called, args));
        }
    }

    fn tested(&mut self, test: &Test<'_>, span: Span) -> Kind {
        self.kept(&test.expr, Kind::Written);
        self.arguments(&test.args, Kind::Written);
        if !is_test(test.name) {
            self.fault(span, format!("there is no test `{}`", test.name));
        }
        Kind::Plain
    }

    fn call(&mut self, call: &Call<'_>, span: Span) -> Kind {
        self.arguments(&call.args, Kind::View);
        match &call.expr {
            Expr::Var(callee) if !self.names.has(callee.id) => {
                self.fault(span, format!("there is no function or macro `{}`", callee.id));
                Kind::Any
            }
            Expr::Var(callee) if callee.id == "range" => Kind::Any,
            // A macro gives a text.
            Expr::Var(_) => Kind::Text,
            callee => {
                self.read(callee);
                Kind::Any
            }
        }
    }

    /// The most that any of them can be.
    fn arguments(&mut self, args: &[CallArg<'_>], most: Kind) -> Kind {
        let mut highest = Kind::Text;
        for one in args {
            let expression = argument(one);
            let kind = self.kind(expression);
            if kind > most {
                self.fault(expression.span(), unkept(kind));
            }
            highest = highest.max(kind);
        }
        highest
    }
}

const fn argument<'t, 'a>(one: &'t CallArg<'a>) -> &'t Expr<'a> {
    match one {
        CallArg::Pos(it) | CallArg::Kwarg(_, it) | CallArg::PosSplat(it) | CallArg::KwargSplat(it) => it,
    }
}

pub(super) fn constant<'e>(expression: &'e Expr<'_>) -> Option<&'e Value> {
    if let Expr::Const(it) = expression { Some(&it.value) } else { None }
}

fn is_constant(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(_) => true,
        Expr::UnaryOp(it) => is_constant(&it.expr),
        Expr::List(it) => it.items.iter().all(is_constant),
        Expr::Tuple(it) => it.items.iter().all(is_constant),
        Expr::Map(it) => it.keys.iter().chain(&it.values).all(is_constant),
        _ => false,
    }
}

fn is_constant_scalar(expression: &Expr<'_>) -> bool {
    match expression {
        Expr::Const(it) => !matches!(it.value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable),
        Expr::UnaryOp(it) => is_constant_scalar(&it.expr),
        _ => false,
    }
}

const fn unkept(kind: Kind) -> &'static str {
    match kind {
        Kind::Sum => "this can be a list, which is not to be built upon; for a number say `(…)|number`, for a text `~`",
        Kind::Written => {
            "a list or an object with variables in it can be looped over, joined or asked with `in`, and not kept or \
             handed on"
        }
        Kind::Text | Kind::Plain | Kind::Any | Kind::View => {
            "a part of a list or a reversed one is not to be kept; end it in `|list`, or `|string` for a text"
        }
    }
}
