-- Folders of a person that a team may read, or read and change.
alter table teams add column folders text not null default '[]';

-- What agents changed in such folders, with hashes of the copies that are kept for undoing it.
create table folder_changes (
    id text primary key,
    team_id text not null,
    node_id text,
    folder text not null,
    path text not null,
    before text,
    after text,
    created_at bigint not null,
    undone_at bigint
);
create index folder_changes_by_team on folder_changes (team_id, id);
create index folder_changes_by_node on folder_changes (node_id);
