-- When a page was last fetched or read without a failure, and when its content last changed.
alter table page add column checked_at timestamptz, add column changed_at timestamptz;
update page p set checked_at = case when state in ('ok', 'duplicate') then fetched_at end,
    changed_at = (select started from run r where r.id = p.changed_run);
