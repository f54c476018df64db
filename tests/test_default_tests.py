"""Default tests are short, but for ten; a test of kernels runs again after a change."""

import ast

import pytest
from default_tests import COMPILED, CPU_TIMES, NUM_RUNS, ROOT, LongTests, long_tests

MOST_LONG = 10
FACTOR = 2.0
"""So much longer than the limit a test may take: processors differ."""

pytest_plugins = ["pytester"]

CASE = """
import pytest

@pytest.mark.compiles_kernels
@pytest.mark.parametrize("number", [1, 2])
def test_kernel(number):
    assert number == 1 or {passes}
"""


def test_at_most_ten_tests_may_be_long_and_each_exists():
    allowed = long_tests()
    assert len(allowed.names) <= MOST_LONG
    for name in allowed.names:
        file, _, test = name.partition("::")
        tree = ast.parse((ROOT / file).read_text())
        assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_a_test_is_too_long_if_its_last_runs_all_were():
    allowed = LongTests(2.0, ("tests/a.py::test_listed",))
    times = {
        "tests/a.py::test_listed[x]": [9.0], "tests/a.py::test_cold[y]": [9.0, 0.1],
        "tests/a.py::test_long": [3.0, 9.0], "tests/a.py::test_short": [0.1],
    }
    assert allowed.too_long(times) == {"tests/a.py::test_long": 3.0}
    assert allowed.too_long(times, factor=2.0) == {}


@pytest.mark.slow
def test_no_other_default_test_was_too_long_in_its_last_runs(request):
    times = request.config.cache.get(CPU_TIMES, {})
    known = {test: seconds for test, seconds in times.items() if len(seconds) == NUM_RUNS}
    assert long_tests().too_long(known, FACTOR) == {}


def test_kernels_are_compiled_by_default_only_after_a_change(pytester, monkeypatch):
    pytester.makeconftest("""
        import pytest
        from default_tests import leave_out_compiled, pytest_runtest_logreport
        from default_tests import pytest_terminal_summary

        def pytest_configure(config):
            config.addinivalue_line("markers", "compiles_kernels: of kernels")
            config.addinivalue_line("markers", "slow: slow")

        def pytest_collection_modifyitems(config, items):
            leave_out_compiled(config, items)
    """)
    monkeypatch.setattr("default_tests._passed", set())
    monkeypatch.setattr("default_tests._measured", {})
    path = pytester.makepyfile(CASE.format(passes=False))
    default = ("-m", "not slow", "-p", "no:xdist")
    pytester.runpytest_inprocess(*default).assert_outcomes(passed=1, failed=1)
    pytester.runpytest_inprocess(*default).assert_outcomes(skipped=1, failed=1)
    path.write_text(CASE.format(passes=True))
    pytester.runpytest_inprocess(*default).assert_outcomes(skipped=1, passed=1)
    pytester.runpytest_inprocess(*default).assert_outcomes(skipped=2)
    pytester.runpytest_inprocess("-p", "no:xdist").assert_outcomes(passed=2)
    monkeypatch.setattr("default_tests.kernels_digest", lambda: "others")
    pytester.runpytest_inprocess(*default).assert_outcomes(passed=2)
    assert (pytester.path / ".pytest_cache" / "v" / COMPILED).exists()
