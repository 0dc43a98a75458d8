//! Which circuits are open, for people who ask.

use super::*;

#[test]
fn open_circuits_are_told_until_they_close() {
    let recorder = recorder();
    let opened = |service, why, cause| Fact::CircuitOpened { provider: "main".into(), service, why, cause };
    recorder.record(&opened(None, OpenWhy::Silent, WhyCode::TimedOutAfter));
    recorder.record(&opened(service(1), OpenWhy::Credential, WhyCode::CredentialRefused));
    recorder.record(&opened(service(3), OpenWhy::Unreachable, WhyCode::TlsFailed));
    recorder.record(&opened(None, OpenWhy::Unreachable, WhyCode::Unreachable));
    let told = || -> Vec<_> {
        recorder.open_circuits().into_iter().map(|it| (it.provider, it.service, it.why, it.cause)).collect()
    };
    let main = || "main".to_owned();
    let all = [
        (main(), None, OpenWhy::Unreachable, WhyCode::Unreachable),
        (main(), Some("another"), OpenWhy::Credential, WhyCode::CredentialRefused),
        (main(), Some("another"), OpenWhy::Unreachable, WhyCode::TlsFailed),
    ];
    assert_eq!(told(), all);
    recorder.record(&Fact::CircuitClosed { provider: main(), service: service(1) });
    recorder.record(&Fact::CircuitClosed { provider: main(), service: None });
    assert_eq!(told(), all[2..]);
    recorder.set_names(Names::new([], []));
    assert_eq!(told(), []);
}
