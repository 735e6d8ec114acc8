-- A run that a person ended, by Ctrl-C or SIGTERM, has not failed.
alter table run drop constraint run_state_check;
alter table run add constraint run_state_check
    check (state in ('running', 'done', 'failed', 'interrupted', 'abandoned'));
