"""Whether a run is right: references that know nothing of the schedule, the comparison with them, ragged sizes."""
