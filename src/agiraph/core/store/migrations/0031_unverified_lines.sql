-- How many lines of a labelled file nobody has confirmed; null: the label is on the whole file.
alter table file_labels add column unverified_lines integer;
