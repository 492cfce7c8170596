/* A CUDA driver library of one card, as far as a copy needs it: memory is the host's, the card's UUID comes from the environment. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int CUresult;
static int contexts;

static CUresult broken(const char *name)
{
    const char *wanted = getenv("CUDA_FAILS");
    return wanted && strcmp(wanted, name) == 0 ? 999 : 0;
}

CUresult cuInit(unsigned flags) { (void)flags; return broken("cuInit"); }
CUresult cuDeviceGetCount(int *count) { *count = 1; return 0; }
CUresult cuDeviceGet(int *device, int number) { *device = number; return 0; }

CUresult cuDeviceGetUuid(unsigned char *out, int device)
{
    (void)device;
    const char *text = getenv("CUDA_UUID");
    for (int byte = 0; byte < 16; text++) {
        if (*text == '-') continue;
        char pair[3] = { text[0], text[1], 0 };
        out[byte++] = (unsigned char)strtoul(pair, NULL, 16);
        text++;
    }
    return 0;
}

CUresult cuDevicePrimaryCtxRetain(void **context, int device) { (void)device; *context = &contexts; contexts++; return 0; }
CUresult cuDevicePrimaryCtxRelease_v2(int device) { (void)device; contexts--; return 0; }
CUresult cuCtxSetCurrent(void *context) { return context == &contexts ? 0 : 201; }
CUresult cuCtxSynchronize(void) { return contexts > 0 ? 0 : 201; }

CUresult cuMemAlloc_v2(uint64_t *out, size_t size)
{
    if (broken("cuMemAlloc_v2")) return 2;
    *out = (uint64_t)(uintptr_t)malloc(size);
    return *out ? 0 : 2;
}

CUresult cuMemFree_v2(uint64_t pointer) { free((void *)(uintptr_t)pointer); return 0; }
CUresult cuMemAllocHost_v2(void **out, size_t size) { *out = malloc(size); return *out ? 0 : 2; }
CUresult cuMemFreeHost(void *pointer) { free(pointer); return 0; }

CUresult cuMemcpyHtoD_v2(uint64_t target, const void *source, size_t size)
{
    if (contexts <= 0) return 201;
    const char *hang = getenv("CUDA_HANGS");
    if (hang) sleep(600);
    memcpy((void *)(uintptr_t)target, source, size);
    return 0;
}

int fake_contexts(void) { return contexts; }
