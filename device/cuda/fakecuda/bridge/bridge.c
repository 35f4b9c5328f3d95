//go:build gpu

#include <cuda.h>
#include <load.h>

#include "_cgo_export.h"

// The context of a thread: whether it has one.
static __thread int current;

void tensileFakeSetCurrent(int has) { current = has; }
int tensileFakeCurrent(void) { return current; }

// PUT expands its first argument, so that a symbol has its version.
#define PUT(symbol, function) PUT_(symbol, function)
#define PUT_(symbol, function) *tensileCudaSlot(#symbol) = (void *)function

void tensileFakeInstall(void) {
	PUT(cuInit, fakeInit);
	PUT(cuGetErrorName, fakeGetErrorName);
	PUT(cuGetErrorString, fakeGetErrorString);
	PUT(cuDeviceGet, fakeDeviceGet);
	PUT(cuDeviceGetCount, fakeDeviceGetCount);
	PUT(cuDeviceGetName, fakeDeviceGetName);
	PUT(cuDeviceGetUuid, fakeDeviceGetUuid);
	PUT(cuDeviceGetPCIBusId, fakeDeviceGetPCIBusId);
	PUT(cuDeviceGetAttribute, fakeDeviceGetAttribute);
	PUT(cuDeviceTotalMem, fakeDeviceTotalMem);
	PUT(cuDevicePrimaryCtxRetain, fakeDevicePrimaryCtxRetain);
	PUT(cuDevicePrimaryCtxRelease, fakeDevicePrimaryCtxRelease);
	PUT(cuCtxSetCurrent, fakeCtxSetCurrent);
	PUT(cuCtxSynchronize, fakeCtxSynchronize);
	PUT(cuMemGetInfo, fakeMemGetInfo);
	PUT(cuMemAlloc, fakeMemAlloc);
	PUT(cuMemFree, fakeMemFree);
	PUT(cuMemGetAllocationGranularity, fakeMemGetAllocationGranularity);
	PUT(cuMemAddressReserve, fakeMemAddressReserve);
	PUT(cuMemAddressFree, fakeMemAddressFree);
	PUT(cuMemCreate, fakeMemCreate);
	PUT(cuMemRelease, fakeMemRelease);
	PUT(cuMemMap, fakeMemMap);
	PUT(cuMemSetAccess, fakeMemSetAccess);
	PUT(cuMemUnmap, fakeMemUnmap);
	PUT(cuMemHostRegister, fakeMemHostRegister);
	PUT(cuMemHostUnregister, fakeMemHostUnregister);
	PUT(cuMemcpyHtoDAsync, fakeMemcpyHtoDAsync);
	PUT(cuMemcpyDtoHAsync, fakeMemcpyDtoHAsync);
	PUT(cuMemsetD32Async, fakeMemsetD32Async);
	PUT(cuModuleLoadDataEx, fakeModuleLoadDataEx);
	PUT(cuModuleUnload, fakeModuleUnload);
	PUT(cuModuleGetFunction, fakeModuleGetFunction);
	PUT(cuLaunchKernel, fakeLaunchKernel);
	PUT(cuStreamCreate, fakeStreamCreate);
	PUT(cuStreamDestroy, fakeStreamDestroy);
	PUT(cuStreamWaitEvent, fakeStreamWaitEvent);
	PUT(cuEventCreate, fakeEventCreate);
	PUT(cuEventDestroy, fakeEventDestroy);
	PUT(cuEventRecord, fakeEventRecord);
	PUT(cuEventQuery, fakeEventQuery);
	PUT(cuEventSynchronize, fakeEventSynchronize);
	PUT(cuEventElapsedTime, fakeEventElapsedTime);
}
