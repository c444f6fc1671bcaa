"""What a schedule is timed against: other schedules, array libraries, the program as whole-array NumPy."""
