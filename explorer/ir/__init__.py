"""The values everything else is made of: index expressions, scalars, programs, loop trees.  Imports nothing of ours."""
