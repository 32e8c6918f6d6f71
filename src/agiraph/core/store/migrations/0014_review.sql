-- When a reviewer judges a team's results: auto, always or never.

alter table teams add column review text not null default 'auto';

-- A coordinator judges each node of a stage, and decides what comes next.
alter table stages add column verdicts text not null default '{{}}';
alter table stages add column decision text;

-- A review is a node below the one whose result it judges.
alter table nodes add column reviews_call text;
