"""The paper's tables and figures at the size of a laptop: plan, run, compare, show.

`registry` lists the experiments, `definitions` has a file for each; `run_experiment` runs one in a
single call. `settings` has the sizes of the tasks, `plan` and `probe_plan` say what a run is,
`inputs` finds what is read; `runs` executes and stores runs, `results` compares and shows them.
"""
