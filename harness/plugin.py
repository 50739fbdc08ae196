"""pytest hooks: options to one frozen ``Settings``, header, ledger, closing table, verdict, exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.contract.errors import ExitCode, InputError
from harness.contract.finding import RunVerdict
from harness.contract.layouts import LAYOUTS
from harness.report.ledger import BLOCKED, FAILED, NOT_APPLICABLE, NOT_COVERED, PASSED, SKIPPED, Entry, Ledger
from harness.report.terminal import closing_table, first_causes, precision_lines
from harness.settings import DEFAULT_EXAMPLES, EMBEDDED_MODEL, ROOT, Settings, torch_is_here

SETTINGS = pytest.StashKey[Settings]()
LEDGER = pytest.StashKey[Ledger]()
COLLECTED = pytest.StashKey[set]()
CLOSED = pytest.StashKey[bool]()
SUITES = ROOT / "suites"
UPGRADE = "upgrade"
# Property of a test: a line that a RELEASE ends with.
OFFER = "offer"
# pytest's own options that leave tests out.
_FILTERS = ("keyword", "markexpr", "deselect", "lf", "failedfirst", "ignore", "ignore_glob", "stepwise")
# What a test's entry says until its body has run: set up alone (--setup-only) proves nothing.
_NOT_CALLED = "it did not run to its end"


def pytest_addoption(parser: pytest.Parser) -> None:
    model = parser.getgroup("what is tested", "translation model")
    model.addoption(
        "--model",
        default=EMBEDDED_MODEL,
        metavar="MODEL",
        help="model folder in Hugging Face form, or a hub id (default: the embedded tiny-marian-en-zh)",
    )
    model.addoption(
        "--scale",
        metavar="NAME",
        help="in place of --model, seeded random weights of a real model's size: a recipe of fixtures/scale, "
        "e.g. opus-mt-en-zh",
    )
    model.addoption(
        "--artifacts",
        metavar="DIR",
        help="test this artifact set, made here or elsewhere (Optimum, hand-written), in place of exporting the model",
    )
    model.addoption(
        "--layout", metavar="NAMES", help=f"comma-separated layouts to export and test (default: {','.join(LAYOUTS)})"
    )
    model.addoption(
        "--exporter",
        metavar="NAMES",
        help="comma-separated exporters: torchscript, dynamo (default: all that this torch has)",
    )
    model.addoption(
        "--precision",
        metavar="NAMES",
        help="comma-separated precisions to test: fp32 and names of quantization recipes, e.g. fp32,int8-dynamic "
        "(default: fp32; with --recipes, fp32 and all of the file)",
    )
    model.addoption(
        "--recipes",
        metavar="FILE",
        help="quantization recipes of your own, in the form of exporters/recipes.json, in place of those",
    )
    model.addoption(
        "--calibration",
        metavar="FILE",
        help="sentences that static recipes calibrate with (default: fixtures/calibration/calibration.jsonl)",
    )
    against = parser.getgroup("what it is held against", "translation model")
    against.addoption(
        "--sentences",
        metavar="FILE",
        help="sentences to decode: text, one a line, or .jsonl with id, source, tags "
        "(default: fixtures/sentences/core.jsonl)",
    )
    against.addoption(
        "--baseline",
        metavar="FILE",
        help="compare with what `python -m harness baseline` stored, from before an upgrade or from another team",
    )
    against.addoption(
        "--golden",
        metavar="DIR",
        help="golden translations: their folder, or one with a folder per model in it (default: golden/)",
    )
    against.addoption(
        "--golden-propose",
        action="store_true",
        help="write what the model says as proposal.json beside the golden, for `python -m harness review`",
    )
    run = parser.getgroup("how it is run", "translation model")
    run.addoption(
        "--providers",
        default="CPUExecutionProvider",
        metavar="NAMES",
        help="comma-separated onnxruntime execution providers (default: CPUExecutionProvider)",
    )
    run.addoption(
        "--max-examples",
        type=int,
        default=DEFAULT_EXAMPLES,
        metavar="N",
        help=f"Hypothesis examples per property and layout (default: {DEFAULT_EXAMPLES})",
    )
    run.addoption(
        "--nightly",
        action="store_true",
        help="draw examples at random and keep a database of failing ones, instead of the same examples every time",
    )
    run.addoption(
        "--artifact-cache", metavar="DIR", help="where exported sets are kept between runs (default: .artifact-cache)"
    )
    run.addoption("--report", metavar="DIR", help="where <stack>/results.json and junit.xml go (default: reports)")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    try:
        settings = Settings.from_options(config.option, config.rootpath)
    except InputError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[SETTINGS] = settings
    config.stash[LEDGER] = Ledger(context={})
    config.stash[COLLECTED] = set()
    if not _runs_suites(config):
        return
    if not _is_controller(config):
        return  # what a worker is given, the controller has looked at
    try:
        _check_input(settings)
        _prepare_report(config, settings)
    except InputError as error:
        raise pytest.UsageError(str(error)) from None


def _is_controller(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput")


def _runs_suites(config: pytest.Config) -> bool:
    """Whether any of the run's arguments lies in ``suites/`` or above it."""
    for argument in config.args:
        path = (config.invocation_params.dir / argument.split("::")[0]).resolve()
        if path == SUITES or SUITES in path.parents or path in SUITES.parents:
            return True
    return False


def _check_input(settings: Settings) -> None:
    """Refuse everything that cannot be tested before the first test starts."""
    from harness.contract.sentences import read_sentences
    from harness.runtime.session import check_providers

    check_providers(settings.providers)
    if not torch_is_here():
        from harness.recording import find_recordings

        find_recordings(settings.recordings)
        return
    from harness import preflight

    read_sentences(settings.sentences)
    preflight.check(settings)


def _prepare_report(config: pytest.Config, settings: Settings) -> None:
    from harness.report.context import run_context

    ledger = config.stash[LEDGER]
    ledger.context.update(run_context(settings))
    folder = settings.report / ledger.context["stack"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            what=f"cannot be written ({error.strerror})",
            where=folder,
            action="Name a folder you may write to with --report.",
        ) from None
    if not config.option.xmlpath:
        config.option.xmlpath = str(folder / "junit.xml")
    for reason in _filters(config):
        ledger.add_gap(reason)


def _filters(config: pytest.Config) -> list[str]:
    used = [f"filtered by {name}" for name in _FILTERS if getattr(config.option, name, None)]
    if any("::" in argument for argument in config.args):
        used.append("single tests were named")
    return used


def pytest_report_header(config: pytest.Config) -> list[str]:
    context = config.stash[LEDGER].context
    if not context:
        return []
    return [f"{key}: {value}" for key, value in context["header"].items()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "subject" in metafunc.fixturenames:
        subjects = metafunc.config.stash[SETTINGS].subjects
        metafunc.parametrize("subject", subjects, ids=[subject.id for subject in subjects], scope="session")


@pytest.fixture(scope="session")
def settings(pytestconfig: pytest.Config) -> Settings:
    """The run's options."""
    return pytestconfig.stash[SETTINGS]


class Judge:
    """Keeps a test's findings for the ledger and fails the test on a bad one.

    Args:
        item: the running test.
    """

    def __init__(self, item: pytest.Item) -> None:
        self._item = item

    def __call__(self, *findings) -> None:
        """Record findings, then assert that none fails."""
        __tracebackhide__ = True
        from harness.contract.finding import with_count

        judged = [with_count(finding) for finding in findings]
        if not judged:
            raise ValueError("a check must return at least one finding")
        for finding in judged:
            self._item.user_properties.append(("finding", finding.to_json()))
        failed = [finding.text() for finding in judged if finding.failed]
        if failed:
            pytest.fail("\n".join(failed), pytrace=False)


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    """Record findings and assert on them."""
    return Judge(request.node)


def not_applicable(reason: str) -> None:
    """End a test whose question does not arise for its subject."""
    __tracebackhide__ = True
    pytest.skip(NOT_APPLICABLE + reason)


def not_covered(what: str) -> None:
    """End a test that has nothing to hold the model against; the verdict says that it does not cover this."""
    __tracebackhide__ = True
    pytest.skip(NOT_APPLICABLE + NOT_COVERED + what)


def blocked(reason: str) -> None:
    """End a test that cannot be run because another check has failed already: no cascade of the same failure."""
    __tracebackhide__ = True
    pytest.skip(BLOCKED + reason)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item):
    outcome = yield
    report = outcome.get_result()
    callspec = getattr(item, "callspec", None)
    subject = callspec.params.get("subject") if callspec else None
    report.subject = subject.id if subject else ""
    report.precision = subject.precision if subject else ""


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[COLLECTED].update(item.nodeid for item in session.items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node, ids) -> None:
    node.config.stash[COLLECTED].update(ids)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error) -> None:
    if error:
        node.config.stash[LEDGER].add_gap("a worker was lost")


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Recorder(session.config), "conformance-recorder")


class _Recorder:
    """Turns test reports into ledger entries, on the process that sees them all."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.ledger = config.stash[LEDGER]
        self.broken = False

    def pytest_internalerror(self) -> None:
        """Remember it: pytest-xdist reports a worker's internal error and lets the run end as any other."""
        self.broken = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.nodeid.startswith("suites/"):
            return
        if report.when not in ("setup", "call", "teardown"):
            self.ledger.add_gap(f"a worker was lost in {report.nodeid}")
            return
        entry = self.ledger.entries.setdefault(
            report.nodeid,
            Entry(
                report.nodeid,
                SKIPPED,
                0.0,
                getattr(report, "subject", ""),
                _NOT_CALLED,
                precision=getattr(report, "precision", ""),
            ),
        )
        entry.seconds += report.duration
        if report.failed:
            entry.outcome, entry.message = FAILED, _message(report)
        elif report.skipped and entry.outcome != FAILED:
            entry.outcome, entry.message = SKIPPED, _skip_reason(report)
        elif report.when == "call" and entry.outcome != FAILED:
            entry.outcome, entry.message = PASSED, ""
        if report.when == "call" or report.failed:
            entry.findings = [value for key, value in report.user_properties if key == "finding"]
            for line in (value for key, value in report.user_properties if key == OFFER):
                self.ledger.add_offer(line)

    def close(self, session: pytest.Session, exitstatus: int) -> RunVerdict:
        collected = {nodeid for nodeid in self.config.stash[COLLECTED] if nodeid.startswith("suites/")}
        if missed := len(collected - set(self.ledger.entries)):
            self.ledger.add_gap(f"{missed} of {len(collected)} tests did not run")
        if unvisited := _unvisited(collected):
            others = f" and {len(unvisited) - 2} more" if len(unvisited) > 2 else ""
            self.ledger.add_gap(f"suite files were not run: {', '.join(unvisited[:2])}{others}")
        if exitstatus == pytest.ExitCode.INTERRUPTED:
            self.ledger.add_gap("the run was interrupted")
        return self.ledger.verdict()[0]


def _message(report: pytest.TestReport) -> str:
    lines = str(report.longreprtext or "").strip().splitlines()
    return lines[0][:300] if lines else ""


def _skip_reason(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def _unvisited(collected: set[str]) -> list[str]:
    """Suite files on disk of which no test was collected."""
    wanted = SUITES if torch_is_here() else SUITES / UPGRADE
    visited = {nodeid.split("::")[0] for nodeid in collected}
    files = (path.relative_to(ROOT).as_posix() for path in sorted(wanted.rglob("test_*.py")))
    return [path for path in files if path not in visited]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """A runtime-only stack has one question: may the runtime be upgraded?"""
    inside = SUITES in collection_path.parents
    if inside and not torch_is_here() and (SUITES / UPGRADE) not in (collection_path, *collection_path.parents):
        return True
    return None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    recorder = config.pluginmanager.get_plugin("conformance-recorder")
    if exitstatus == pytest.ExitCode.INTERNAL_ERROR or (recorder and recorder.broken):
        session.exitstatus = ExitCode.INTERNAL
        return
    if not _is_controller(config) or exitstatus == pytest.ExitCode.USAGE_ERROR or not config.stash[LEDGER].context:
        return
    if config.option.collectonly:
        return
    verdict = recorder.close(session, exitstatus)
    ledger = config.stash[LEDGER]
    ledger.write(_results_path(config))
    config.stash[CLOSED] = True
    other_failures = exitstatus == pytest.ExitCode.TESTS_FAILED and verdict is RunVerdict.RELEASE
    session.exitstatus = ExitCode.HOLD if other_failures else verdict.exit_code


def _results_path(config: pytest.Config) -> Path:
    return config.stash[SETTINGS].report / config.stash[LEDGER].context["stack"] / "results.json"


def pytest_unconfigure(config: pytest.Config) -> None:
    """Print the verdict as the run's last lines, after pytest's own summary."""
    ledger = config.stash.get(LEDGER, None)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if ledger and ledger.context and CLOSED in config.stash and reporter:
        _print_verdict(config, ledger, reporter)


def _print_verdict(config: pytest.Config, ledger: Ledger, reporter) -> None:
    write = reporter.write_line
    reporter.write_sep("=", "verdict")
    if ledger.entries:
        write(closing_table(ledger, reporter._tw.fullwidth))
    for line in first_causes(ledger):
        write(f"cause: {line}")
    write(f"report: {_results_path(config)}")
    verdict, reasons = ledger.verdict()
    colour = {RunVerdict.RELEASE: "green", RunVerdict.HOLD: "red", RunVerdict.INCOMPLETE: "yellow"}[verdict]
    for line in reasons[1:6]:
        write(f"also: {line}")
    for line in ledger.uncovered:
        write(f"not covered: {line}")
    for line in ledger.offers if verdict is RunVerdict.RELEASE else ():
        write(f"offer: {line}")
    for line in precision_lines(ledger):
        write(line)
    scope = "" if torch_is_here() else " (runtime upgrade only)"
    write(f"{verdict.value}{scope}: {reasons[0]}", **{colour: True, "bold": True})
