"""The bridge between an ordering platform and an ERP.

The packages are `sources` (what comes in), `transforms` (frames in, frames out), `pipelines` (the runs and the command)
and `sandbox` (a stand-in platform). In a checkout they are links to the folders at its top level.
"""
