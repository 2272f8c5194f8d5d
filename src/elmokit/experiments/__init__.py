"""The paper's tables and figures at laptop scale: plan, run, compare, report."""
