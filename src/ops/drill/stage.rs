//! One play: the caller, two nodes, one fault, and what came of it.

use std::sync::Arc;
use std::time::Duration;

use belfry_domain::NotificationId;
use belfry_domain::notification::Record;
use tokio::time::timeout;

use super::life::{Life, Point, Stop};
use super::node::{ENVIRONMENT, LEASE, Node, Recognised, Scenery, SeededDice, TENANT, Try};
use super::provider::Mailbox;
use super::scene::{Class, Fault, Scene};
use super::{DrillError, Guard, Place, Played, promises};
use crate::machine::MachineClock;
use crate::ports::clock::{Clock, Dice};
use crate::ports::deliveries::{Deliveries, Owner};

/// How long anything may take on a busy machine before the drill is at fault.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long something has to stand still, a guard being off, to have stopped for good: two leases to be
/// taken over in, and twice that.
const FOR_GOOD: Duration = Duration::from_millis(3_000);
const LOOK: Duration = Duration::from_millis(10);

struct Stage<'a> {
    scene: &'a Scene,
    off: Option<Guard>,
    truth: Arc<dyn Deliveries>,
    dice: Arc<SeededDice>,
    a: Arc<Node>,
    b: Arc<Node>,
    /// What the caller was told, each id once.
    answered: Vec<NotificationId>,
}

pub async fn play(place: Place, scene: &Scene, off: Option<Guard>, seed: u64) -> Result<Played, DrillError> {
    let truth = place.nodes[1].clone();
    let times_out = scene.fault == Fault::TimedOut;
    let mailbox = Arc::new(Mailbox::new(truth.clone(), scene.way, times_out));
    let dice = Arc::new(SeededDice::new(seed ^ ((scene.fault as u64) << 32) ^ ((scene.class as u64) << 48)));
    let recognised = Arc::new(Recognised::default());
    let scenery = Scenery { place, mailbox: mailbox.clone(), off, dice: dice.clone(), recognised: recognised.clone() };
    let a = Arc::new(Node::new(&scenery, 0, Life::new(strikes(scene))));
    let b = Arc::new(Node::new(&scenery, 1, Life::new(None)));
    let mut stage = Stage { scene, off, truth, dice, a, b, answered: Vec::new() };
    let played = stage.play().await;
    let records = stage.records().await;
    stage.a.kill().await;
    stage.b.kill().await;
    played?;
    let (records, copies) = (records?, mailbox.copies());
    let deliveries = records.iter().flatten().flat_map(|record| &record.deliveries);
    Ok(Played {
        received: copies.len(),
        calls: mailbox.calls(),
        recognised: recognised.count() + mailbox.recognised(),
        states: deliveries.map(|one| one.state.name().to_string()).collect(),
        broken: promises::broken(&records, &copies, scene.class == Class::RecordThenSend),
    })
}

/// Where the first node stops, if it does by itself.
fn strikes(scene: &Scene) -> Option<(Point, Stop)> {
    Some(match (scene.fault, scene.class) {
        (Fault::ProxyRepeats, _) => (Point::Committed, Stop::Asleep),
        (Fault::KilledBeforeReply, _) => (Point::Committed, Stop::Killed),
        (Fault::KilledBeforeCall, _) => (Point::Claimed, Stop::Killed),
        (Fault::KilledInCall, _) => (Point::Taken, Stop::Killed),
        (Fault::KilledBeforeSettle, _) => (Point::BeforeSettle, Stop::Killed),
        (Fault::SleptBeforeCall, _) | (Fault::SleptAndReports, Class::SendThenRecord) => {
            (Point::BeforeCall, Stop::Asleep)
        }
        (Fault::SleptAndReports, Class::RecordThenSend) => (Point::BeforeSpend, Stop::Asleep),
        (Fault::DoubleTap | Fault::LostReply | Fault::FreshKeys | Fault::KilledAfterReply | Fault::TimedOut, _) => {
            return None;
        }
    })
}

impl Stage<'_> {
    async fn play(&mut self) -> Result<(), DrillError> {
        match self.scene.fault {
            Fault::DoubleTap => self.taps().await,
            Fault::LostReply | Fault::FreshKeys => self.tries().await,
            Fault::ProxyRepeats => self.proxy_repeats().await?,
            Fault::KilledBeforeReply => self.killed_before_reply().await?,
            Fault::KilledAfterReply => {
                self.ask(true, 0).await;
                self.a.kill().await;
            }
            Fault::KilledBeforeCall | Fault::KilledInCall | Fault::KilledBeforeSettle => {
                self.stopped_at_work().await?;
                self.a.kill().await;
            }
            Fault::SleptBeforeCall | Fault::SleptAndReports => {
                self.stopped_at_work().await?;
                self.b.work(true);
                self.rest().await?;
                self.a.life.wake();
                self.a.finish().await;
                return self.rest().await;
            }
            Fault::TimedOut => self.ask(false, 0).await,
        }
        self.b.work(true);
        self.rest().await
    }

    /// What the caller says at its `number`th try.
    fn asks(&self, number: usize) -> Try {
        let fresh = self.scene.fault == Fault::FreshKeys || self.off == Some(Guard::IdempotencyKey);
        let key = if fresh { format!("order-42-{number}-{:016x}", self.dice.roll()) } else { "order-42".into() };
        let unique = self.scene.fault == Fault::FreshKeys && self.off != Some(Guard::Unique);
        Try { key, class: self.scene.class, way: self.scene.way, unique: unique.then_some("order-42/shipped") }
    }

    /// Two or three more than the first.
    fn count(&self) -> usize {
        if self.dice.roll().is_multiple_of(2) { 2 } else { 3 }
    }

    fn told(&mut self, id: Option<NotificationId>) {
        self.answered.extend(id.filter(|id| !self.answered.contains(id)));
    }

    async fn ask(&mut self, first_node: bool, number: usize) {
        let asked = self.asks(number);
        let node = if first_node { &self.a } else { &self.b };
        let id = node.submit(&asked).await;
        self.told(id);
    }

    /// All at the same time, at both nodes.
    async fn taps(&mut self) {
        let nodes = [self.a.clone(), self.b.clone()];
        let tries: Vec<Try> = (0..self.count()).map(|number| self.asks(number)).collect();
        let taps = tries.iter().zip(nodes.iter().cycle()).map(|(asked, node)| node.submit(asked));
        for id in futures::future::join_all(taps).await {
            self.told(id);
        }
    }

    /// One after the other; every answer but the last is lost on its way.
    async fn tries(&mut self) {
        for number in 0..self.count() {
            let first = self.dice.roll().is_multiple_of(2);
            self.ask(first, number).await;
        }
    }

    async fn proxy_repeats(&mut self) -> Result<(), DrillError> {
        let (a, asked) = (self.a.clone(), self.asks(0));
        let slow = async move { a.submit(&asked).await };
        let repeat = async {
            self.struck("the first node never got as far as its answer").await?;
            let again = self.b.submit(&self.asks(0)).await;
            self.a.life.wake();
            Ok::<_, DrillError>(again)
        };
        let (slow, again) = tokio::join!(slow, repeat);
        self.told(again?);
        self.told(slow);
        Ok(())
    }

    async fn killed_before_reply(&mut self) -> Result<(), DrillError> {
        let (a, asked) = (self.a.clone(), self.asks(0));
        tokio::select! {
            biased;
            struck = self.struck("the accept was never durable") => struck?,
            // Never: its answer is what gets lost.
            _ = a.submit(&asked) => {}
        }
        self.a.kill().await;
        self.ask(false, 0).await;
        Ok(())
    }

    /// Accepted at the second node, claimed by the first, which then stops.
    async fn stopped_at_work(&mut self) -> Result<(), DrillError> {
        self.ask(false, 0).await;
        self.a.work(false);
        self.struck("the worker never got to its fault").await
    }

    async fn struck(&self, what: &'static str) -> Result<(), DrillError> {
        timeout(PATIENCE, self.a.life.has_stopped()).await.map_err(|_| DrillError::Never(what))
    }

    async fn records(&self) -> Result<Vec<Option<Record>>, DrillError> {
        let owner = Owner { tenant: TENANT.into(), environment: ENVIRONMENT.into() };
        let mut records = Vec::with_capacity(self.answered.len());
        for id in &self.answered {
            records.push(self.truth.read(&owner, *id).await?);
        }
        Ok(records)
    }

    /// Until everything has ended, or, a guard being off, stands still for good.
    async fn rest(&self) -> Result<(), DrillError> {
        let (began, mut still_since) = (MachineClock.boot(), MachineClock.boot());
        let mut before = Vec::new();
        loop {
            let records = self.records().await?;
            let deliveries: Vec<_> = records.iter().flatten().flat_map(|record| &record.deliveries).collect();
            if deliveries.iter().all(|one| one.ended()) {
                return Ok(());
            }
            let revs: Vec<u64> = deliveries.iter().map(|one| one.rev).collect();
            let now = MachineClock.boot();
            if revs != before {
                (before, still_since) = (revs, now);
            }
            let for_good = self.off.is_some() && now.saturating_sub(still_since) > FOR_GOOD.max(LEASE * 6);
            if for_good || now.saturating_sub(began) > PATIENCE {
                // The check of the promises says so.
                return Ok(());
            }
            MachineClock.sleep_until(now + LOOK).await;
        }
    }
}
