"""What a run is given: seeded arguments that every program accepts, and those whose arithmetic is exact."""
