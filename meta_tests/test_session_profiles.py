"""Named session profiles and configuration entries: what they set, and that onnxruntime's silence is made up for."""

from __future__ import annotations

import json

import pytest

from harness.contract.errors import ExitCode, InputError
from harness.runtime.session import KEYS, PROFILES, GraphSession, SessionProfile, config_entries, named_profile
from harness.runtime.threads import usable_threads
from meta_tests.commands import run

NAMES = tuple(json.loads(PROFILES.read_text(encoding="utf-8"))["profiles"])
SPINNING = "session.intra_op.allow_spinning"
# arena, memory pattern, threads, spinning as onnxruntime's session options have them
SET = {
    "server": (True, True, usable_threads(), "1"),
    "edge": (False, False, 1, "0"),
    "suites": (True, True, usable_threads(), "0"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_arrives_in_the_session(name, exported):
    session = GraphSession(exported("compact") / "encoder.onnx", "encoder", 2, named_profile(name))
    options = session._session.get_session_options()
    found = (
        options.enable_cpu_mem_arena,
        options.enable_mem_pattern,
        options.intra_op_num_threads,
        options.get_session_config_entry(SPINNING),
    )
    assert found == SET[name]


def test_every_profile_gives_the_same_text(exported):
    texts = set()
    for name in NAMES:
        done = run("-m", "harness", "translate", exported("compact"), "Do not open the valve.", "--profile", name)
        assert (done.code, done.stderr) == (ExitCode.GOOD, "")
        texts.add(done.stdout)
    assert len(texts) == 1


def test_an_entry_wins_over_the_profile_and_arrives(exported):
    profile = SessionProfile(entries=config_entries([f"{SPINNING}=0"]))
    session = GraphSession(exported("compact") / "encoder.onnx", "encoder", 2, profile)
    assert session._session.get_session_options().get_session_config_entry(SPINNING) == "0"
    done = run("-m", "harness", "translate", exported("compact"), "One.", "--session-config", f"{SPINNING}=0")
    assert (done.code, done.stderr) == (ExitCode.GOOD, "")


def test_onnxruntime_itself_takes_any_key(exported):
    """The reason for the list of keys; where this fails, the list is no longer needed."""
    profile = SessionProfile(entries=(("session.no_such_key", "1"),))
    GraphSession(exported("compact") / "encoder.onnx", "encoder", 2, profile)


# arguments -> words of the one line
BAD_INPUT = {
    "a profile that is none": (("--profile", "egde"), "no profile 'egde'. Choose one of server, edge, suites."),
    "a misspelt key": (
        ("--session-config", "session.intra_op.allow_spining=0"),
        f"The nearest that it has is {SPINNING}.",
    ),
    "a key without its area": (
        ("--session-config", "disable_prepacking=1"),
        "The nearest that it has is session.disable_prepacking.",
    ),
    "no value": (("--session-config", "session.disable_prepacking"), "session.disable_prepacking: no `=`"),
    "a value that the key does not take": (
        ("--session-config", "session.intra_op_thread_affinities=both"),
        "onnxruntime opens no session with session.intra_op_thread_affinities=both",
    ),
}


@pytest.mark.parametrize("case", BAD_INPUT)
def test_bad_input_is_one_line(case, exported):
    arguments, words = BAD_INPUT[case]
    done = run("-m", "harness", "translate", exported("compact"), "One.", *arguments)
    assert (done.code, done.stdout) == (ExitCode.USAGE, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_key_of_the_list_is_taken_and_its_neighbour_is_not():
    keys = json.loads(KEYS.read_text(encoding="utf-8"))["keys"]
    assert keys == sorted(set(keys))
    for key in keys:
        assert config_entries([f"{key}=1"]) == ((key, "1"),)
        with pytest.raises(InputError, match="no such key"):
            config_entries([f"{key}x=1"])
