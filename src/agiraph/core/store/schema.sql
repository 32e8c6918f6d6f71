-- 49
CREATE TABLE teams (
    number integer primary key,
    id text not null unique,
    name text not null,
    goal text not null,
    created_at bigint not null,
    mode text not null,
    status text not null,
    permissions text not null
, limits text not null default '{}', learns integer not null default 1, briefing_threshold double precision not null default 0.6, quiet_hours text not null default '', quiet_zone text not null default 'UTC', soul text not null default '', owner_id text not null default 'human', review text not null default 'auto', effort text, trust text not null default 'standard', channel text not null default '', answer_within_s double precision, folders text not null default '[]', muted_until bigint);

CREATE INDEX teams_by_age on teams (created_at);

CREATE TABLE agents (
    id text primary key,
    team_id text not null references teams (id),
    name text not null,
    role text not null,
    model text not null,
    created_at bigint not null,
    kind text not null,
    command text,
    tools text not null,
    persistent integer not null,
    created_for text,
    parent_thread_id text,
    retired_at bigint, identity text not null default '', notes text not null default '', effort text, label text,
    unique (team_id, name)
);

CREATE TABLE stages (
    id text primary key,
    team_id text not null references teams (id),
    node_id text not null,
    name text not null,
    created_at bigint not null,
    contract text not null,
    status text not null,
    assessment text,
    ended_at bigint
, paused_since bigint, paused_seconds double precision not null default 0, verdicts text not null default '{}', decision text);

CREATE INDEX stages_of_team on stages (team_id, created_at);

CREATE TABLE nodes (
    id text primary key,
    team_id text not null references teams (id),
    task text not null,
    source text not null,
    created_at bigint not null,
    status text not null,
    title text not null,
    creator_id text not null,
    assignee_id text references agents (id),
    parent_id text references nodes (id),
    stage_id text references stages (id),
    trigger_id text,
    refs text not null,
    acceptance text not null,
    budget text not null,
    attempt integer not null,
    crashes integer not null,
    owner text,
    cancel_requested integer not null,
    waiting_reason text,
    stop_reason text,
    checkpoint text,
    result text,
    manifest text not null,
    started_at bigint,
    claimed_at bigint,
    worked_seconds double precision not null,
    ended_at bigint
, payer_id text references nodes (id), thread_id text, depth integer not null default 0, hops integer not null default 0, needs_tools text not null default '[]', if_unmet text not null default 'fail', doubts text, stalled_at bigint, lane text not null default 'work', label text, asked_of text, given_lines bigint not null default 0, reviews_call text, effort text, given_up text, line_kinds text not null default '{}', kind text not null default 'task', is_step integer not null default 0, address text, canceller_id text, cancel_asked_at bigint);

CREATE INDEX nodes_of_team on nodes (team_id, id);

CREATE INDEX nodes_under on nodes (parent_id, id) where parent_id is not null;

CREATE INDEX nodes_of_stage on nodes (stage_id) where stage_id is not null;

CREATE INDEX nodes_waiting on nodes (assignee_id, id) where status = 'waiting';

CREATE INDEX nodes_unowned on nodes (team_id, id) where status = 'pending';

CREATE TABLE dependencies (
    node_id text not null references nodes (id),
    needs_id text not null references nodes (id),
    primary key (node_id, needs_id)
);

CREATE INDEX dependents on dependencies (needs_id);

CREATE TABLE threads (
    number integer primary key,
    id text not null unique,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    created_at bigint not null,
    node_id text references nodes (id),
    kind text not null,
    parent_id text,
    epoch integer not null,
    claimed_seq integer not null,
    closed_at bigint
, harvested_at bigint, label text, reflection_id text, pruned_at bigint);

CREATE INDEX threads_of_agent on threads (agent_id, created_at);

CREATE INDEX threads_of_node on threads (node_id, created_at);

CREATE TABLE turns (
    place integer primary key,
    node_id text,
    role text not null,
    text text not null,
    at bigint not null,
    ref text,
    calls text,
    attachments text,
    extra text,
    model text,
    usage text
);

CREATE TABLE timers (
    id text primary key,
    due_at bigint not null,
    created_at bigint not null
, kind text not null default 'wait', subject text not null default '');

CREATE INDEX timers_due on timers (due_at);

CREATE TABLE messages (
    id text primary key,
    team_id text not null references teams (id),
    seq bigint not null,
    sender text not null,
    recipient text not null,
    text text not null,
    created_at bigint not null,
    kind text not null,
    title text not null,
    options text not null,
    node_id text,
    in_reply_to text,
    ref text,
    client_id text,
    hops integer not null,
    seen_at bigint,
    answered_at bigint,
    decision text
, reply_id text, attachments text not null default '[]', label text, rating text, call text, way_out text, consulted text not null default '[]', snoozed_until bigint, archived_at bigint, ends_waits text not null default 'none', summary text not null default '', acts text not null default '[]', heard_by text, closed_at bigint, topic text, fingerprint text, doubts text not null default '[]', edits text references messages (id), edited_by text);

CREATE UNIQUE INDEX messages_in_order on messages (team_id, recipient, seq);

CREATE INDEX messages_unseen on messages (recipient, seq) where seen_at is null;

CREATE INDEX messages_from on messages (sender, id);

CREATE INDEX messages_open on messages (team_id, id)
    where answered_at is null and kind in ('question', 'approval');

CREATE UNIQUE INDEX messages_once on messages (team_id, client_id) where client_id is not null;

CREATE INDEX messages_about on messages (ref) where ref is not null;

CREATE TABLE memories (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    content text not null,
    created_at bigint not null,
    author text not null,
    status text not null,
    valid_until bigint,
    superseded_by text
, sources text not null default '[]', contradicts text, label text);

CREATE INDEX memories_of_agent on memories (agent_id, status, created_at);

CREATE TABLE insights (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    type text not null,
    content text not null,
    created_at bigint not null,
    author text not null,
    confidence double precision,
    source_thread_id text,
    status text not null,
    valid_until bigint,
    superseded_by text
, sources text not null default '[]', contradicts text, label text, owner text not null default '', uses integer not null default 0, used_at bigint);

CREATE INDEX insights_of_agent on insights (agent_id, status, created_at);

CREATE INDEX insights_of_thread on insights (source_thread_id) where source_thread_id is not null;

CREATE TABLE triggers (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    type text not null,
    action text not null,
    created_at bigint not null,
    config text not null,
    payload text not null,
    zone text not null,
    misfire text not null,
    overlap text not null,
    status text not null,
    due_at bigint,
    fired_at bigint,
    fired integer not null,
    skipped integer not null
, made_by text not null default 'system', payer_id text references nodes (id), generation integer not null default 0, max_fires integer, until bigint, gated integer not null default 0, gate text, quiet integer not null default 0, rested_at bigint, cursor bigint not null default 0, watched text not null default '{}', secret text, promised_to text, label text, ended_at bigint, ended text, confirmed_at bigint, ended_with text, missed integer not null default 0);

CREATE INDEX triggers_due on triggers (due_at) where status = 'active' and due_at is not null;

CREATE INDEX triggers_of_team on triggers (team_id, created_at);

CREATE TABLE events (
    place integer primary key,
    type text not null,
    at bigint not null,
    data text not null
);

CREATE INDEX agents_of_team on agents (team_id, created_at);

CREATE INDEX stages_of_node on stages (node_id, created_at);

CREATE INDEX threads_under on threads (parent_id) where parent_id is not null;

CREATE INDEX nodes_at_work on nodes (claimed_at) where status = 'running';

CREATE INDEX messages_of_node on messages (node_id) where node_id is not null;

CREATE INDEX nodes_paid_by on nodes (payer_id) where payer_id is not null;

CREATE UNIQUE INDEX nodes_running on nodes (assignee_id, lane) where status = 'running';

CREATE INDEX nodes_queued on nodes (assignee_id, lane, id) where status = 'assigned';

CREATE INDEX messages_to_answer on messages (reply_id) where reply_id is not null;

CREATE INDEX threads_to_harvest on threads (agent_id, closed_at)
    where harvested_at is null and closed_at is not null;

CREATE INDEX triggers_of_agent on triggers (agent_id) where status = 'active';

CREATE INDEX triggers_hearing on triggers (team_id)
    where status = 'active' and type = 'on_event';

CREATE INDEX triggers_promised on triggers (agent_id, created_at) where promised_to is not null;

CREATE INDEX nodes_of_trigger on nodes (trigger_id, id) where trigger_id is not null;

CREATE INDEX nodes_ended on nodes (team_id, ended_at) where ended_at is not null;

CREATE TABLE firings (
    trigger_id text not null references triggers (id),
    slot text not null,
    at bigint not null,
    outcome text not null,
    reason text not null,
    node_id text,
    count integer not null,
    last_slot text,
    primary key (trigger_id, slot)
);

CREATE INDEX firings_of_trigger on firings (trigger_id, at);

CREATE INDEX firings_of_node on firings (node_id) where node_id is not null;

CREATE TABLE errands (
    id text primary key,
    trigger_id text not null references triggers (id),
    slot text not null,
    created_at bigint not null,
    taken_at bigint
);

CREATE TABLE "notes" (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    path text not null,
    content text not null,
    created_at bigint not null,
    author text not null,
    source_thread_id text,
    label text,
    status text not null
, used_at bigint, filed_at bigint);

CREATE TABLE knowledge_changes (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    verb text not null,
    author text not null,
    created_at bigint not null,
    touched text not null,
    undone_at bigint
);

CREATE INDEX knowledge_changes_of_agent on knowledge_changes (agent_id, id);

CREATE TABLE passages (
    id integer primary key,
    team_id text not null references teams (id),
    owner text not null,
    kind text not null,
    ref text not null,
    part integer not null,
    title text not null,
    text text not null,
    hash text not null,
    created_at bigint not null
, label text);

CREATE INDEX passages_of on passages (team_id, owner, kind, ref, part);

CREATE VIRTUAL TABLE passage_words using fts5 (title, text, tokenize = 'ascii');

CREATE INDEX threads_tainted on threads (team_id) where label is not null;

CREATE INDEX threads_looked_at on threads (reflection_id) where reflection_id is not null;

CREATE INDEX messages_in_inbox on messages (recipient, id)
    where kind in ('question', 'approval', 'briefing', 'report', 'failure', 'result');

CREATE INDEX messages_briefed on messages (team_id, id) where kind = 'briefing';

CREATE TABLE channels (
    name text primary key,
    kinds text not null
, person_id text not null default 'human', is_two_way integer not null default 0, address text, paired_at bigint, code_digest text, code_until bigint, code_tries integer not null default 0, cursor text not null default '', dropped bigint not null default 0, agent_id text, muted_until bigint, reader text, reader_until bigint);

CREATE TABLE deliveries (
    id text primary key,
    team_id text not null references teams (id),
    message_id text not null references messages (id),
    channel text not null,
    status text not null,
    created_at bigint not null,
    due_at bigint not null,
    tries integer not null,
    owner text,
    error text,
    sent_at bigint, receipt text, is_open integer not null default 0, may_decide integer not null default 0, revoked text,
    unique (message_id, channel)
);

CREATE INDEX deliveries_due on deliveries (channel, due_at) where status in ('queued', 'sending');

CREATE INDEX deliveries_failed on deliveries (id) where status = 'failed';

CREATE TABLE about (
    name text primary key,
    value text not null
);

CREATE TABLE passes (
    id text primary key,
    kind text not null,
    name text not null,
    digest text not null unique,
    scope text not null,
    created_at bigint not null,
    expires_at bigint,
    used_at bigint,
    revoked_at bigint
, person_id text not null default 'human', link_id text);

CREATE TABLE audit (
    id text primary key,
    at bigint not null,
    who text not null,
    method text not null,
    path text not null,
    status integer not null
, person_id text not null default 'human');

CREATE TABLE answered (
    who text not null,
    key text not null,
    request text not null,
    status integer not null,
    body text not null,
    at bigint not null,
    primary key (who, key)
);

CREATE INDEX answered_by_age on answered (at);

CREATE TABLE workers (
    id text primary key,
    lock_key integer not null,
    host text not null,
    pid integer not null,
    started_at bigint not null,
    beat_at bigint not null,
    failing text not null
);

CREATE TABLE persons (
    id text primary key,
    name text not null,
    role text not null,
    created_at bigint not null
, away_until bigint, zone text not null default '');

CREATE TABLE "spend" (
    node_id text not null,
    agent_id text not null,
    purpose text not null,
    model text not null,
    day text not null,
    team_id text not null,
    calls integer not null,
    lost integer not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    cached_tokens bigint not null,
    cache_write_tokens bigint not null,
    thinking_tokens bigint not null,
    usd double precision not null,
    unpriced integer not null,
    estimated integer not null, outermost_id text not null default '',
    primary key (node_id, agent_id, purpose, model, day)
);

CREATE INDEX spend_of_day on spend (day);

CREATE TABLE daily_limits (
    day text primary key,
    stopped_usd double precision,
    allowed_usd double precision not null,
    offered_usd double precision not null,
    question_id text
, deleted_usd double precision not null default 0);

CREATE TABLE grants (
    id text primary key,
    kind text not null,
    pattern text not null,
    person_id text not null,
    created_at bigint not null,
    team_id text,
    until bigint,
    uses_left integer,
    used integer not null default 0,
    used_at bigint,
    from_ask text,
    revoked_at bigint
, is_typed integer not null default 0);

CREATE INDEX grants_by_team on grants (team_id);

CREATE TABLE file_labels (
    id text primary key,
    team_id text not null,
    path text not null,
    hash text not null,
    label text,
    thread_id text,
    created_at bigint not null,
    confirmed_at bigint,
    confirmed_text text, unverified_lines integer,
    unique (team_id, path)
);

CREATE TABLE link_fetches (
    id text primary key,
    team_id text not null,
    thread_id text not null,
    site text not null,
    created_at bigint not null
);

CREATE INDEX link_fetches_by_site on link_fetches (team_id, site, created_at);

CREATE INDEX link_fetches_by_thread on link_fetches (thread_id);

CREATE INDEX memories_open on memories (team_id, status);

CREATE INDEX insights_of_owner on insights (team_id, owner, status, created_at);

CREATE INDEX notes_of_agent on notes (agent_id, status);

CREATE INDEX notes_open on notes (team_id, status);

CREATE TABLE conversation_summaries (
    id text primary key,
    team_id text not null,
    agent_id text not null,
    person_id text not null,
    text text not null,
    upto text not null,
    label text,
    node_id text,
    next_upto text not null,
    updated_at bigint not null
);

CREATE TABLE folder_changes (
    id text primary key,
    team_id text not null,
    node_id text,
    folder text not null,
    path text not null,
    before text,
    after text,
    created_at bigint not null,
    undone_at bigint
);

CREATE INDEX folder_changes_by_team on folder_changes (team_id, id);

CREATE INDEX folder_changes_by_node on folder_changes (node_id);

CREATE TABLE client_turns (
    id text primary key,
    digest text not null,
    conversation text not null,
    person_id text not null,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    message_id text not null references messages (id),
    created_at bigint not null,
    reports_after bigint not null,
    reports_upto bigint not null
);

CREATE INDEX client_turns_by_digest on client_turns (digest, id);

CREATE INDEX client_turns_by_conversation on client_turns (conversation, id);

CREATE INDEX client_turns_by_message on client_turns (message_id);

CREATE TABLE received (
    id text primary key,
    channel text not null,
    message_id text,
    received_at bigint not null
);

CREATE INDEX received_by_message on received (message_id) where message_id is not null;

CREATE INDEX deliveries_by_receipt on deliveries (channel, receipt) where receipt is not null;

CREATE INDEX deliveries_open on deliveries (channel, due_at) where is_open = 1;

CREATE TABLE research_jobs (
    id text primary key,
    team_id text not null,
    question text not null,
    depth text,
    asks integer not null,
    continues text,
    standing text,
    searches integer,
    pages integer,
    brief text,
    phase text not null,
    round integer not null,
    rounds integer not null,
    readings text not null,
    heard integer not null,
    question_id text,
    part_id text,
    engine text not null,
    draft text not null,
    struck text not null,
    missing text not null,
    stopped text not null,
    created_at bigint not null
);

CREATE INDEX research_jobs_of_team on research_jobs (team_id, created_at);

CREATE TABLE research_pages (
    id text primary key,
    team_id text not null,
    job_id text not null,
    node_id text not null,
    url text not null,
    address text not null,
    page_hash text not null,
    title text not null,
    published text not null,
    text text not null,
    fetched_at bigint not null
);

CREATE INDEX research_pages_of_job on research_pages (job_id, address);

CREATE TABLE evidence (
    id text primary key,
    team_id text not null,
    job_id text not null,
    number integer not null,
    node_id text not null,
    call_id text not null,
    claim text not null,
    quote text not null,
    url text not null,
    page_hash text not null,
    place integer not null,
    title text not null,
    published text not null,
    fetched_at bigint not null,
    source_class text not null,
    question integer not null,
    stance text not null,
    label text,
    checked text not null,
    created_at bigint not null,
    unique (job_id, number),
    unique (node_id, call_id)
);

CREATE TABLE deletions (
    team_id text primary key,
    name text not null,
    person_id text not null,
    created_at bigint not null
);

CREATE TABLE attached_files (
    message_id text not null references messages (id),
    place integer not null,
    team_id text not null references teams (id),
    first_id text not null,
    name text not null,
    size bigint not null,
    primary key (message_id, place)
);

CREATE INDEX attached_files_of_team on attached_files (team_id, message_id);

CREATE INDEX threads_to_prune on threads (closed_at) where pruned_at is null;

CREATE INDEX timers_of on timers (subject);

CREATE INDEX messages_of_call on messages (fingerprint) where fingerprint is not null;

CREATE TABLE "waits" (
    kind text not null,
    subject text not null,
    node_id text not null references nodes (id),
    thread_id text not null references threads (id),
    call_id text not null,
    reason text not null,
    created_at bigint not null,
    primary key (kind, subject, thread_id, call_id)
);

CREATE INDEX waits_of_node on waits (node_id);

CREATE INDEX nodes_open on nodes (assignee_id, lane, status);

CREATE INDEX knowledge_changes_of_team on knowledge_changes (team_id, verb, id);

CREATE INDEX nodes_goals on nodes (team_id, id) where source = 'system' and parent_id is null;

CREATE UNIQUE INDEX messages_edits on messages (edits) where edits is not null;

CREATE TABLE shares (
    id text primary key,
    team_id text not null,
    node_id text not null,
    digest text not null unique,
    report_hash text not null,
    person_id text not null,
    created_at bigint not null,
    expires_at bigint not null,
    revoked_at bigint,
    opened_at bigint,
    opens integer not null
);

CREATE INDEX shares_of_node on shares (node_id, created_at);

CREATE INDEX passes_of_link on passes (link_id) where link_id is not null;

CREATE INDEX spend_outermost on spend (outermost_id);

CREATE INDEX spend_of_team on spend (team_id, agent_id, purpose, model, outermost_id);

INSERT INTO persons (id, name, role, created_at)
    VALUES ('human', 'human', 'owner', cast(strftime('%s', 'now') as integer) * 1000000);
