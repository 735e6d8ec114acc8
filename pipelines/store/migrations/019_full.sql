-- Answers may be written from whole sections.
alter table model_trial drop constraint model_trial_form_check,
    add constraint model_trial_form_check check (form in ('written', 'full', 'summary', 'quoted'));
