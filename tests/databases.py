"""Databases: the tests that `make test` runs on SQLite only. `make both` runs them on both.

A test runs on both databases if its module is not listed here. The modules below test rules,
prompts, tools and whole flows: they combine verbs, and the SQL of a verb is the same text for both
databases. The tests named for a module run on PostgreSQL all the same: each executes a statement
that no other test executes there. What differs by database (locks, claims, the job queue,
notifications, takeover by other processes, backups) is in modules that are not listed.
"""

from pathlib import Path

import pytest

SQLITE_SUFFICES: dict[str, frozenset[str]] = {
    "habits/test_claims.py": frozenset(
        {
            "test_t5_an_approval_in_the_models_own_words_approves_nothing",
        }
    ),
    "habits/test_delegating.py": frozenset(
        {
            "test_d11_the_end_of_an_id_is_enough_and_a_wrong_one_says_where_ids_are",
            "test_d18_the_same_alarm_twice_is_refused_with_the_id_of_the_first",
        }
    ),
    "habits/test_ending_calls.py": frozenset(
        {
            "test_a_retry_starts_the_count_of_refusals_anew",
            "test_e5_a_goal_that_only_asks_is_done_by_an_answer",
            "test_e6_a_task_that_was_told_to_stop_is_not_waited_for",
            "test_e6_tasks_that_can_no_longer_start_end_with_the_goal",
            "test_e9_a_finish_in_the_work_of_an_alarm_ends_that_work_only",
        }
    ),
    "research/test_ledger.py": frozenset(
        {
            "test_a_call_that_is_made_again_after_a_crash_notes_nothing_twice",
        }
    ),
    "habits/test_memory.py": frozenset(
        {
            "test_m2_what_a_page_said_is_fenced_where_it_was_read_and_in_no_later_prompt",
            "test_m4_the_same_in_other_words_is_kept_once_with_all_sources",
            "test_m5_a_statement_and_its_contrary_are_shown_as_a_pair",
        }
    ),
    "habits/test_talk.py": frozenset(
        {
            "test_k10_a_question_that_was_answered_is_answered_with_that_answer",
            "test_k2_an_hour_later_a_message_is_one_of_its_own_again",
            "test_k6_what_is_said_beside_an_open_question_is_heard_before_the_next_call",
        }
    ),
    "habits/test_truthfulness.py": frozenset(
        {
            "test_t11_a_time_is_stated_under_the_reply_if_somebody_will_be_reminded",
            "test_t7_a_teammates_message_cannot_look_like_the_humans",
        }
    ),
    "home/test_git_guard.py": frozenset(
        {
            "test_git_commit_commits_what_the_team_changed_and_runs_nothing",
        }
    ),
    "policies/test_breaker.py": frozenset(),
    "policies/test_budget.py": frozenset(),
    "policies/test_envelopes.py": frozenset(),
    "policies/test_permission.py": frozenset(),
    "providers/test_demo.py": frozenset(),
    "providers/test_failure.py": frozenset(),
    "providers/test_text.py": frozenset(),
    "providers/test_usage.py": frozenset(),
    "runtime/test_calls.py": frozenset(
        {
            "test_a_persons_message_never_stands_between_a_call_and_its_answer",
        }
    ),
    "runtime/test_command_line.py": frozenset(),
    "runtime/test_command_line_ends.py": frozenset(),
    "runtime/test_compaction.py": frozenset(),
    "runtime/test_edges.py": frozenset(),
    "runtime/test_effort.py": frozenset(
        {
            "test_a_changed_effort_counts_from_the_next_run_on",
        }
    ),
    "runtime/test_embedded.py": frozenset(),
    "runtime/test_labelled_programs.py": frozenset(),
    "runtime/test_learning.py": frozenset(
        {
            "test_a_model_that_replaces_everything_leaves_most_of_it",
            "test_the_review_is_shown_what_is_known_and_its_answer_is_applied",
            "test_what_a_worker_hired_for_one_task_learned_outlives_it",
        }
    ),
    "runtime/test_loop.py": frozenset(),
    "runtime/test_means.py": frozenset(),
    "runtime/test_persons_words.py": frozenset(
        {
            "test_words_that_the_person_did_not_say_are_unverified[]",
        }
    ),
    "runtime/test_plans.py": frozenset(),
    "runtime/test_program_mailbox.py": frozenset(),
    "runtime/test_reflection.py": frozenset(
        {
            "test_a_paused_team_reflects_after_it_resumes",
        }
    ),
    "runtime/test_reply.py": frozenset(
        {
            "test_an_empty_message_is_refused[]",
        }
    ),
    "runtime/test_reply_and_work.py": frozenset(
        {
            "test_a_search_finds_messages_steps_and_insights",
            "test_older_messages_stand_in_a_summary_that_survives_a_crash",
        }
    ),
    "runtime/test_spill.py": frozenset(),
    "runtime/test_text_only_replies.py": frozenset(),
    "runtime/test_time_limit.py": frozenset(),
    "runtime/test_unused_calls.py": frozenset(),
    "runtime/test_watchdog.py": frozenset(),
    "scenarios/test_beside_the_goal.py": frozenset(),
    "scenarios/test_conversation.py": frozenset(),
    "scenarios/test_growing_graph.py": frozenset(),
    "scenarios/test_human_in_the_loop.py": frozenset(),
    "scenarios/test_research.py": frozenset(),
    "scenarios/test_seed_1_smoke.py": frozenset(),
    "scenarios/test_seed_2_tools.py": frozenset(),
    "scenarios/test_seed_3_deep_research.py": frozenset(),
    "scenarios/test_seed_4_recursive.py": frozenset(),
    "scenarios/test_seed_5_human.py": frozenset(),
    "scenarios/test_seed_6_memory.py": frozenset(),
    "scenarios/test_seed_7_compaction.py": frozenset(),
    "scenarios/test_seed_8_autonomous.py": frozenset(),
    "scenarios/test_seed_9_infinite.py": frozenset(
        {
            "test_a_monitor_runs_in_cycles_for_a_month_and_stops",
        }
    ),
    "services/test_absence.py": frozenset(
        {
            "test_nothing_is_sent_to_a_person_who_is_away_and_all_of_it_when_they_are_back_early",
            "test_questions_of_a_team_go_to_its_channel_and_other_messages_to_all",
            "test_the_shorter_limit_of_asker_and_team_counts[3600.0-limits0-60]",
        }
    ),
    "services/test_asks.py": frozenset(
        {
            "test_a_call_that_an_older_version_parked_is_made_after_its_approval",
        }
    ),
    "services/test_briefings.py": frozenset(
        {
            "test_a_bad_rating_stops_briefings_of_the_same_score",
        }
    ),
    "services/test_client_turns.py": frozenset(
        {
            "test_reports_are_shown_once_and_in_the_chat_that_asked_for_the_work",
        }
    ),
    "services/test_daily_limit.py": frozenset(
        {
            "test_an_amount_is_allowed_as_it_is_written_and_reached_again",
            "test_work_parks_in_the_middle_and_one_request_says_who_spent_most",
        }
    ),
    "services/test_dependencies.py": frozenset(),
    "services/test_digest.py": frozenset(
        {
            "test_confirm_all_confirms_knowledge_and_triggers_and_opens_no_way_out",
        }
    ),
    "services/test_endings.py": frozenset(
        {
            "test_any_text_lets_a_node_end[by_an_exception]",
            "test_any_text_lets_a_node_end[of_a_briefing]",
            "test_any_text_lets_a_node_end[of_a_reply]",
            "test_unread_mail_for_a_retired_agent_of_a_full_team_does_not_block_the_end",
        }
    ),
    "services/test_extend.py": frozenset(
        {
            "test_a_refusal_names_the_ancestor_that_must_be_extended_first",
        }
    ),
    "services/test_grants.py": frozenset(
        {
            "test_a_host_with_a_star_includes_its_subdomains",
            "test_a_revoked_grant_allows_nothing_and_stays_in_the_list",
        }
    ),
    "services/test_inbox.py": frozenset(
        {
            "test_pages_show_every_item_once_in_order[1]",
        }
    ),
    "services/test_knowledge.py": frozenset(
        {
            "test_a_contradiction_remains_when_one_side_is_reworded",
            "test_maintenance_prunes_expired_insights_and_merges_duplicates",
            "test_memories_are_kept_merged_and_forgotten",
        }
    ),
    "services/test_limits.py": frozenset(),
    "services/test_messages.py": frozenset(
        {
            "test_a_late_answer_to_an_agent_that_has_left_goes_to_the_coordinator",
            "test_a_sender_is_told_whether_its_message_was_read",
        }
    ),
    "services/test_open_questions.py": frozenset(
        {
            "test_a_message_during_an_open_approval_is_delivered_and_approves_nothing[-deny]",
        }
    ),
    "services/test_pairing.py": frozenset(
        {
            "test_a_restored_backup_pairs_nobody",
            "test_an_unpaired_channel_hears_nobody",
            "test_one_process_reads_a_channel_until_it_has_been_silent_for_long",
        }
    ),
    "services/test_pairs.py": frozenset(),
    "services/test_partial.py": frozenset(),
    "services/test_recall.py": frozenset(
        {
            "test_insights_are_found_in_each_language[de]",
            "test_the_index_follows_what_is_learned_removed_and_restored",
        }
    ),
    "services/test_reconvening.py": frozenset(
        {
            "test_a_redone_task_goes_back_to_its_worker_in_its_thread",
            "test_what_did_not_succeed_cannot_be_accepted",
        }
    ),
    "services/test_research.py": frozenset(
        {
            "test_budget_enforcement_of_searches_and_pages",
        }
    ),
    "services/test_retries.py": frozenset(
        {
            "test_a_retry_is_granted_more_money",
            "test_a_retry_is_refused_when_the_parents_budget_is_used_up",
        }
    ),
    "services/test_reviews.py": frozenset(),
    "services/test_settings.py": frozenset(
        {
            "test_a_completed_team_that_becomes_infinite_works_in_cycles",
            "test_every_setting_is_changed_alone",
        }
    ),
    "services/test_side_work.py": frozenset(),
    "services/test_stage_clocks.py": frozenset(
        {
            "test_a_stage_that_times_out_names_its_unfinished_nodes",
        }
    ),
    "services/test_stages.py": frozenset(),
    "services/test_trigger_input.py": frozenset(
        {
            "test_equal_deliveries_at_the_same_time_fire_a_webhook_once",
        }
    ),
    "services/test_triggers.py": frozenset(
        {
            "test_a_trigger_can_be_paused_and_resumed_by_itself",
            "test_picks_up_team_lead_when_next_run_at_reached",
            "test_slots_missed_during_a_downtime_follow_the_misfire_policy[skip]",
        }
    ),
    "services/test_waits_and_ends.py": frozenset(
        {
            "test_a_result_that_was_fetched_is_not_told_again",
            "test_a_stage_that_runs_out_of_time_while_its_coordinator_thinks_is_told_once",
            "test_each_end_is_told_once_whatever_message_comes_in_between[stage-1]",
        }
    ),
    "services/test_wake_gate.py": frozenset(
        {
            "test_a_changed_watched_file_lets_a_heartbeat_fire",
            "test_a_trigger_whose_config_became_invalid_expires_without_affecting_others",
            "test_overdue_triggers_are_listed",
        }
    ),
    "tools/test_acceptance.py": frozenset(),
    "tools/test_bounds.py": frozenset(
        {
            "test_the_board_shows_open_nodes_and_the_last_completed_ones",
        }
    ),
    "tools/test_cancelling.py": frozenset(),
    "tools/test_communication.py": frozenset(),
    "tools/test_delegation.py": frozenset(),
    "tools/test_file_labels.py": frozenset(
        {
            "test_a_clean_thread_that_writes_a_file_whole_makes_it_clean_and_one_that_edits_does_not",
            "test_a_crash_never_leaves_strangers_words_without_a_label[PLAN.md-before]",
            "test_a_log_keeps_its_label_in_the_archive_and_in_searches",
            "test_a_person_confirms_a_labelled_file_and_can_take_it_back",
            "test_labels_of_files_and_notes_survive_a_dump_and_an_export",
        }
    ),
    "tools/test_files.py": frozenset(),
    "tools/test_knowledge.py": frozenset(
        {
            "test_a_large_memory_is_searched_by_section_also_after_changes_by_hand",
            "test_a_person_confirms_or_rejects_what_a_labelled_thread_noted",
            "test_list_insights_returns_agent_knowledge_and_filters_by_type",
        }
    ),
    "tools/test_labelled_hiring.py": frozenset(
        {
            "test_the_same_newcomer_is_hired_by_a_clean_thread[spawn_worker]",
        }
    ),
    "tools/test_labelled_scheduling.py": frozenset(),
    "tools/test_on_demand.py": frozenset(),
    "tools/test_outside.py": frozenset(),
    "tools/test_resuming.py": frozenset(
        {
            "test_a_wrong_or_unfinished_session_is_not_resumed",
        }
    ),
    "tools/test_scheduling.py": frozenset(),
    "tools/test_semantic_search.py": frozenset(),
    "tools/test_given_folders.py": frozenset(
        {"test_tools_read_and_change_a_given_folder_under_each_of_its_names"}
    ),
    "tools/test_shell.py": frozenset(),
    "tools/test_spawned.py": frozenset(
        {
            "test_a_promoted_agent_stays_on_the_team",
        }
    ),
    "tools/test_spawning.py": frozenset(),
    "tools/test_task_output.py": frozenset(),
    "tools/test_web.py": frozenset(),
    "tools/test_work.py": frozenset(),
}
"""Modules of tests, and their tests that run on both databases for the sake of a statement.

A name with values in brackets is one case of a test: its other cases execute the same statements.
"""


def left_out(item: pytest.Item) -> bool:
    """Return whether this is a test on PostgreSQL that `make test` leaves to `make both`."""
    chosen = getattr(getattr(item, "callspec", None), "params", {}).get("database_url")
    if chosen != "postgres":
        return False
    kept = SQLITE_SUFFICES.get(module_of(item.path))
    return kept is not None and kept.isdisjoint({_function(item), _case(item)})


def is_never_on_postgres(path: Path) -> bool:
    """Return whether `make test` runs no test of this module on PostgreSQL."""
    return SQLITE_SUFFICES.get(module_of(path)) == frozenset()


def _function(item: pytest.Item) -> str:
    return getattr(item, "originalname", item.name)


def _case(item: pytest.Item) -> str:
    """Return the name of the test and the values it runs with, without the database."""
    return item.name.replace("[postgres-", "[")


def module_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
