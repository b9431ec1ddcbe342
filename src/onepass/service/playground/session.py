"""One visit to the playground: messages in, messages out, and the models of the last request of every scene."""

import logging

from onepass.service.playground.messages import Answer, Failure, WrongMessageError, decode, encode
from onepass.service.playground.scenes import SCENES, Request, Scene

__all__ = ["Session"]

_log = logging.getLogger(__name__)


class Session:
    r"""Answers messages; knows nothing of the socket they come by.

    Examples
    --------
    >>> session = Session()
    >>> session.answer('{"scene": "curve", "id": 1, "points": [[0, 1]]}')[:57]
    '{"id":1,"view":{"says":"Point 1 at x = 0.00, y = 1.00: on'
    >>> session.answer('{"scene": "maze", "id": 2}')
    '{"id":2,"error":"Invalid value \'maze\' - at `$.scene`"}'
    """

    def __init__(self) -> None:
        self._scenes: dict[type[Request], Scene] = {}

    def answer(self, message: str | bytes) -> str:
        """Answer a message, whatever it is; a wrong one leaves the session as it was."""
        try:
            request = decode(message)
        except WrongMessageError as error:
            return encode(Failure(error.id, str(error)))
        kind = type(request)
        scene = self._scenes.setdefault(kind, SCENES[kind]())
        try:
            return encode(Answer(request.id, scene.view(request)))
        except ValueError as error:  # the library refuses it, as numbers that overflow
            problem = str(error)
        except Exception:
            _log.exception("the playground could not answer a request of the scene %r", kind.__struct_config__.tag)
            problem = "This could not be computed, because of a bug in the playground; its log says more."
        del self._scenes[kind]  # it may have learned a part
        return encode(Failure(request.id, problem))
