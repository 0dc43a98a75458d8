//! A message frozen on a version renders from that version, whatever the folder says by now.

use belfry::content::inputs::{Inputs, Source};
use belfry::content::{Content, RenderFault, hash};
use belfry::ports::admin::KeptTemplate;
use belfry_domain::ChannelKind;

use super::{META, filled, folder, mail, one, render, write};

#[test]
fn a_version_names_its_files_and_nothing_else() {
    let base = one(&[("text.txt", "a"), ("subject.txt", "s")]);
    let same = one(&[("text.txt", "a"), ("subject.txt", "s"), ("sample.json", "{}")]);
    let windows = one(&[("text.txt", "\u{feff}a"), ("subject.txt", "s")]);
    let other = one(&[("text.txt", "b"), ("subject.txt", "s")]);
    let version = |content: &Content| content.freeze("t", None).unwrap().version;
    assert_eq!(version(&base), version(&same));
    assert_eq!(version(&base), version(&windows));
    assert_ne!(version(&base), version(&other));
    assert!(version(&base).starts_with("tpl_") && version(&base).len() == 28);
}

#[test]
fn an_old_version_renders_after_its_files_are_gone() {
    let dir = folder(&[
        ("t/meta.toml", META),
        ("t/subject.txt", "old {{ n }}"),
        ("t/text.txt", "{% include '_shared/foot.txt' %}"),
        ("_shared/foot.txt", "old foot"),
    ]);
    let before = Content::load(dir.path()).unwrap();
    let inputs = filled(&before, "t", None, r#"{"n": 1.50}"#);
    let first = render(&before, &inputs, ChannelKind::Email).unwrap();
    let Source::Template { template, .. } = &inputs.source else { panic!() };
    let kept = before.export(&template.version).unwrap();

    write(dir.path(), &[("t/subject.txt", "new"), ("_shared/foot.txt", "new foot")]);
    let after = Content::load(dir.path()).unwrap();
    let inputs: Inputs = serde_json::from_str(&serde_json::to_string(&inputs).unwrap()).unwrap();
    assert_eq!(render(&after, &inputs, ChannelKind::Email).unwrap_err().fault, RenderFault::UnknownVersion);
    assert_eq!(after.import(&kept).unwrap(), template.version);
    assert_eq!(after.import(&kept).unwrap(), template.version);
    assert_eq!(hash(&render(&after, &inputs, ChannelKind::Email).unwrap()), hash(&first));
    assert_eq!(mail(&after, &inputs).text, "old foot\n");
    assert_eq!(mail(&after, &filled(&after, "t", None, "{}")).subject, "new");
    assert_ne!(after.freeze("t", None).unwrap().version, template.version);
    assert_eq!(after.export(&template.version).unwrap(), kept);
    assert_eq!(after.export("tpl_000000000000000000000000"), None);
}

#[test]
fn old_versions_are_bounded() {
    let content = one(&[("text.txt", "now")]);
    let versions: Vec<String> = (0..70)
        .map(|n| {
            let other = one(&[("text.txt", &format!("then {n}"))]);
            let version = other.freeze("t", None).unwrap().version;
            content.import(&other.export(&version).unwrap()).unwrap()
        })
        .collect();
    let held: Vec<bool> = versions.iter().map(|version| content.export(version).is_some()).collect();
    assert_eq!(held.iter().filter(|held| **held).count(), 64);
    assert!(!held[0] && held[69]);
}

#[test]
fn what_is_no_export_is_refused() {
    let content = one(&[("text.txt", "now")]);
    for bad in ["", "{}", r#"{"name":"t","files":{}}"#, r#"{"name":"t","files":{"meta.toml":"x"}}"#] {
        let kept = KeptTemplate { files: bad.to_owned(), attached: Vec::new() };
        assert!(content.import(&kept).is_err(), "{bad}");
    }
}
