"""Operations on models: make, look at, save, take back, try beside another, delete."""

from typing import Annotated, Any

import msgspec

from onepass.service.web.bodies import from_text
from onepass.service.web.operations import Answer, Call
from onepass.service.wire import Id

__all__ = [
    "ModelName",
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

ModelName = Annotated[
    str,
    msgspec.Meta(
        pattern="^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$(?!\\n)",
        description="up to 64 letters, digits, '_', '.' and '-', the first a letter or digit",
    ),
]


async def list_models(call: Call) -> dict[str, Any]:
    """The state of all models, which are still being recovered, and why some can't be."""
    state = call.services.state
    return {
        "models": [model.status() for model in state.models()],
        "replaying": state.replaying,
        "broken": state.broken,
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
    return call.model.weights()


async def waiting(call: Call) -> dict[str, Any]:
    """Predictions without label, and labels without prediction."""
    return await call.model.waiting()


async def snapshot(call: Call) -> dict[str, Any]:
    """The model saved now."""
    return await call.model.snapshot()


async def rollback(call: Call) -> dict[str, Any]:
    """The model as it was at an earlier version."""
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
