-- What could not be confirmed of a result is a list of points. Before, it was one text, joined by
-- semicolons, and a report to a person told it in its own text: at the end, or once at the start.
create table told_doubts (
    node_id text primary key references nodes (id),
    words text not null,
    lead text not null,
    tail text not null
);
insert into told_doubts select id, doubts, 'Done, with doubts. Not confirmed: ' || doubts || '

', 'Not confirmed: ' || case when length(doubts) > 400 then substr(doubts, 1, 399) || '…'
    else doubts end
  from nodes where doubts is not null;
alter table messages add column doubts text not null default '[]';
update messages set doubts = 'start' where exists (select 1 from told_doubts t
  where t.node_id = messages.node_id and substr(messages.text, 1, length(t.lead)) = t.lead);
update messages set doubts = 'end' where exists (select 1 from told_doubts t
  where t.node_id = messages.node_id
    and substr(messages.text, length(messages.text) - length(t.tail) + 1) = t.tail);
update messages set text = substr(text, 1 + (select length(t.lead) from told_doubts t
    where t.node_id = messages.node_id)) where doubts = 'start';
update messages set text = rtrim(substr(text, 1, length(text) - (select length(t.tail)
    from told_doubts t where t.node_id = messages.node_id)), '
 ') where doubts = 'end';

-- That nobody gave acceptance lines is no doubt any more, and no text for people holds ids.
-- only sqlite
update nodes set doubts = replace(replace(doubts,
    'nobody said what must be true when the goal is reached' || char(59, 32), ''),
    char(59, 32) || 'nobody said what must be true when the goal is reached', '')
  where doubts like '%nobody said what must be true when the goal is reached%';
update nodes set doubts = (
    with recursive told(words) as (
      select nodes.doubts union all
      select substr(words, 1, instr(words, ' (node_') - 1)
          || substr(words, instr(words, ' (node_') + instr(substr(words, instr(words, ' (node_')), ')'))
        from told where instr(words, ' (node_') > 0
          and instr(substr(words, instr(words, ' (node_')), ')') > 0)
    select words from told order by length(words) limit 1)
  where instr(doubts, ' (node_') > 0;
-- only postgres
update nodes set doubts = replace(replace(doubts,
    'nobody said what must be true when the goal is reached' || chr(59) || ' ', ''),
    chr(59) || ' nobody said what must be true when the goal is reached', '')
  where doubts like '%nobody said what must be true when the goal is reached%';
update nodes set doubts = regexp_replace(doubts, ' \(node_[^)]*\)', '', 'g')
  where strpos(doubts, ' (node_') > 0;
-- both
update nodes set doubts = null
  where doubts = 'nobody said what must be true when the goal is reached';

-- only sqlite
update nodes set doubts = '[{{"kind":"earlier","words":' || replace(json_quote(doubts),
    char(59, 32), '","node_id":null,"title":""}},{{"kind":"earlier","words":"')
    || ',"node_id":null,"title":""}}]' where doubts is not null;
-- only postgres
update nodes set doubts = '[{{"kind":"earlier","words":' || replace(to_json(doubts)::text,
    chr(59) || ' ', '","node_id":null,"title":""}},{{"kind":"earlier","words":"')
    || ',"node_id":null,"title":""}}]' where doubts is not null;
-- both
update nodes set doubts = '[]' where doubts is null;

-- The events tell the same: the last end of a node its points, an earlier end its text as a point,
-- and a report its text without them.
-- only sqlite
update events set data = json_set(data, '$.doubts', json((select n.doubts from nodes n
    where n.id = json_extract(events.data, '$.node_id'))))
  where type in ('node.completed', 'node.partial', 'node.failed', 'node.cancelled')
    and json_extract(data, '$.doubts') = (select t.words from told_doubts t
      where t.node_id = json_extract(events.data, '$.node_id'));
update events set data = json_set(data, '$.doubts', json_array(json_object('kind', 'earlier',
    'words', json_extract(data, '$.doubts'), 'node_id', null, 'title', '')))
  where type in ('node.completed', 'node.partial', 'node.failed', 'node.cancelled')
    and json_type(data, '$.doubts') = 'text';
update events set data = json_set(data, '$.text', (select m.text from messages m
    where m.id = json_extract(events.data, '$.message_id')))
  where type = 'message.sent' and json_extract(data, '$.message_id') in
    (select id from messages where doubts in ('start', 'end'));
-- only postgres
-- `jsonb` refuses a NUL.
update events set data = jsonb_set(old.kept, '{{doubts}}', case
    when t.words = old.kept->>'doubts' then n.doubts::jsonb
    else jsonb_build_array(jsonb_build_object('kind', 'earlier', 'words', old.kept->>'doubts',
      'node_id', null, 'title', '')) end)::text
  from (select place, replace(data, '\u0000', '\ufffd')::jsonb as kept from events
      where type in ('node.completed', 'node.partial', 'node.failed', 'node.cancelled')
        and data like '%"doubts":"%') old
    join nodes n on n.id = old.kept->>'node_id'
    left join told_doubts t on t.node_id = n.id
  where events.place = old.place and jsonb_typeof(old.kept->'doubts') = 'string';
update events set data = jsonb_set(old.kept, '{{text}}', to_jsonb(m.text))::text
  from (select place, replace(data, '\u0000', '\ufffd')::jsonb as kept from events
      where type = 'message.sent') old
    join messages m on m.id = old.kept->>'message_id' and m.doubts in ('start', 'end')
  where events.place = old.place;
-- both
update messages set doubts = (select n.doubts from nodes n where n.id = messages.node_id)
  where doubts in ('start', 'end');
drop table told_doubts;
