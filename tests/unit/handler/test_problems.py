"""Problems: every error answer is problem+json that names the field and the remedy."""

import json
from http import HTTPStatus

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from handler.errors import LifetimeMissing
from handler.problems import Problem, answer_http_error, answer_problem, answer_unexpected
from tests.support.virtual import run_virtual


def request(method: str = "GET", path: str = "/x") -> Request:
    """Return a request."""
    return Request(
        {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [],
            "query_string": b"",
            "server": ("a", 80),
        }
    )


def test_a_problem_has_the_members_of_rfc_9457_and_ours() -> None:
    """Type, title, status and detail by the RFC; field and remedy are ours."""
    problem = Problem(
        422, "odd", "it is odd", field="payload", remedy="Make it even", headers={"X-Y": "z"}
    )
    answer = run_virtual(lambda: answer_problem(request(), problem))

    assert json.loads(bytes(answer.body)) == {
        "type": "urn:outlast:problem:odd",
        "title": HTTPStatus(422).phrase,
        "status": 422,
        "detail": "it is odd",
        "field": "payload",
        "remedy": "Make it even",
    }
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.status_code, answer.headers["x-y"]) == (422, "z")


def test_members_without_a_value_are_left_out() -> None:
    """A problem that blames no part of the request names none."""
    answer = run_virtual(lambda: answer_problem(request(), Problem(500, "k", "d")))

    assert json.loads(bytes(answer.body)).keys() == {"type", "title", "status", "detail"}


@pytest.mark.parametrize(
    ("error", "field", "said"),
    [
        (HTTPException(405, headers={"Allow": "POST"}), "method", "Use POST"),
        (HTTPException(404), "path", "POST /operations"),
    ],
)
def test_what_the_router_refuses_names_the_way_out(
    error: HTTPException, field: str, said: str
) -> None:
    """405 carries Allow, 404 the paths there are."""
    answer = run_virtual(lambda: answer_http_error(request("PUT", "/operations"), error))
    body = json.loads(bytes(answer.body))

    assert (error.status_code, field) == (answer.status_code, body["field"])
    assert said in body["remedy"]
    assert body["detail"].startswith("PUT /operations: ")
    assert (error.headers or {}).get("Allow") == answer.headers.get("allow")


def test_a_router_error_of_another_kind_claims_no_remedy() -> None:
    """What is not known is not said."""
    answer = run_virtual(lambda: answer_http_error(request(), HTTPException(400)))

    assert "remedy" not in json.loads(bytes(answer.body))


def test_a_defect_of_ours_says_what_is_not_known() -> None:
    """Whether the marker was written is not known; the key makes repeating safe."""
    answer = run_virtual(lambda: answer_unexpected(request(), RuntimeError("secret detail")))
    body = json.loads(bytes(answer.body))

    assert (answer.status_code, body["type"]) == (500, "urn:outlast:problem:internal-error")
    assert "secret detail" not in bytes(answer.body).decode()
    assert "same Idempotency-Key" in body["remedy"]


def test_a_missing_lifetime_is_named_in_the_answer() -> None:
    """Nothing was accepted, and the operator's way out stands in the answer."""
    answer = run_virtual(lambda: answer_unexpected(request(), LifetimeMissing()))
    body = json.loads(bytes(answer.body))

    assert (answer.status_code, body["type"]) == (500, "urn:outlast:problem:lifetime-missing")
    assert "outlast.lifetime" in body["detail"]
    assert "OUTLAST_LIFETIME=lenient" in body["remedy"]
