//! The table: phase and answer to outcome.

use belfry_domain::outcome::OutcomeKind as K;

use super::*;

const ANN: &Unsaid<'_> = &Unsaid { recipient: "ann@example.com", user: "", secrets: &[], mail: None };

fn outcome(phase: Phase, wire: &str) -> (K, WhyCode) {
    let outcome = classify(phase, &Told::Reply(Reply::of(wire)), ANN);
    (outcome.kind(), outcome.why().code)
}

#[test]
fn case_28_first_digit_then_enhanced_code() {
    use Phase::{Auth, Body, Data, Dot, Ehlo, Greeting, Mail, Rcpt, Tls};
    use WhyCode as W;
    for (phase, wire, kind, code) in [
        (Dot, "250 2.0.0 Ok: queued as 4W1", K::Accepted, W::Ok),
        (Dot, "250", K::Accepted, W::Ok),
        (Dot, "354 go on", K::Unknown, W::Unrecognised),
        (Dot, "451 4.3.0 later", K::NotAccepted, W::TryLater),
        (Dot, "554 5.7.1 spam", K::Refused, W::PolicyRefused),
        (Dot, "550 no", K::Refused, W::PolicyRefused),
        (Dot, "552 5.3.4 too big", K::Refused, W::TooLarge),
        (Dot, "552 too big", K::Refused, W::TooLarge),
        (Dot, "552 5.2.2 mailbox full", K::Refused, W::PolicyRefused),
        (Dot, "554 5.6.0 bad content", K::Refused, W::ContentRefused),
        (Dot, "550 5.1.1 no such user", K::Refused, W::PolicyRefused),
        (Dot, "421 4.3.2 going down", K::Throttled, W::TryLater),
        (Greeting, "554 no service", K::NotAccepted, W::Unreachable),
        (Greeting, "421 busy", K::Throttled, W::TryLater),
        (Ehlo, "550 who are you", K::NotAccepted, W::Unreachable),
        (Tls, "454 4.7.0 not now", K::NotAccepted, W::TryLater),
        (Tls, "501 no", K::NotAccepted, W::TlsFailed),
        (Auth, "535 5.7.8 no", K::Throttled, W::CredentialRefused),
        (Auth, "530 5.7.0 no", K::Throttled, W::CredentialRefused),
        (Auth, "504 5.5.4 mechanism", K::Throttled, W::CredentialRefused),
        (Auth, "454 4.7.0 directory is away", K::Throttled, W::TryLater),
        (Mail, "530 5.7.0 Authentication required", K::Throttled, W::CredentialRefused),
        (Mail, "550 5.7.1 not you", K::Refused, W::PolicyRefused),
        (Mail, "553 5.1.8 sender's domain", K::Refused, W::PolicyRefused),
        (Mail, "552 5.3.4 too big", K::Refused, W::TooLarge),
        (Mail, "422 4.2.2 odd", K::NotAccepted, W::TryLater),
        (Mail, "354 what", K::NotAccepted, W::Unrecognised),
        (Rcpt, "422 4.2.2 odd", K::NotAccepted, W::TryLater),
        (Rcpt, "450 4.7.1 greylisted", K::NotAccepted, W::TryLater),
        (Rcpt, "471 odder", K::NotAccepted, W::TryLater),
        (Rcpt, "550 5.1.1 unknown", K::RecipientGone, W::NoSuchRecipient),
        (Rcpt, "550 5.1.10 unknown", K::RecipientGone, W::NoSuchRecipient),
        (Rcpt, "551 5.1.6 moved", K::RecipientGone, W::NoSuchRecipient),
        (Rcpt, "553 5.1.3 syntax", K::Refused, W::RecipientRefused),
        (Rcpt, "550 5.1.2 no such domain", K::Refused, W::RecipientRefused),
        (Rcpt, "550 5.1.8 sender's domain", K::Refused, W::PolicyRefused),
        (Rcpt, "550 5.1.0 rejected", K::Refused, W::PolicyRefused),
        (Rcpt, "550 5.7.1 relaying denied", K::Refused, W::PolicyRefused),
        (Rcpt, "571 5.7.1 denied", K::Refused, W::PolicyRefused),
        (Rcpt, "554 relay access denied", K::Refused, W::PolicyRefused),
        (Rcpt, "552 5.2.2 mailbox full", K::Refused, W::PolicyRefused),
        (Rcpt, "552 5.2.3 too big for it", K::Refused, W::TooLarge),
        (Rcpt, "552 storage exceeded", K::Refused, W::PolicyRefused),
        (Rcpt, "553 5.6.7 needs SMTPUTF8", K::Refused, W::NotSupported),
        (Rcpt, "421 4.4.5 too many", K::Throttled, W::TryLater),
        (Data, "451 4.3.0 later", K::NotAccepted, W::TryLater),
        (Data, "554 5.5.1 no valid recipients", K::Refused, W::ContentRefused),
        (Data, "250 what", K::NotAccepted, W::Unrecognised),
        (Body, "552 5.3.4 too big", K::Refused, W::TooLarge),
        (Body, "250 what", K::NotAccepted, W::Unrecognised),
    ] {
        assert_eq!(outcome(phase, wire), (kind, code), "{phase:?} {wire}");
    }
}

/// A hard bounce blocks an address for ever, login codes too: these are about the relay, a list, or the sender.
#[test]
fn case_86_a_refusal_without_the_code_of_it_says_of_no_mailbox_that_there_is_none() {
    for wire in [
        "550 relay not permitted",
        "550 rejected because 192.0.2.10 is in a black list at bl.example",
        "550 Sender verify failed",
        "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)",
        "550 no such user",
        "511 bad address",
        "551 user not local",
        "553 mailbox name",
    ] {
        assert_eq!(outcome(Phase::Rcpt, wire), (K::Refused, WhyCode::RecipientRefused), "{wire}");
    }
}

#[test]
fn case_28_any_4yz_is_a_definite_not_now_in_every_phase() {
    for phase in [Phase::Mail, Phase::Rcpt, Phase::Data, Phase::Dot] {
        for code in (400..500).filter(|code| *code != 421) {
            assert_eq!(outcome(phase, &format!("{code} x")), (K::NotAccepted, WhyCode::TryLater), "{phase:?} {code}");
        }
    }
}

#[test]
fn only_a_2yz_after_the_dot_is_success() {
    for phase in [Phase::Greeting, Phase::Ehlo, Phase::Auth, Phase::Mail, Phase::Rcpt, Phase::Data, Phase::Body] {
        for code in 200..600 {
            assert_ne!(outcome(phase, &code.to_string()).0, K::Accepted, "{phase:?} {code}");
        }
    }
    for code in 300..600 {
        assert_ne!(outcome(Phase::Dot, &code.to_string()).0, K::Accepted, "{code}");
    }
}

#[test]
fn what_is_no_reply() {
    use Phase::{Auth, Body, Connect, Dot, Mail, Rcpt, Tls};
    for (phase, told, kind, code) in [
        (Connect, Told::Cut, K::NotAccepted, WhyCode::Unreachable),
        (Connect, Told::Silence, K::NotAccepted, WhyCode::TimedOutBefore),
        (Connect, Told::Busy, K::Throttled, WhyCode::TimedOutBefore),
        (Tls, Told::Cut, K::NotAccepted, WhyCode::TlsFailed),
        (Tls, Told::Silence, K::NotAccepted, WhyCode::TimedOutBefore),
        (Tls, Told::Insecure("x"), K::NotAccepted, WhyCode::TlsFailed),
        (Rcpt, Told::Cut, K::NotAccepted, WhyCode::Unreachable),
        (Rcpt, Told::Garbled, K::NotAccepted, WhyCode::Unrecognised),
        (Body, Told::Cut, K::NotAccepted, WhyCode::Unreachable),
        (Body, Told::Silence, K::NotAccepted, WhyCode::TimedOutBefore),
        (Body, Told::LeaseLost, K::NotAccepted, WhyCode::LeaseLost),
        (Dot, Told::Cut, K::Unknown, WhyCode::CutAfter),
        (Dot, Told::Silence, K::Unknown, WhyCode::TimedOutAfter),
        (Dot, Told::Garbled, K::Unknown, WhyCode::Unrecognised),
        (Mail, Told::TooLarge, K::Refused, WhyCode::TooLarge),
        (Mail, Told::Lacks("x"), K::Refused, WhyCode::NotSupported),
        (Auth, Told::Lacks("x"), K::Throttled, WhyCode::CredentialRefused),
    ] {
        let outcome = classify(phase, &told, ANN);
        assert_eq!((outcome.kind(), outcome.why().code), (kind, code), "{phase:?} {told:?}");
    }
}

#[test]
fn case_29_a_refused_login_is_the_credential_not_the_message() {
    for (phase, wire) in [(Phase::Auth, "535 no"), (Phase::Auth, "530 no"), (Phase::Mail, "530 5.7.0 log in first")] {
        let outcome = classify(phase, &Told::Reply(Reply::of(wire)), ANN);
        assert!(matches!(outcome, Outcome::Throttled { scope: ThrottleScope::Credential, .. }), "{outcome:?}");
    }
}

#[test]
fn case_98_a_421_is_nobodys_fault_and_stale_only_before_the_dot() {
    let told = Told::Reply(Reply::of("421 4.4.2 idle too long"));
    for phase in [Phase::Mail, Phase::Rcpt, Phase::Data, Phase::Body] {
        assert!(went_stale(phase, &told) && went_stale(phase, &Told::Cut));
        let outcome = classify(phase, &told, ANN);
        assert!(matches!(outcome, Outcome::Throttled { scope: ThrottleScope::Provider, .. }), "{outcome:?}");
    }
    assert!(!went_stale(Phase::Dot, &told) && !went_stale(Phase::Dot, &Told::Cut));
    assert!(!went_stale(Phase::Mail, &Told::Silence));
}

#[test]
fn the_queue_id_is_kept_and_words_are_masked() {
    let accepted = classify(Phase::Dot, &Told::Reply(Reply::of("250 2.0.0 Ok: queued as 4W1")), ANN);
    assert!(matches!(accepted, Outcome::Accepted { provider_ref: Some(id), .. } if id == "4W1"));
    let gone = classify(Phase::Rcpt, &Told::Reply(Reply::of("550 5.1.1 <ann@example.com> unknown")), ANN);
    assert_eq!(gone.why().answer.as_deref(), Some("550 5.1.1 <…@example.com> unknown"));
}
