-- Trials of language models on collections. A copy of a collection has its original's trials: {original}.

-- name: model_trials
select collection, endpoint, model, form, scores, tried from model_trial order by collection, endpoint, model;

-- name: model_trial
select collection, endpoint, model, form, scores, tried from model_trial
where collection = {original} and endpoint = %(endpoint)s and model = %(model)s;

-- name: record_model_trial
insert into model_trial (collection, endpoint, model, form, scores)
values (%(collection)s, %(endpoint)s, %(model)s, %(form)s, %(scores)s)
on conflict (collection, endpoint, model) do update set
    form = excluded.form, scores = excluded.scores, tried = excluded.tried;
