"""Operations on models: make, look at, save, roll back, try as a candidate, delete."""

from typing import Any

from onepass.service.listing import page_of
from onepass.service.web.bodies import from_text
from onepass.service.web.operations import Answer, Call
from onepass.service.wire import Id, ModelName

__all__ = [
    "create",
    "delete",
    "drop_shadow",
    "file",
    "forget",
    "list_models",
    "metrics",
    "promote",
    "rollback",
    "set_shadow",
    "snapshot",
    "status",
    "waiting",
    "weights",
]


async def list_models(call: Call) -> dict[str, Any]:
    """The state of the models that are asked for, which are still being recovered, and why some can't be.

    Of all this only what the token is for.
    """
    state, sees = call.services.state, call.principal.sees
    models = [model for model in state.models() if sees(model.name)]
    page = page_of(models, **call.query)
    return {
        "models": page.models,
        "found": page.found,
        "all": len(models),
        "replaying": [name for name in state.replaying if sees(name)],
        "broken": {name: why for name, why in state.broken.items() if sees(name)},
    }


async def create(call: Call) -> Any:
    """A new model, described or uploaded."""
    model, is_new = await call.services.state.create(from_text(call.name, ModelName, "name"), call.body)
    return Answer(model.status(), 201 if is_new else 200)


async def status(call: Call) -> dict[str, Any]:
    """The state of a model."""
    return call.model.status()


async def delete(call: Call) -> None:
    """A model and its events, for good."""
    await call.services.state.delete(call.name)


async def file(call: Call) -> Any:
    """The model as it is now, as a file."""
    attached = f'attachment; filename="{call.name}.onepass"'.encode()
    return Answer(await call.model.file(), 200, ((b"content-disposition", attached),))


async def metrics(call: Call) -> dict[str, Any]:
    """How well the model predicted what it had not learned yet."""
    return call.model.metrics()


async def weights(call: Call) -> dict[str, Any]:
    """What each feature does."""
    return await call.model.weights()


async def waiting(call: Call) -> dict[str, Any]:
    """Predictions without label, and labels without prediction."""
    return await call.model.waiting()


async def snapshot(call: Call) -> dict[str, Any]:
    """The model saved now."""
    return await call.model.snapshot()


async def rollback(call: Call) -> dict[str, Any]:
    """The model as it was at an earlier version."""
    call.note(version=call.body.version)
    return await call.model.rollback(call.body)


async def set_shadow(call: Call) -> dict[str, Any]:
    """A candidate that learns the same stream."""
    return await call.model.set_shadow(call.body)


async def drop_shadow(call: Call) -> None:
    """No candidate any more."""
    await call.model.drop_shadow()


async def promote(call: Call) -> dict[str, Any]:
    """The candidate in the model's place."""
    return await call.model.promote()


async def forget(call: Call) -> dict[str, Any]:
    """What was kept of a prediction and its label, deleted."""
    identity = from_text(call.scope["path_params"]["id"], Id, "id")
    return {"id": identity, "forgotten": await call.model.forget(identity)}
