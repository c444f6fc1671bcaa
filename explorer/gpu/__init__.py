"""GPUs as data, and what follows from them: whether a launch fits, how full a multiprocessor gets, how fast it could go."""
