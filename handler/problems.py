"""Problems: every error answer as RFC 9457 problem+json, naming the field and the remedy."""

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from handler.errors import LifetimeMissing

__all__ = ["Problem", "answer_http_error", "answer_problem", "answer_unexpected"]

_MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:outlast:problem:"
_PATHS = "Use POST /operations, GET /operations/{id} or GET /healthz"


class Problem(Exception):
    """An error with an answer: raised where it is found, answered at the edge.

    Attributes:
        status: The HTTP status.
        kind: The problem's name, the last part of its `type`.
        detail: What was wrong with this request.
        field: The part of the request at fault, if one is.
        remedy: What to do instead.
        headers: Further headers of the answer.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        field: str | None = None,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.field = field
        self.remedy = remedy
        self.headers = headers


async def answer_problem(_request: Request, error: Exception) -> Response:
    """Answer a problem raised by an endpoint."""
    assert isinstance(error, Problem)
    return _response(error)


async def answer_http_error(request: Request, error: Exception) -> Response:
    """Answer what the router refuses: no such path, no such method."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    field, remedy = None, None
    if allowed:
        field, remedy = "method", f"Use {allowed}"
    elif error.status_code == HTTPStatus.NOT_FOUND:
        field, remedy = "path", _PATHS
    detail = f"{request.method} {request.url.path}: {error.detail}"
    kind = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return _response(
        Problem(error.status_code, kind, detail, field=field, remedy=remedy, headers=error.headers)
    )


async def answer_unexpected(_request: Request, error: Exception) -> Response:
    """Answer a defect, ours or of the deployment; the server logs the error itself."""
    if isinstance(error, LifetimeMissing):
        return _response(
            Problem(500, "lifetime-missing", str(error), remedy=LifetimeMissing.remedy)
        )
    return _response(
        Problem(
            500,
            "internal-error",
            "the handler failed; whether the operation is owed is not known",
            remedy="Repeat the request with the same Idempotency-Key",
        )
    )


def _response(problem: Problem) -> Response:
    body: dict[str, object] = {
        "type": _TYPE + problem.kind,
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
    }
    if problem.field is not None:
        body["field"] = problem.field
    if problem.remedy is not None:
        body["remedy"] = problem.remedy
    return JSONResponse(
        body,
        status_code=problem.status,
        headers=dict(problem.headers or {}),
        media_type=_MEDIA_TYPE,
    )
