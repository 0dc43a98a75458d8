//! Case 68: no digit of the caller's is lost, and no choice silently falls otherwise.

use belfry::content::RenderFault;
use belfry_domain::ChannelKind;

use super::{filled, mail, one, render, words};

const NUMBERS: [&str; 9] = [
    "9007199254740993",
    "18446744073709551615",
    "-0.0",
    "-0",
    "1.0",
    "1e400",
    "1E+2",
    "19.90",
    "0.1000000000000000055511151231257827",
];

fn sms(template: &str, json: &str) -> Result<String, belfry::content::RenderProblem> {
    let content = one(&[("sms.txt", template)]);
    render(&content, &filled(&content, "t", None, json), ChannelKind::Sms).map(|message| words(&message).to_owned())
}

#[test]
fn case_68_numbers_print_as_written_in_every_part() {
    let content = one(&[
        ("subject.txt", "{{ n }}"),
        ("text.txt", "{{ list|join(' ') }} {{ 'n=' ~ n }}"),
        ("html.html", "<b>{{ n }}</b>"),
        (
            "push.json",
            "{\"title\": \"{{ n }}\", \"body\": \"\", \"apns\": {\"badge\": {{ n }}, \"list\": {{ list|tojson }} } }",
        ),
    ]);
    for number in NUMBERS {
        let inputs = filled(&content, "t", None, &format!("{{\"n\": {number}, \"list\": [{number}, {number}]}}"));
        let mail = mail(&content, &inputs);
        assert_eq!(mail.subject, number);
        assert_eq!(mail.text, format!("{number} {number} n={number}\n"));
        assert_eq!(mail.html.unwrap(), format!("<b>{number}</b>\n"));
        let payload = render(&content, &inputs, ChannelKind::Apns).unwrap();
        let expected = format!(
            "{{\"aps\":{{\"alert\":{{\"title\":\"{number}\",\"body\":\"\"}}}},\"badge\":{number},\"list\":[{number},{number}]}}"
        );
        assert_eq!(words(&payload), expected);
        let body = render(&content, &inputs, ChannelKind::Webhook).unwrap();
        assert!(words(&body).contains(&format!("[{number}, {number}]")));
    }
}

#[test]
fn case_68_what_is_no_json_or_says_a_name_twice_is_refused() {
    for bad in [r#"{"n": NaN}"#, r#"{"n": Infinity}"#] {
        assert!(serde_json::value::RawValue::from_string(bad.to_owned()).is_err(), "{bad}");
    }
    for bad in [r#"{"n": 1, "n": 2}"#, r#"{"n": {"a": 1, "a": 2}}"#, "[1]", "1", r#"{"belfry": 1, "n": 1}"#] {
        let problem = sms("{{ n }}", bad).unwrap_err();
        assert_eq!(problem.fault, RenderFault::Failed, "{bad}");
    }
}

#[test]
fn whole_numbers_calculate_and_compare() {
    let json = r#"{"n": 2, "big": 9007199254740993}"#;
    assert_eq!(
        sms("{{ n + 1 }} {{ big + 1 }} {% if n > 1 %}many{% endif %}", json).unwrap(),
        "3 9007199254740994 many"
    );
}

#[test]
fn a_fraction_calculates_when_told_to() {
    let json = r#"{"price": 19.90, "n": 3}"#;
    assert_eq!(sms("{{ '%.2f'|format(price|number * n|number) }}", json).unwrap(), "59.70");
    assert_eq!(sms("{{ price|round(1) }} {{ price|int }} {{ price|abs }}", json).unwrap(), "19.9 19 19.9");
    assert_eq!(sms("{% if price|number > 5 %}big{% endif %}", json).unwrap(), "big");
    assert_eq!(sms("{% if price is number and price %}yes{% endif %}", json).unwrap(), "yes");
    assert_eq!(sms("{{ prices|sort|join(' ') }}", r#"{"prices": [10.50, 9.10]}"#).unwrap(), "9.10 10.50");
}

#[test]
fn a_comparison_that_would_fall_otherwise_is_refused() {
    let json = r#"{"price": 19.90, "n": 30}"#;
    for template in [
        "{% if price > 20 %}big{% else %}small{% endif %}",
        "{% if price == 19.9 %}same{% else %}other{% endif %}",
        "{% if n < price %}a{% else %}b{% endif %}",
        "{{ [n, price]|max }}",
        "{{ price * 2 }}",
        "{{ price + n }}",
        "{{ [price, n]|sum }}",
    ] {
        let problem = sms(template, json).unwrap_err();
        assert_eq!(problem.fault, RenderFault::Failed, "{template}");
        assert!(problem.message.contains("number") && !problem.message.contains("19.9 "), "{template}: {problem}");
    }
    assert_eq!(sms("{% if price|number > 20 %}big{% else %}small{% endif %}", json).unwrap(), "small");
}
