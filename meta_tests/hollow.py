"""A pytest plugin (`-p meta_tests.hollow`) that empties the suites: every test passes at once, without its fixtures.

What collects, reports and judges is untouched, so that verdicts can be tested in seconds. One test can be made to end
in another way: HOLLOW names it by a part of its id, HOLLOW_END says how.
"""

from __future__ import annotations

import os
import signal

import pytest

import harness.preflight

WHICH, HOW = "HOLLOW", "HOLLOW_END"


def _fail() -> None:
    pytest.fail("planted failure", pytrace=False)


def _skip() -> None:
    pytest.skip("planted skip")


def _not_applicable() -> None:
    from harness.plugin import not_applicable

    not_applicable("planted")


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _leave() -> None:
    os._exit(0)


def _interrupt() -> None:
    raise KeyboardInterrupt


ENDS = {
    "fail": _fail,
    "skip": _skip,
    "not applicable": _not_applicable,
    "kill": _kill,
    "leave": _leave,
    "interrupt": _interrupt,
}


# Loading the model takes most of the time before the first test.
harness.preflight.check = lambda settings: None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # The items of one function share the list.
        item._fixtureinfo.names_closure[:] = []
        item.fixturenames[:] = []
        item._request._fillfixtures = lambda: None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    if os.environ.get(WHICH, "\0") in pyfuncitem.nodeid:
        ENDS[os.environ[HOW]]()
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    if os.environ.get(HOW) == "break a hook" and os.environ[WHICH] in item.nodeid:
        raise RuntimeError("planted in a hook")
