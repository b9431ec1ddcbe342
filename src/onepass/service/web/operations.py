"""What an operation is: the words of the table from which both the routes and the OpenAPI document are made."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from msgspec import UNSET
from starlette.types import Scope

from onepass._limits import ScopeName
from onepass.service.web.audit import About
from onepass.service.web.bodies import JSON
from onepass.service.web.security import Headers, Principal

if TYPE_CHECKING:
    from onepass.service.host import HostedModel
    from onepass.service.operations import Operation as ModelOperation
    from onepass.service.web.services import Services

__all__ = ["Answer", "Call", "Form", "Handler", "Operation", "Parameter", "carried_out"]


class Call(NamedTuple):
    """A request that was let in, with its decoded body."""

    services: "Services"
    principal: Principal
    scope: Scope
    headers: Headers
    body: Any
    query: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name in the address."""
        name: str = self.scope["path_params"]["name"]
        return name

    def note(self, **about: Unpack[About]) -> None:
        """Say what this is about, for the audit log, besides the model or token of the address."""
        self.scope["onepass.about"] = {**self.scope.get("onepass.about", {}), **about}

    @property
    def model(self) -> "HostedModel":
        """The model that the address names."""
        return self.services.state.model(self.scope["path_params"]["name"])


class Answer(NamedTuple):
    """An answer that is more than the content of its form."""

    content: Any
    status: int
    headers: tuple[tuple[bytes, bytes], ...] = ()


Handler = Callable[[Call], Awaitable[Any]]


def carried_out(operation: "Callable[[Any], ModelOperation]") -> Handler:
    """The handler of requests whose body is all that an operation of a model needs."""

    async def handler(call: Call) -> Any:
        return await call.model.carry_out(operation(call.body))

    return handler


@dataclass(frozen=True)
class Parameter:
    """A parameter in the address after the question mark."""

    name: str
    kind: Any
    words: str


@dataclass(frozen=True)
class Form:
    """One form in which an operation can be asked, and answers.

    Parameters
    ----------
    handler : does it; returns content, or an `Answer`
    accepts : media type of the body; None: there is none
    takes : type of the body, of a line of JSON lines; None for Arrow and for bytes
    answers : media type of the answer
    gives : type of the answer, or of one of its lines; None for Arrow and for bytes
    query : parameters after the question mark
    example, example_answer : for the document
    forms_of_body : types that the document shows where ``takes`` is checked more closely later
    examples : further ones, by what they show
    """

    handler: Handler
    accepts: str | None = None
    takes: Any = None
    answers: str | None = JSON
    gives: Any = dict[str, Any]
    query: tuple[Parameter, ...] = ()
    example: Any = UNSET
    example_answer: Any = UNSET
    forms_of_body: tuple[Any, ...] = ()
    examples: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """A method at an address.

    Parameters
    ----------
    method, path : as Starlette has them
    name : of the operation in the document
    summary : one sentence
    scope : that a token needs; None: open to everybody
    forms : how it can be asked
    status : of an answer
    group : under which the document lists it
    problems : statuses of refusals besides those that the parts of the operation imply
    action : under which the audit log notes it
    description : what else to know
    """

    method: str
    path: str
    name: str
    summary: str
    scope: ScopeName | None
    forms: tuple[Form, ...]
    status: int = 200
    group: str = "models"
    problems: tuple[int, ...] = ()
    action: str | None = None
    description: str = ""

    @property
    def address(self) -> str:
        """The path as people write it."""
        return re.sub(r"\{(\w+):\w+\}", r"{\1}", self.path)

    @property
    def names_model(self) -> bool:
        """Whether the name in the address is that of a model."""
        return self.path.startswith("/v1/models/{name}")
