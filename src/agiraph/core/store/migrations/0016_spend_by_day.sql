-- Costs are summed for each day (UTC) too, for the daily limit; with cache writes and thoughts.
-- A new table, because SQLite cannot change a primary key.

create table spend_by_day (
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
    estimated integer not null,
    primary key (node_id, agent_id, purpose, model, day)
);
-- The day of an old row is the one on which its node ended or was last claimed.
-- only sqlite
insert into spend_by_day
    select s.node_id, s.agent_id, s.purpose, s.model,
        strftime('%Y-%m-%d', coalesce((select coalesce(n.ended_at, n.claimed_at, n.created_at)
            / 1000000 from nodes n where n.id = s.node_id), strftime('%s', 'now')), 'unixepoch'),
        s.team_id, s.calls, s.lost, s.input_tokens, s.output_tokens, s.cached_tokens, 0, 0,
        s.usd, s.unpriced, 0
    from spend s;
-- only postgres
insert into spend_by_day
    select s.node_id, s.agent_id, s.purpose, s.model,
        to_char(coalesce((select to_timestamp(coalesce(n.ended_at, n.claimed_at, n.created_at)
            / 1000000) from nodes n where n.id = s.node_id), now()) at time zone 'utc',
            'YYYY-MM-DD'),
        s.team_id, s.calls, s.lost, s.input_tokens, s.output_tokens, s.cached_tokens, 0, 0,
        s.usd, s.unpriced, 0
    from spend s;
-- both
drop table spend;
alter table spend_by_day rename to spend;
create index spend_of_team on spend (team_id);
create index spend_of_day on spend (day);

-- The days on which the daily limit was reached.
create table daily_limits (
    day text primary key,
    -- The dollars at which work stopped: the limit then, with what was allowed before.
    stopped_usd double precision,
    -- What a person has allowed on top of the limit, for this day.
    allowed_usd double precision not null,
    -- What an approval without an amount allows.
    offered_usd double precision not null,
    question_id text
);
