// runtime.cpp: the runtime as one translation unit, compiled once per compiler and mode, never instrumented.
#include "report.cpp"
#include "scheduler.cpp"
#include "bulk.cpp"
#include "bulk_stores.cpp"
#include "letters.cpp"
#include "products.cpp"
#include "groups.cpp"
#if SIMT_CHECKED
#include "memory_check.cpp"
#include "memory_known.cpp"
#include "memory_mates.cpp"
#include "memory_copies.cpp"
#include "memory_turns.cpp"
#include "sanitizer.cpp"
#endif
#include "main.cpp"
