"""The library under the suites: contract, runtime, reference, checks, report and the pytest plugin."""
