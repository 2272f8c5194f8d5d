"""The paper's tables and figures at the size of a laptop: plan, run, compare, show.

`registry` holds the experiments as data, `settings` the sizes of the tasks, `plan` what a run is,
`store` and `runner` how runs are kept and gone on with, `comparison` the statistics, `tables` and
`plots` what is shown, `experiment` the whole in one call.
"""
