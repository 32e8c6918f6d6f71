-- With what a trigger ended and comes back, which the first words of its reason told before.
alter table triggers add column ended_with text;
update triggers set ended_with = case ended
  when 'the team was completed' then 'completed'
  when 'the team was stopped' then 'stopped'
  when 'the team was archived' then 'archived'
  when 'a person stopped the team''s goal' then 'goal' end
  where status = 'expired';

-- What is left of a message whose receiver is not paired any more: its address and its receipt,
-- which stood in the receipt behind a word before.
alter table deliveries add column revoked text;
update deliveries set revoked = substr(receipt, 9), receipt = null where receipt like 'revoked %';

-- The exit code of a command, and whether an answer only says that an earlier one still holds: the
-- first words of the answer told both before.
-- only sqlite
update turns set extra = json_set(coalesce(extra, '{{}}'), '$.exit_code',
    cast(substr(text, 12, 6) as integer))
  where role = 'tool' and text glob '[[]exit code [0-9-]*';
update turns set extra = json_set(coalesce(extra, '{{}}'), '$.repeated', json('true'))
  where role = 'tool' and text like 'Unchanged since you read it: the text stands above,%';
-- only postgres
update turns set extra = (coalesce(extra, '{{}}')::jsonb || jsonb_build_object('exit_code',
    substring(substr(text, 12, 6) from '^-?[0-9]+')::integer))::text
  where role = 'tool' and text ~ '^\[exit code -?[0-9]';
update turns set extra = (coalesce(extra, '{{}}')::jsonb || jsonb_build_object('repeated', true))::text
  where role = 'tool' and text like 'Unchanged since you read it: the text stands above,%';
-- both

-- The page whose links a reader reads; before, its task told it.
alter table nodes add column address text;
-- only sqlite
update nodes set address = substr(substr(task, instr(task, char(10, 10)) + 2), 1,
    instr(substr(task, instr(task, char(10, 10)) + 2), char(10, 10)) - 1)
  where kind = 'link_reader';
-- only postgres
update nodes set address = split_part(task, chr(10) || chr(10), 2) where kind = 'link_reader';
-- both
