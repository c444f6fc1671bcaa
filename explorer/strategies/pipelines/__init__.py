"""Kernels that compute in steps: what a step copies and computes, and how far its copies overlap with the steps before it.

The terms are those of ALCOP's model (Huang et al., MLSys 2023: load, compute and the pipelining that couples them, with tiling
and occupancy).  Both ask it: the family of products for its tilings, which are no plans yet, and the price of any plan.
"""
