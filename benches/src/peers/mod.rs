//! End to end beside what a team would build itself: the same intents through a door, to the same
//! sink, over the same Redis server, in the same run. Belfry is a node with its door; BullMQ has
//! fastify as its door; Celery gets its tasks straight from a producer, which costs it least.
//!
//! What the peers leave out is in their favour: no body is checked against anything, a key is
//! forgotten after a thousand more jobs (BullMQ) or never known (Celery), nothing is searchable.

mod bullmq;
mod celery;
mod contest;
mod ours;

use anyhow::{Result, ensure};

use contest::{Arena, Goal, Ran};

use crate::plan::Plan;
use crate::redis_server::{Persistence, RedisServer};
use crate::rows::{Report, Row};
use crate::{smtp_sink, webhook_sink};

/// What is sent in one round, after a quarter as many to warm up.
const ITEMS: usize = 24_000;
/// Celery takes longer for each.
const CELERY_ITEMS: usize = 8_000;

struct Round {
    ours_http: Ran,
    ours_smtp: Ran,
    bullmq_http: Ran,
    bullmq_smtp: Ran,
    celery: Ran,
}

/// How each is run, the fastest of what was tried.
struct Tuned {
    http: bullmq::Tuning,
    smtp: bullmq::Tuning,
    celery: celery::Tuning,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let bench = crate::child::target().join("bench");
    let prepared = ["node/door.js", "celery/tasks.py"].into_iter().all(|one| bench.join(one).exists());
    ensure!(prepared, "the peers are not installed: scripts/prepare-bench");
    let arena = Arena {
        redis: RedisServer::start(Persistence::EverySecond).await?,
        http: webhook_sink::Sink::start().await?,
        smtp: smtp_sink::Sink::counting().await?,
    };
    let (items, fewer) = (plan.sized(ITEMS), plan.sized(CELERY_ITEMS));
    let tuned = tuned(&arena, plan).await?;
    let mut rounds: Vec<Round> = Vec::new();
    for _ in 0..plan.rounds {
        rounds.push(Round {
            bullmq_http: bullmq::run(&arena, tuned.http, items).await?,
            ours_http: ours::run(&arena, plan.store, Goal::Http, items).await?,
            bullmq_smtp: bullmq::run(&arena, tuned.smtp, items).await?,
            ours_smtp: ours::run(&arena, plan.store, Goal::Smtp, items).await?,
            celery: celery::run(&arena, tuned.celery, fewer).await?,
        });
    }
    report.add(rows(&rounds, plan, &tuned));
    arena.stop().await
}

/// Tries each way to run each peer once, and takes the fastest. When it has to be quick, one that was
/// good before.
async fn tuned(arena: &Arena, plan: &Plan) -> Result<Tuned> {
    let (quick, items) = (plan.quick, plan.sized(ITEMS) / 4);
    let mut best = Vec::new();
    for goal in [Goal::Http, Goal::Smtp] {
        let tunings = bullmq::tunings(goal);
        let mut fastest = (tunings[0], 0.0);
        for tuning in tunings.into_iter().take(if quick { 1 } else { usize::MAX }) {
            let ran = bullmq::run(arena, tuning, items).await?;
            tried("BullMQ", &tuning.told(), ran);
            if ran.rate > fastest.1 {
                fastest = (tuning, ran.rate);
            }
        }
        best.push(fastest.0);
    }
    let mut celery = (celery::TUNINGS[0], 0.0);
    for tuning in celery::TUNINGS.into_iter().take(if quick { 1 } else { usize::MAX }) {
        let ran = celery::run(arena, tuning, plan.sized(CELERY_ITEMS) / 2).await?;
        tried("Celery", &tuning.told(), ran);
        if ran.rate > celery.1 {
            celery = (tuning, ran.rate);
        }
    }
    Ok(Tuned { http: best[0], smtp: best[1], celery: celery.0 })
}

fn tried(peer: &str, how: &str, ran: Ran) {
    eprintln!(
        "tried: {peer}, {how}: {:.0} items/s, {:.0} µs each, {:.0} of them Redis's",
        ran.rate, ran.busy, ran.busy_redis
    );
}

/// One line of what §13 asks: ours beside a peer's.
struct Pair {
    what: &'static str,
    peer: &'static str,
    ours: fn(&Round) -> Ran,
    theirs: fn(&Round) -> Ran,
    floor: f64,
    goal: f64,
    how: String,
}

fn rows(rounds: &[Round], plan: &Plan, tuned: &Tuned) -> Vec<Row> {
    let pairs = [
        Pair {
            what: "webhook",
            peer: "BullMQ + fastify",
            ours: |it| it.ours_http,
            theirs: |it| it.bullmq_http,
            floor: 3.0,
            goal: 5.0,
            how: tuned.http.told(),
        },
        Pair {
            what: "mail",
            peer: "BullMQ + nodemailer",
            ours: |it| it.ours_smtp,
            theirs: |it| it.bullmq_smtp,
            floor: 5.0,
            goal: 8.0,
            how: tuned.smtp.told(),
        },
        Pair {
            what: "webhook",
            peer: "Celery",
            ours: |it| it.ours_http,
            theirs: |it| it.celery,
            floor: 15.0,
            goal: 25.0,
            how: tuned.celery.told(),
        },
    ];
    pairs.into_iter().flat_map(|pair| pair.rows(rounds, plan)).collect()
}

impl Pair {
    fn rows(self, rounds: &[Round], plan: &Plan) -> [Row; 3] {
        let Self { what, peer, ours, theirs, floor, goal, how } = self;
        let store = plan.store.name();
        let persistence = Persistence::EverySecond.told();
        let pairs = |of: fn(Ran) -> f64| rounds.iter().map(|it| (of(ours(it)), of(theirs(it)))).collect();
        let mut rate = Row::higher(&format!("end to end, {what}, {store}"), "items/s", floor, goal)
            .beside(peer)
            .noted(format!("{how}; Redis: {persistence}"));
        rate.rounds = pairs(|it| it.rate);
        let name = format!("processor time per item, {what}, {store}");
        // Of this one alone something is asked.
        let asked = peer == "BullMQ + fastify";
        let mut busy = if asked { Row::lower(&name, "µs", 1.0 / 3.0, 1.0 / 5.0) } else { Row::told(&name, "µs") };
        busy = busy.beside(peer);
        busy.rounds = pairs(|it| it.busy);
        let mut redis = Row::told(&format!("of it Redis's, {what}, {store}"), "µs").beside(peer);
        redis.rounds = pairs(|it| it.busy_redis);
        [rate, busy, redis]
    }
}
