"""What the handlers of requests share: the models, who may do what, what is noted, and the metrics."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from onepass.service.web.audit import AuditLog
from onepass.service.web.prometheus import Metrics
from onepass.service.web.security import Security

if TYPE_CHECKING:
    from onepass.service.state import ServiceState

__all__ = ["Services"]


@dataclass(frozen=True)
class Services:
    """Everything that outlives a request."""

    state: "ServiceState"
    security: Security
    audit: AuditLog
    metrics: Metrics
    max_body: int
