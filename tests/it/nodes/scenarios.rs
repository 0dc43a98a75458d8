//! The scenarios that make the second half of `docs/guarantees.md`, in its order. Each returns what it found,
//! and is compared with its row.

use super::{asleep, case_25, case_31, case_106, clocks, failover, moving, report, rolling, servers, storm};

macro_rules! scenarios {
    ($($module:ident::$name:ident => $title:literal),+ $(,)?) => {
        /// The first cell of each row.
        pub const TITLES: &[&str] = &[$($title),+];

        $(#[test] fn $name() { report::keep($title, $module::$name().into()); })+
    };
}

scenarios! {
    storm::a_storm_of_kills_loses_nothing_and_doubles_nothing_without_a_reason =>
        "nodes die",
    storm::a_storm_of_kills_and_of_a_faltering_store_loses_nothing_and_doubles_nothing_without_a_reason =>
        "nodes die, their server falters",
    storm::case_4_a_storm_of_nodes_that_sleep_through_their_leases_doubles_nothing_without_a_reason =>
        "nodes sleep through their leases",
    asleep::case_4_a_node_that_slept_before_its_calls_makes_none_when_it_wakes =>
        "a node falls asleep just before its calls",
    asleep::case_4_a_node_that_slept_during_its_calls_doubles_nothing_silently =>
        "a node falls asleep during its calls",
    case_25::case_25_a_node_that_dies_is_covered_by_another_within_two_leases =>
        "a node dies, nobody restarts it",
    case_31::case_31_a_hundred_nodes_killed_in_the_middle_of_sends_free_their_places =>
        "nodes die in the middle of calls",
    case_106::case_106_of_three_nodes_that_ask_at_once_one_gets_it_and_a_finished_intent_none =>
        "all nodes reach for the same backlog",
    rolling::case_10_rolling_restarts_of_three_nodes_lose_and_double_nothing =>
        "rolling restarts",
    rolling::case_76_nodes_scaled_down_to_none_and_up_again_leave_nothing_behind =>
        "scaled down to none and up again",
    storm::case_35_a_script_cache_that_is_emptied_under_load_fails_no_request =>
        "the server forgets its scripts",
    servers::case_62_a_server_that_closes_idle_connections_shows_callers_nothing =>
        "`timeout 1`: the server closes idle connections",
    servers::case_5_a_full_server_costs_refusals_and_nothing_that_was_acknowledged =>
        "the server is full for a while",
    clocks::case_70_a_store_whose_clock_steps_forward_sends_nothing_early_and_lapses_nothing =>
        "the server's clock steps forward",
    clocks::case_70_a_store_whose_clock_steps_back_holds_nothing_up =>
        "the server's clock steps back",
    storm::a_storm_of_kills_of_nodes_and_of_a_server_that_syncs_loses_nothing =>
        "`fsync`: nodes and their server die",
    servers::a_server_that_comes_back_with_its_file_has_all_or_what_it_lacks_is_named =>
        "`ack`: the server dies, its file is a second old",
    servers::what_a_server_without_a_file_loses_is_named =>
        "`ack`: the server dies and has no file",
    failover::with_a_replica_waited_for_a_primary_that_dies_takes_nothing_with_it =>
        "`replicas:1`: the primary dies, Sentinel fails over",
    storm::nodes_that_die_while_sentinel_fails_over_lose_nothing_with_a_replica_waited_for =>
        "`replicas:1`: nodes die before, during and after a failover",
    failover::without_one_what_a_dead_primary_takes_with_it_is_named =>
        "`ack`: the primary dies, its replicas lack something",
    moving::case_94_a_slot_that_moves_under_nodes_costs_refusals_and_nothing_else =>
        "Cluster: a slot moves",
    storm::case_94_nodes_of_a_cluster_that_die_while_slots_move_lose_and_double_nothing_without_a_reason =>
        "Cluster: nodes die while slots move",
}
