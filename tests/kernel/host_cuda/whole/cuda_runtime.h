// The CPU device's CUDA with the calls that an exported file makes from the host, declared alone: for warnings, not for running.
#pragma once
#include "simt.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef int cudaError_t;
typedef struct simt_stream* cudaStream_t;
typedef struct simt_event* cudaEvent_t;
struct dim3_of { dim3_of(unsigned, unsigned = 1, unsigned = 1) {} };
#define dim3(...) dim3_of(__VA_ARGS__)  // the host's has a constructor
enum { cudaSuccess = 0, cudaErrorInvalidValue, cudaErrorNotSupported };
enum { cudaEnableDefault };
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
cudaError_t cudaGetDriverEntryPoint(const char* name, void** found, int flags, cudaDriverEntryPointQueryResult* status);
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributeNonPortableClusterSizeAllowed };
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMalloc(void** memory, size_t size);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemset(void* memory, int byte, size_t size);
cudaError_t cudaMemcpy(void* to, const void* from, size_t size, cudaMemcpyKind kind);
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = 0);
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to);
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3_of grid, dim3_of block, void** arguments, size_t shared,
                                        cudaStream_t stream);
template <class F> cudaError_t cudaFuncSetAttribute(F*, cudaFuncAttribute, int) { return cudaSuccess; }
template <class F> void host_launch(dim3_of, dim3_of, F, cudaStream_t) {}
