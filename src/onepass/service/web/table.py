"""Every operation of the service, once: its address, the scope that it needs, what it takes and returns.

Routes and the OpenAPI document are both made from this table, so they can't disagree. How to add
an operation is in docs/how-to/extend/operation.md.
"""

from dataclasses import replace
from typing import Annotated, Any

from msgspec import Meta

from onepass.service import description, listing, wire
from onepass.service.operations import ChangeArm, Decide, Expire
from onepass.service.web import access, models, probes, rows
from onepass.service.web.bodies import ARROW, BYTES, JSON, LINES
from onepass.service.web.operations import Form, Operation, Parameter, carried_out
from onepass.service.web.prometheus import CONTENT_TYPE

__all__ = ["OPERATIONS"]

_MODEL = "/v1/models/{name}"
_X = {"km": 48000, "age": 3, "brand": "vw"}
_PREDICTION = {"version": 7, "mean": 15900.0, "std": 830.0, "lower": 14270.0, "upper": 17530.0}
_LEARNED = {"id": "sale-1", "status": "learned", "version": 8, "n_seen": 8}
_STATUS = {"name": "price", "kind": "table", "n_seen": 8, "version": 8, "pending": 0, "waiting": 0}
_ROWS = [{"km": 48000, "age": 3, "brand": "vw", "price": 15900}, {"km": 9000, "age": 1, "brand": "bmw", "price": 31000}]
_DECLARED = {"rows": _ROWS, "target": "price", "learn": True}
_KM = {"name": "km", "mean": 60000, "std": 40000}
_BRAND = {"name": "brand", "kind": "category", "values": ["vw", "bmw"]}
_PRICE = {"name": "price", "mean": 20000, "std": 8000}
_DESCRIPTIONS = {
    "table from rows": _DECLARED,
    "table from columns": {"columns": [_KM, _BRAND], "target": _PRICE, "options": {"outliers": 0.02}},
    "classes": {"columns": [_KM, _BRAND], "target": {"name": "sold", "labels": ["no", "yes"]}},
    "fleet": {"columns": [_KM], "target": _PRICE, "options": {"by": "shop"}},
    "bandit": {"bandit": {"arms": ["red", "blue"], "n_features": 2}},
    "forecaster": {"forecaster": {"season_length": [24, 168], "inputs": ["holiday"]}},
    "many series": {"forecaster": {"season_length": 7, "by_key": True}},
}
_SPREAD = {"mean": 121.0, "std": 6.1, "intervals": [{"level": 0.95, "lower": 109.0, "upper": 133.0}]}
_FORECASTED = {"version": 8, "steps": [{"time": "2030-01-31T13:00:00Z", **_SPREAD}], "total": _SPREAD, "recent": []}

_TOKEN = {"name": "shop", "scope": "learn", "models": ["price"], "expires": "2030-04-30T12:00:00Z"}

_LEVEL = Parameter("level", wire.Level, "Probability of the intervals; 0.95 if not given.")
_BATCH_ID = Parameter("id", wire.Id, "Id of the batch: if it is sent again with the same id, it is not learned again.")
_LISTED = (
    Parameter("search", str, "Words that the name or kind of a model must contain."),
    Parameter(
        "only",
        listing.Only,
        "The state that models must be in: alarms (with outliers or changes), shadow (with a candidate), waiting (for "
        "labels or rewards), new (nothing learned yet), blocked (can't learn at present).",
    ),
    Parameter("sort", listing.Sort, "The order, by name if not given; a minus puts the largest first."),
    Parameter("offset", Annotated[int, Meta(ge=0)], "How many models to leave out at the beginning."),
    Parameter("limit", Annotated[int, Meta(ge=1, le=10_000)], "The most models to list; all if not given."),
)


def _json(handler: Any, takes: Any, gives: Any, example: Any, answer: Any) -> Form:
    return Form(handler, JSON, takes, JSON, gives, example=example, example_answer=answer)


def _lines(handler: Any, takes: Any, gives: Any, example: Any, answer: Any, *query: Parameter) -> Form:
    return Form(handler, LINES, takes, LINES, gives, query, [example], [answer])


def _described(handler: Any, answer: Any) -> Form:
    """A form that takes a description of a model."""
    forms = tuple(description.FORMS.values())
    return replace(
        _json(handler, wire.Declared, dict[str, Any], _DECLARED, answer), forms_of_body=forms, examples=_DESCRIPTIONS
    )


def _get(handler: Any, answer: Any) -> Form:
    return Form(handler, example_answer=answer)


def _nothing(handler: Any) -> Form:
    return Form(handler, answers=None, gives=None)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        f"{_MODEL}/predict",
        "predict",
        "Predict one row, or many.",
        "read",
        (
            _json(rows.predict, wire.PredictRequest, wire.Prediction, {"x": _X}, _PREDICTION),
            _lines(rows.predict_lines, wire.PredictRequest, wire.Prediction, {"x": _X}, _PREDICTION),
            Form(rows.predict_arrow, ARROW, None, ARROW, None, (_LEVEL,)),
        ),
        group="rows",
        description="A prediction with an id is stored until its label comes, and needs the scope learn; one without "
        "an id is not stored. JSON lines are answered line by line, each with a prediction or with a problem.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/learn",
        "learn",
        "Learn one row with its target, or many.",
        "learn",
        (
            _json(rows.learn, wire.LearnRequest, wire.Learned, {"id": "sale-1", "x": _X, "y": 15900}, _LEARNED),
            Form(
                rows.learn_lines,
                LINES,
                wire.LearnRequest,
                JSON,
                wire.Learned,
                (_BATCH_ID,),
                [{"x": _X, "y": 15900}],
                _LEARNED,
            ),
            Form(rows.learn_arrow, ARROW, None, JSON, wire.Learned, (_BATCH_ID,), example_answer=_LEARNED),
        ),
        group="rows",
        description="The answer comes when the event is on the disk. The rows of one request are one event: either all "
        "are learned or none. A row whose target is absurdly far from what was predicted is set aside: it counts as "
        "learned, but changes no prediction. The model's n_set_aside counts such rows, and its alarms list them.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/label",
        "label",
        "Give the target of an earlier prediction.",
        "learn",
        (
            _json(rows.label, wire.LabelRequest, wire.Learned, {"id": "sale-1", "y": 15900}, _LEARNED),
            _lines(rows.label_lines, wire.LabelRequest, wire.Learned, {"id": "sale-1", "y": 15900}, _LEARNED),
        ),
        group="rows",
        description="A label that comes before its prediction is stored until the prediction comes; the answer then "
        "has the status waiting.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/decide",
        "decide",
        "Let a bandit choose an arm in a context.",
        "learn",
        (
            _json(
                carried_out(Decide),
                wire.DecideRequest,
                wire.Decision,
                {"id": "visit-1", "context": [0.2, 1.0]},
                {"id": "visit-1", "arm": "red", "arms": ["red"], "propensity": 0.61, "version": 12},
            ),
        ),
        group="rows",
    ),
    Operation(
        "POST",
        f"{_MODEL}/arms",
        "arms",
        "Show what a bandit expects of each arm in a context.",
        "read",
        (
            _json(
                rows.arms,
                wire.ArmsRequest,
                dict[str, Any],
                {"context": [0.2, 1.0]},
                {"arms": [{"arm": "red", "mean": 0.4, "std": 0.1, "propensity": 0.61}], "version": 12},
            ),
        ),
        group="rows",
        problems=(404, 409, 429, 503),
        description="No decision is made, and nothing is stored.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/arm",
        "change_arm",
        "Add, remove, pause or resume an arm of a bandit.",
        "admin",
        (
            _json(
                carried_out(ChangeArm),
                wire.ArmRequest,
                dict[str, Any],
                {"arm": "blue", "change": "add"},
                {"arms": ["red", "blue"], "paused": [], "version": 13},
            ),
        ),
        group="rows",
        action="change arm",
        description="A paused arm is not chosen, but its rewards are learned; those of a removed one no longer are.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/expire",
        "expire",
        "Expect no more rewards for old decisions, and learn one for each of them.",
        "learn",
        (
            _json(
                carried_out(Expire),
                wire.ExpireRequest,
                dict[str, Any],
                {"after": 86400, "default": 0.0},
                {"expired": 3, "version": 14},
            ),
        ),
        group="rows",
        action="expire decisions",
        description="Without a default nothing is learned. The service does so with what is older than --keep-pending.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/reward",
        "reward",
        "Give the reward of a decision.",
        "learn",
        (_json(rows.reward, wire.RewardRequest, wire.Learned, {"id": "visit-1", "reward": 1.0}, _LEARNED),),
        group="rows",
    ),
    Operation(
        "POST",
        f"{_MODEL}/forecast",
        "forecast",
        "Forecast the next steps of a series.",
        "read",
        (
            _json(
                rows.forecast,
                wire.ForecastRequest,
                wire.Forecasted,
                {"horizon": 1, "levels": [0.95], "inputs": [{"holiday": 0}]},
                _FORECASTED,
            ),
        ),
        group="rows",
        problems=(404, 409, 429, 503),
        description='Values are learned as rows: {"x": {"time": "2030-01-31T12:00:00Z", "holiday": 0}, "y": 118}. '
        "They may come late or be corrected within the last steps, as many as the forecaster was made with.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/explain",
        "explain",
        "Explain a prediction: what each column adds to it.",
        "read",
        (
            _json(
                rows.explain,
                wire.ExplainRequest,
                wire.Explained,
                {"x": _X},
                {
                    "unit": "price",
                    "baseline": 21000.0,
                    "total": 15900.0,
                    "columns": [{"column": "km", "value": 48000, "add": -5100.0, "std": 310.0}],
                    "version": 7,
                },
            ),
        ),
        group="rows",
    ),
    Operation(
        "DELETE",
        f"{_MODEL}/predictions/{{id:path}}",
        "forget",
        "Delete what is stored of a prediction and its label.",
        "learn",
        (_get(models.forget, {"id": "sale-1", "forgotten": 1}),),
        group="rows",
        action="delete prediction",
        description="What the model has learned from it stays learned.",
    ),
    Operation(
        "GET",
        "/v1/models",
        "list_models",
        "List the models that the token is for: all of them, or those with some words, in some state, page by page.",
        "read",
        (
            replace(
                _get(models.list_models, {"models": [_STATUS], "found": 1, "all": 1, "replaying": [], "broken": {}}),
                query=_LISTED,
            ),
        ),
        description="found is the number of models that match, of which the answer may have some; all is the number of "
        "models.",
    ),
    Operation("GET", _MODEL, "status", "Show a model.", "read", (_get(models.status, _STATUS),)),
    Operation(
        "PUT",
        _MODEL,
        "create_model",
        "Make a model, described by JSON or uploaded as a file.",
        "admin",
        (
            _described(models.create, _STATUS),
            Form(models.create, BYTES, None, JSON, example_answer=_STATUS),
        ),
        status=201,
        action="create model",
        description="A description has one of four forms: some rows of a table, its columns, a bandit, or a "
        "forecaster. The status is 201 if the model was made, 200 if the same model existed before. The name has up to "
        "64 letters, digits, '_', '.' and '-'. An uploaded file is checked before it is used; loading it runs no code.",
    ),
    Operation(
        "DELETE",
        _MODEL,
        "delete_model",
        "Delete a model and all its events.",
        "admin",
        (_nothing(models.delete),),
        status=204,
        action="delete model",
    ),
    Operation(
        "GET",
        f"{_MODEL}/file",
        "file",
        "Get the model as a file that 'onepass.load' reads.",
        "admin",
        (Form(models.file, answers=BYTES, gives=None),),
        action="download model",
        description="The file contains everything that was learned, with the names of columns and categories. It tells "
        "more than predictions do, so this needs the scope admin.",
    ),
    Operation(
        "GET",
        f"{_MODEL}/metrics",
        "metrics",
        "Show how well labels were predicted before they were learned.",
        "read",
        (_get(models.metrics, {"rows": 8, "scores": {"rmse": 812.0, "coverage_95": 0.95}}),),
    ),
    Operation(
        "GET",
        f"{_MODEL}/weights",
        "weights",
        "Show the effect of each feature, with its uncertainty.",
        "read",
        (_get(models.weights, {"version": 8, "weights": {"price": [{"feature": "km", "mean": -0.6, "std": 0.1}]}}),),
    ),
    Operation(
        "GET",
        f"{_MODEL}/waiting",
        "waiting",
        "Show the oldest predictions that wait for a label, and labels that wait for a prediction.",
        "read",
        (_get(models.waiting, {"pending": [{"id": "sale-1", "since": 1893499200.0}], "waiting": []}),),
        problems=(404, 409, 429, 503),
        description="At most 100 of each. For a bandit: decisions that wait for a reward.",
    ),
    Operation(
        "POST",
        f"{_MODEL}/snapshot",
        "snapshot",
        "Save a snapshot now.",
        "admin",
        (_get(models.snapshot, {"version": 8}),),
        action="snapshot",
    ),
    Operation(
        "POST",
        f"{_MODEL}/rollback",
        "rollback",
        "Go back to an earlier version.",
        "admin",
        (_json(models.rollback, wire.RollbackRequest, dict[str, Any], {"version": 5}, {"version": 9, "to": 5}),),
        action="rollback",
    ),
    Operation(
        "PUT",
        f"{_MODEL}/shadow",
        "set_shadow",
        "Let a candidate model learn the same rows, to compare it with the model.",
        "admin",
        (
            _described(models.set_shadow, {"version": 9}),
            Form(models.set_shadow, BYTES, None, JSON, example_answer={"version": 9}),
        ),
        action="set shadow",
    ),
    Operation(
        "DELETE",
        f"{_MODEL}/shadow",
        "drop_shadow",
        "Delete the candidate.",
        "admin",
        (_nothing(models.drop_shadow),),
        status=204,
        action="drop shadow",
    ),
    Operation(
        "POST",
        f"{_MODEL}/promote",
        "promote",
        "Replace the model by the candidate.",
        "admin",
        (_get(models.promote, {"version": 10}),),
        action="promote",
    ),
    Operation(
        "GET",
        "/v1/tokens",
        "list_tokens",
        "List all tokens: what each may do, until when, and when it was last used.",
        "admin",
        (
            Form(
                access.list_tokens,
                gives=access.TokenList,
                example_answer={"tokens": [{**_TOKEN, "created": "2030-01-31T12:00:00Z", "last_used": None}]},
            ),
        ),
        group="access",
        problems=(409,),
    ),
    Operation(
        "POST",
        "/v1/tokens",
        "create_token",
        "Make a token; its secret is shown only in this answer.",
        "admin",
        (
            _json(
                access.create_token,
                access.TokenRequest,
                access.TokenMade,
                _TOKEN,
                {**_TOKEN, "token": "onepass_..."},
            ),
        ),
        status=201,
        group="access",
        problems=(409, 507),
        action="create token",
        description="A token may be for some models only: then requests about others are refused with 403, whether "
        "these exist or not, and no list or metric shows them. Such a token can't manage tokens.",
    ),
    Operation(
        "DELETE",
        "/v1/tokens/{name}",
        "revoke_token",
        "Revoke a token, but never the last one with the scope admin for all models.",
        "admin",
        (_nothing(access.revoke_token),),
        status=204,
        group="access",
        problems=(404, 409, 507),
        action="revoke token",
    ),
    Operation(
        "GET",
        "/v1/session",
        "who_asks",
        "Show whose token or session this is.",
        "read",
        (Form(access.who_asks, gives=access.Who, example_answer={"name": "page", "scope": "admin"}),),
        group="access",
    ),
    Operation(
        "POST",
        "/v1/session",
        "begin_session",
        "Begin a browser session, with the code in the link of the start or with a token.",
        None,
        (
            _json(
                access.begin_session,
                access.SessionRequest,
                access.Who,
                {"code": "..."},
                {"name": "page", "scope": "admin"},
            ),
        ),
        status=201,
        group="access",
        problems=(401, 403),
        description="The answer sets a cookie. Requests of a session that change something need the header "
        "'X-Onepass-Session: 1'.",
    ),
    Operation(
        "DELETE",
        "/v1/session",
        "end_session",
        "End the session.",
        "read",
        (_nothing(access.end_session),),
        status=204,
        group="access",
        action="end session",
    ),
    Operation(
        "GET",
        "/healthz",
        "health",
        "Say that the process is running.",
        None,
        (_get(probes.health, {"status": "ok"}),),
        group="operations",
    ),
    Operation(
        "GET",
        "/readyz",
        "ready",
        "Say whether all models are ready and can learn.",
        None,
        (_get(probes.ready, {"status": "ready"}),),
        group="operations",
        problems=(503,),
    ),
    Operation(
        "GET",
        "/metrics",
        "prometheus",
        "Show all metrics, for Prometheus.",
        "read",
        (Form(probes.prometheus, answers=CONTENT_TYPE, gives=None),),
        group="operations",
    ),
    Operation(
        "GET",
        "/openapi.json",
        "openapi",
        "Show this document.",
        None,
        (Form(probes.openapi),),
        group="operations",
    ),
)
