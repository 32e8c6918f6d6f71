-- What a timer is for and what it is about, which its id alone told before.
alter table timers add column kind text not null default 'wait';
alter table timers add column subject text not null default '';
update timers set kind = 'stage', subject = substr(id, 7) where id like 'stage:%';
update timers set kind = 'trigger', subject = substr(id, 9) where id like 'trigger:%';
update timers set kind = 'day', subject = substr(id, 5) where id like 'day:%';
update timers set kind = 'ask', subject = substr(id, 5) where id like 'ask:%';
update timers set kind = 'snooze', subject = substr(id, 8) where id like 'snooze:%';
update timers set kind = 'digest', subject = substr(id, 8) where id like 'digest:%';
update timers set kind = 'unowned', subject = substr(id, 9) where id like 'unowned:%';
update timers set subject = id where kind = 'wait';
create index timers_of on timers (subject);
