//! A node that dies with calls under way.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::books::{Books, entries, states};
use super::fleet::{Fleet, LONG, redis};
use super::report::Row;
use crate::kill::http::Client;
use crate::kill::load::{self, Ledger, intent};
use crate::kill::reconcile::ended;
use crate::kill::sink::{Phase, Sink};
use crate::peers::until::until;
use crate::redis::Server;

const INTENTS: usize = 40;
const TWO_LEASES: Duration = Duration::from_secs(2);

/// Nothing is started in its place: another has what it held within two leases, by its own clock.
pub fn case_25_a_node_that_dies_is_covered_by_another_within_two_leases() -> Row {
    let (server, sink, ledger) = (Server::plain(), Sink::start(), Ledger::default());
    let mut fleet = Fleet::start(2, &redis(&server.url(), "ack"), sink.address);
    sink.hold(Phase::Greeting);
    load::send_through(&fleet.places, &ledger, 0..INTENTS);
    let mut client = fleet.client(1);
    until("both have as much under way as they may", LONG, || {
        let sending = |ledger: &Ledger, client: &mut Client| {
            states(client, ledger).iter().filter(|state| *state == "sending").count()
        };
        (sink.waiting() >= 2 && sending(&ledger, &mut client) >= INTENTS / 4).then_some(())
    });
    fleet.kill(0);
    let killed = Timestamp::try_from(SystemTime::now()).unwrap();
    sink.let_go();
    let (mut latest, mut taken_over) = (Duration::ZERO, 0);
    for number in 0..INTENTS {
        let delivery = ended(&mut client, &ledger.accepted()[&intent(number)]);
        for lapse in entries(&delivery, "lapsed") {
            let at: Timestamp = lapse["at"].as_str().unwrap().parse().unwrap();
            latest = latest.max(Duration::try_from(at.duration_since(killed)).unwrap());
            taken_over += 1;
        }
    }
    println!("{taken_over} claims of a dead node were taken over within {latest:?}");
    assert!(taken_over > 0, "the dead node held nothing");
    assert!(latest <= TWO_LEASES, "the last of {taken_over} was taken over after {latest:?}");
    let books = Books { fleet: &fleet, ledger: &ledger, sink: &sink };
    let tally = books.reconcile(0..INTENTS);
    assert_eq!(tally.extra, 0, "nobody had called yet: {tally:?}");
    books.report("a dead node", &tally)
}
