"""What is needed of the machine: files, kept entries, child processes, and how they are stopped."""
