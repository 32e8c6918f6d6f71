-- What a node does for a research job: it is the job, reads, looks for gaps, writes or checks.
alter table nodes add column research text;

-- Research jobs: one row for each node that is a job, with its plan and how far it is.
create table research_jobs (
    id text primary key,
    team_id text not null,
    question text not null,
    depth text,
    asks integer not null,
    continues text,
    standing text,
    searches integer,
    pages integer,
    brief text,
    phase text not null,
    round integer not null,
    rounds integer not null,
    readings text not null,
    heard integer not null,
    question_id text,
    part_id text,
    engine text not null,
    draft text not null,
    struck text not null,
    missing text not null,
    stopped text not null,
    created_at bigint not null
);
create index research_jobs_of_team on research_jobs (team_id, created_at);

-- The pages that a job has read, with their text: quotations are looked up in it.
create table research_pages (
    id text primary key,
    team_id text not null,
    job_id text not null,
    node_id text not null,
    url text not null,
    address text not null,
    page_hash text not null,
    title text not null,
    published text not null,
    text text not null,
    fetched_at bigint not null
);
create index research_pages_of_job on research_pages (job_id, address);

-- The ledger of a job: each claim with the words of a page that show it.
create table evidence (
    id text primary key,
    team_id text not null,
    job_id text not null,
    number integer not null,
    node_id text not null,
    call_id text not null,
    claim text not null,
    quote text not null,
    url text not null,
    page_hash text not null,
    place integer not null,
    title text not null,
    published text not null,
    fetched_at bigint not null,
    source_class text not null,
    question integer not null,
    stance text not null,
    label text,
    checked text not null,
    created_at bigint not null,
    unique (job_id, number),
    unique (node_id, call_id)
);
