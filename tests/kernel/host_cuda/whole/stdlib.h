// In front of the system's, whose abs the CPU device's headers define.
#pragma once
extern "C" void* malloc(__SIZE_TYPE__ size);
extern "C" void* calloc(__SIZE_TYPE__ count, __SIZE_TYPE__ size);
extern "C" void free(void* memory);
extern "C" void exit(int status) __attribute__((noreturn));
