"""How a stitching is found: the graph of values, what a plan costs, and the moves that make it; :mod:`..stitch` is the way in."""
