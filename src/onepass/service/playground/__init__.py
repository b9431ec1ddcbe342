"""The playground: a page on which you click points and watch a model learn, computed by the library itself.

The page sends everything that it shows as one *request*: the scene, the points, the knobs. So a link reproduces the
page, a lost connection loses nothing, and of several requests in a row only the newest needs an answer. A session keeps
the models of the last request, and learns only the rows that are new in the next one.

`routes` are the page, its files and its socket, for any Starlette application; `application` is one that has nothing
else.
"""

from onepass.service.playground.web import application, routes

__all__ = ["application", "routes"]
