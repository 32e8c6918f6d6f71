-- When a reviewer judges a team's results: auto, always or never.

alter table teams add column review text not null default 'auto';
