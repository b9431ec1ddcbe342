"""The playground: a page on which one clicks points and watches a belief change, computed by the library itself.

The page sends all that one sees, its *request*: the scene, the points, the knobs. So a link reproduces everything, a
lost connection loses nothing, and of many requests in a row only the newest needs an answer. A session keeps the models
of the last request, and learns only the rows that are new in the next one.

`routes` are the page, its files and its socket, for any Starlette application; `application` is one that has nothing
else.
"""

from onepass.service.playground.web import application, routes

__all__ = ["application", "routes"]
