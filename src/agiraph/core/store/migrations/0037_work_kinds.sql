-- What kind of work a node is, and whether it is a step of the work above it.
alter table nodes add column kind text not null default 'task';
alter table nodes add column is_step integer not null default 0;
update nodes set kind = case
  when lane = 'reply' then 'reply'
  when lane = 'reflection' and task = 'Write the summary of the older part of your conversation with the person.'
    then 'conversation_summary'
  when lane = 'reflection' then 'reflection'
  when research = 'job' then 'research'
  when research is not null and is_public = 1 then research
  when research is not null then 'labelled_' || research
  when reviews_call is not null then 'review'
  when is_public = 1 and title = 'Read the links of a page' then 'link_reader'
  when is_public = 1 then 'public_task'
  else 'task' end;
-- only sqlite
update nodes set kind = 'single_answer' where kind = 'task' and parent_id is not null
  and coalesce(json_extract(budget, '$.given.turns'), json_extract(budget, '$.turns')) = 1;
-- only postgres
update nodes set kind = 'single_answer' where kind = 'task' and parent_id is not null
  and coalesce(budget::json->'given'->>'turns', budget::json->>'turns') in ('1', '1.0');
-- both
update nodes set is_step = 1 where kind = 'review' or research not in ('job');
alter table nodes drop column research;
alter table nodes drop column is_public;
