//! How the store's work and memory grow with what it remembers and with what waits. Needs Redis for
//! the memory and for the server's own processor time; on SQLite it shows this program's.

mod keys;
mod probe;

use std::time::Duration;

use anyhow::Result;

use crate::delivered::{PROVIDER, fill};
use crate::plan::Plan;
use crate::records::Shape;
use crate::redis_server::{Persistence, RedisServer};
use crate::rows::{Report, Row};
use crate::stores::Place;

use probe::{Cost, Prober};

/// Due so late that nothing claims it.
const WAITING: Shape = Shape::webhook(PROVIDER).in_a_month();
const PENDING: usize = 1_000_000;
/// In how many its keys are told apart by what they are for.
const SAMPLED: usize = 50_000;
/// Numbers of what is pending begin here: apart from all that is remembered and probed.
const FIRST_PENDING: usize = 1_000_000_000;

/// What was seen at so many remembered and pending.
struct Point {
    remembered: usize,
    pending: usize,
    costs: Vec<Cost>,
    /// Bytes that the store keeps; none where it cannot be asked.
    kept: Option<f64>,
}

pub(crate) async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let mut place = Place::new(plan.store, Persistence::Nothing).await?;
    let store = place.open()?;
    let probes = (plan.rounds, plan.sized(20_000));
    let mut prober = Prober::new(&place, store.deliveries.clone(), 0);
    let mut points = vec![Point { remembered: 0, pending: 0, kept: kept(&place).await?, costs: vec![] }];
    points[0].costs = prober.probe(probes).await?;
    let mut remembered = 0;
    for size in &plan.growth {
        prober.remember_up_to(*size).await?;
        let (at, kept) = (prober.remembered(), kept(&place).await?);
        let costs = prober.probe(probes).await?;
        points.push(Point { remembered: at, pending: 0, costs, kept });
        remembered = prober.remembered();
    }
    store.close().await;
    let reloaded = reload(&mut place, remembered).await?;
    let store = place.open()?;
    let mut prober = Prober::new(&place, store.deliveries.clone(), remembered);
    let pending = plan.sized(PENDING);
    let before = kept(&place).await?;
    fill(&store.deliveries, WAITING, FIRST_PENDING..FIRST_PENDING + pending).await?;
    let after = kept(&place).await?;
    let each = before.zip(after).map(|(before, after)| (after - before) / float(pending));
    points.push(Point { remembered, pending, costs: prober.probe(probes).await?, kept: None });
    store.close().await;
    report.add(cost_rows(&points, plan));
    report.add(byte_rows(&points, each, plan));
    report.add([reloaded]);
    place.stop().await?;
    report.add([search(plan).await?]);
    Ok(())
}

/// Bytes kept, where the store can say.
async fn kept(place: &Place) -> Result<Option<f64>> {
    match &place.redis {
        Some(redis) => Ok(Some(redis.told().await?.kept)),
        None => Ok(None),
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
const fn float(count: usize) -> f64 {
    count as f64
}

fn cost_rows(points: &[Point], plan: &Plan) -> Vec<Row> {
    type Of = fn(&Cost) -> Duration;
    let (none, store) = (&points[0], plan.store.name());
    let verbs: [(&str, Of); 2] = [("accept", |it| it.accept), ("claim and settle", |it| it.claim_and_settle)];
    let mut rows = Vec::new();
    for (at, point) in points.iter().enumerate().skip(1) {
        for (verb, of) in verbs {
            let Point { remembered, pending, costs, .. } = point;
            let name = format!("processor time per {verb}, {remembered} remembered, {pending} pending, {store}");
            let asked = at == plan.growth.len();
            let mut row = if asked { Row::lower(&name, "µs", 1.5, 1.3) } else { Row::told(&name, "µs") };
            row = row.beside("none");
            let micros = |cost: &Cost| of(cost).as_secs_f64() * 1e6;
            row.rounds = costs.iter().zip(&none.costs).map(|(here, there)| (micros(here), micros(there))).collect();
            rows.push(row);
        }
    }
    rows
}

fn byte_rows(points: &[Point], each_pending: Option<f64>, plan: &Plan) -> Vec<Row> {
    const TOMBSTONE: (f64, f64) = (64.0, 48.0);
    const DELIVERY: (f64, f64) = (2_000.0, 1_400.0);
    let delivery = "bytes per pending delivery, 500-byte body, its search index included";
    let (Some(empty), Some(pending)) = (points[0].kept, each_pending) else {
        let absent = |what, (floor, goal)| Row::absent(what, floor, goal, "not measured: only Redis can say");
        return vec![absent("bytes per tombstone", TOMBSTONE), absent(delivery, DELIVERY)];
    };
    let mut rows = Vec::new();
    for (at, point) in points.iter().enumerate().skip(1) {
        let Some(kept) = point.kept else { continue };
        let name = format!("bytes per tombstone, {} remembered", point.remembered);
        let asked = at == plan.growth.len();
        let row = if asked { Row::lower(&name, "B", TOMBSTONE.0, TOMBSTONE.1) } else { Row::told(&name, "B") };
        rows.push(row.alone([(kept - empty) / float(point.remembered)]));
    }
    rows.push(Row::lower(delivery, "B", DELIVERY.0, DELIVERY.1).alone([pending]));
    rows
}

/// All of it read back from disk, beside as many plain keys.
async fn reload(place: &mut Place, remembered: usize) -> Result<Row> {
    let what = format!("reload with {remembered} remembered");
    let Some(redis) = &mut place.redis else {
        return Ok(Row::absent(&what, 0.5, 1.0 / 3.0, "not measured: only Redis reads back"));
    };
    let ours = redis.reload().await?;
    let mut plain = RedisServer::start(Persistence::Nothing).await?;
    keys::plain(&plain, remembered).await?;
    let theirs = plain.reload().await?;
    plain.stop().await?;
    let mut row = Row::lower(&what, "s", 0.5, 1.0 / 3.0).beside("as many plain keys");
    row.rounds.push((ours.as_secs_f64(), theirs.as_secs_f64()));
    Ok(row)
}

/// What search costs, and what each other kind of key does.
async fn search(plan: &Plan) -> Result<Row> {
    let absent = |why| Row::absent("bytes of search indexes per delivery", 300.0, 200.0, why);
    let place = Place::new(plan.store, Persistence::Nothing).await?;
    let Some(redis) = &place.redis else { return Ok(absent("not measured: only Redis can say")) };
    let store = place.open()?;
    let sampled = plan.sized(SAMPLED);
    fill(&store.deliveries, WAITING, 0..sampled).await?;
    let kinds = keys::kinds(redis).await?;
    for (kind, bytes) in &kinds.by_name {
        eprintln!("{:>10.1} bytes per delivery in keys like {kind}", bytes / float(sampled));
    }
    store.close().await;
    place.stop().await?;
    Ok(Row::lower("bytes of search indexes per delivery", "B", 300.0, 200.0).alone([kinds.search / float(sampled)]))
}
