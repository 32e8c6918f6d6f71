-- How much a model thinks: for a whole team, for one agent, for one piece of work. Null: as the
-- settings say, or else the vendor's default.

alter table teams add column effort text;
alter table agents add column effort text;
alter table nodes add column effort text;
