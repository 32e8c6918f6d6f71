-- What a message is about, which the first words of its `ref` told before: now `ref` is an id alone.
-- A request about a call keeps the hash of the call's arguments in a column of its own.
alter table messages add column topic text;
alter table messages add column fingerprint text;
update messages set topic = 'late_answer', ref = substr(ref, 6) where ref like 'late:%';
update messages set topic = 'spending', ref = substr(ref, 6) where ref like 'burn:%';
update messages set topic = 'stage', ref = substr(ref, 7) where ref like 'stage:%';
update messages set topic = 'digest', ref = substr(ref, 8) where ref like 'digest:%';
update messages set topic = 'mention', ref = substr(ref, 9) where ref like 'said in %';
update messages set topic = substr(ref, 9), ref = null
  where ref in ('stopped:model', 'stopped:crash');
update messages set topic = 'taken_back', ref = null where ref = 'takes back';
update messages set topic = 'rerun', ref = substr(ref, length(node_id) + 8)
  where kind = 'approval' and ref like 'rerun:' || node_id || ':%';
update messages set fingerprint = substr(ref, 9), ref = null
  where ref like 'closed::%' and length(ref) = 40;
update messages set topic = 'call', fingerprint = substr(ref, length(ref) - 31),
    ref = nullif(substr(ref, length(node_id) + 2, length(ref) - length(node_id) - 34), '')
  where kind = 'approval' and topic is null and ref like node_id || ':%'
    and length(ref) >= length(node_id) + 34;
update messages set ref = null where topic is null;
create index messages_of_call on messages (fingerprint) where fingerprint is not null;

-- What kind of thing a wait is for, which the first word of its key told before. A new table,
-- because SQLite cannot change a primary key.
create table waits_of_kinds (
    kind text not null,
    subject text not null,
    node_id text not null references nodes (id),
    thread_id text not null references threads (id),
    call_id text not null,
    reason text not null,
    created_at bigint not null,
    primary key (kind, subject, thread_id, call_id)
);
insert into waits_of_kinds
    select 'day', substr(waiting_on, 10), node_id, thread_id, call_id, reason, created_at
    from waits where waiting_on like 'time:day:%';
-- only sqlite
insert into waits_of_kinds
    select substr(waiting_on, 1, instr(waiting_on, ':') - 1),
        substr(waiting_on, instr(waiting_on, ':') + 1),
        node_id, thread_id, call_id, reason, created_at
    from waits where waiting_on not like 'time:day:%';
-- only postgres
insert into waits_of_kinds
    select split_part(waiting_on, ':', 1), split_part(waiting_on, ':', 2),
        node_id, thread_id, call_id, reason, created_at
    from waits where waiting_on not like 'time:day:%';
-- both
drop table waits;
alter table waits_of_kinds rename to waits;
create index waits_of_node on waits (node_id);

-- How many slots a trigger has missed, which the reasons of its firings told before.
alter table triggers add column missed integer not null default 0;
update triggers set missed = (select coalesce(sum(f.count), 0) from firings f
  where f.trigger_id = triggers.id and f.outcome = 'skipped' and f.reason = 'misfire');

-- The token with which a person has stopped all work, whose id its name told before.
-- only sqlite
update about set value = json_set(value, '$.token_id', (select p.id from passes p
    where json_extract(about.value, '$.by') = p.name || ' (' || p.id || ')'))
  where name = 'work_stopped';
-- only postgres
update about set value = (value::jsonb || jsonb_build_object('token_id', (select p.id from passes p
    where about.value::jsonb->>'by' = p.name || ' (' || p.id || ')')))::text
  where name = 'work_stopped';
-- both

-- The label of a turn, of which one source was kept as a sentence before there were labels.
-- only sqlite
update turns set extra = json_remove(json_set(extra, '$.label',
    case substr(json_extract(extra, '$.tainted_by'), 1, 12) when 'the program '
      then json_array(substr('program:' || substr(json_extract(extra, '$.tainted_by'), 13), 1, 200))
      else json_array('unknown') end), '$.tainted_by')
  where extra like '%"tainted_by"%' and json_extract(extra, '$.tainted_by') <> '';
-- only postgres
-- `jsonb` refuses a NUL.
update turns set extra = (jsonb_set(old.kept, '{{label}}', jsonb_build_array(
    case substr(old.kept->>'tainted_by', 1, 12) when 'the program '
      then substr('program:' || substr(old.kept->>'tainted_by', 13), 1, 200)
      else 'unknown' end)) - 'tainted_by')::text
  from (select place, replace(extra, '\u0000', '\ufffd')::jsonb as kept from turns
    where extra like '%"tainted_by"%') old
  where turns.place = old.place and old.kept->>'tainted_by' <> '';
-- both
