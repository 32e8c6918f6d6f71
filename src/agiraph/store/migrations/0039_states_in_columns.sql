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
