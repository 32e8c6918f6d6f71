-- One table for each dataclass. Times are microseconds since 1970 in UTC, structures are JSON text,
-- booleans are 0 or 1: both databases store the same values.
-- Teams and threads have a number beside their id. Turns and events have one integer key, made of
-- that number and a sequence number, so that an append touches one page and no index. {bigint} is
-- "integer" on SQLite: only such a primary key is the rowid, in whose order the table is stored.

create table teams (
    number {serial} primary key,
    id text not null unique,
    name text not null,
    goal text not null,
    created_at bigint not null,
    mode text not null,
    status text not null,
    permissions text not null
);
create index teams_by_age on teams (created_at);

create table agents (
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
    retired_at bigint,
    unique (team_id, name)
);

create table stages (
    id text primary key,
    team_id text not null references teams (id),
    node_id text not null,
    name text not null,
    created_at bigint not null,
    contract text not null,
    status text not null,
    assessment text,
    ended_at bigint
);
create index stages_of_team on stages (team_id, created_at);

create table nodes (
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
);
create index nodes_of_team on nodes (team_id, id);
create index nodes_under on nodes (parent_id, id) where parent_id is not null;
create index nodes_of_stage on nodes (stage_id) where stage_id is not null;
create index nodes_queued on nodes (assignee_id, id) where status = 'assigned';
create index nodes_waiting on nodes (assignee_id, id) where status = 'waiting';
create index nodes_unowned on nodes (team_id, id) where status = 'pending';
-- An agent runs one node at a time, whichever process claims it.
create unique index nodes_running on nodes (assignee_id) where status = 'running';

create table dependencies (
    node_id text not null references nodes (id),
    needs_id text not null references nodes (id),
    primary key (node_id, needs_id)
);
create index dependents on dependencies (needs_id);

create table threads (
    number {serial} primary key,
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
);
create index threads_of_agent on threads (agent_id, created_at);
create index threads_of_node on threads (node_id, created_at);

-- place: the thread's number, times 2^32, plus the turn's place in the thread.
create table turns (
    place {bigint} primary key,
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

-- Parked calls and nodes, each with the key it waits on. Deleted when settled.
create table waits (
    waiting_on text not null,
    node_id text not null references nodes (id),
    thread_id text not null references threads (id),
    call_id text not null,
    reason text not null,
    created_at bigint not null,
    primary key (waiting_on, thread_id, call_id)
);
create index waits_of_node on waits (node_id);

create table timers (
    id text primary key,
    due_at bigint not null,
    created_at bigint not null
);
create index timers_due on timers (due_at);

create table messages (
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
);
create unique index messages_in_order on messages (team_id, recipient, seq);
create index messages_unseen on messages (recipient, seq) where seen_at is null;
create index messages_from on messages (sender, id);
create index messages_open on messages (team_id, id)
    where answered_at is null and kind in ('question', 'approval');
create unique index messages_once on messages (team_id, client_id) where client_id is not null;
create index messages_about on messages (ref) where ref is not null;

create table memories (
    id text primary key,
    team_id text not null references teams (id),
    agent_id text not null references agents (id),
    content text not null,
    created_at bigint not null,
    author text not null,
    status text not null,
    valid_until bigint,
    superseded_by text
);
create index memories_of_agent on memories (agent_id, status, created_at);

create table insights (
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
);
create index insights_of_agent on insights (agent_id, status, created_at);
create index insights_of_thread on insights (source_thread_id) where source_thread_id is not null;

create table triggers (
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
);
create index triggers_due on triggers (due_at) where status = 'active' and due_at is not null;
create index triggers_of_team on triggers (team_id, created_at);

-- Cost and tokens, summed by node, agent, purpose and model, so that no report reads the turns.
create table spend (
    node_id text not null,
    agent_id text not null,
    purpose text not null,
    model text not null,
    team_id text not null,
    calls integer not null,
    lost integer not null,
    input_tokens bigint not null,
    output_tokens bigint not null,
    cached_tokens bigint not null,
    usd double precision not null,
    unpriced integer not null,
    primary key (node_id, agent_id, purpose, model)
);
create index spend_of_team on spend (team_id);

-- place: the team's number, times 2^40, plus the event's place in the team.
create table events (
    place {bigint} primary key,
    type text not null,
    at bigint not null,
    data text not null
);
