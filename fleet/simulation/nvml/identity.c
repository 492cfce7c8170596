/* What a card is: names, numbers, modes; and its MIG instances. */
#include "state.h"

#define GET_TEXT(function, field)                                                  \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, char *text, unsigned length) \
    {                                                                              \
        DEVICE_CALL(handle);                                                       \
        return sim_text(&device->field, text, length);                             \
    }

GET_TEXT(nvmlDeviceGetName, name)
GET_TEXT(nvmlDeviceGetUUID, uuid)
GET_TEXT(nvmlDeviceGetSerial, serial)
GET_TEXT(nvmlDeviceGetVbiosVersion, vbios)
GET_TEXT(nvmlDeviceGetBoardPartNumber, part_number)

GET_U32(nvmlDeviceGetMinorNumber, minor_number)
GET_U32(nvmlDeviceGetBoardId, board_id)
GET_U32(nvmlDeviceGetArchitecture, architecture)
GET_U32(nvmlDeviceGetBrand, brand)
GET_U32(nvmlDeviceGetNumGpuCores, cores)
GET_U32(nvmlDeviceGetMemoryBusWidth, memory_bus_width)
GET_U32(nvmlDeviceGetPersistenceMode, persistence_mode)
GET_U32(nvmlDeviceGetComputeMode, compute_mode)
GET_U32(nvmlDeviceGetDisplayMode, display_mode)
GET_U32(nvmlDeviceGetDisplayActive, display_active)
GET_U32(nvmlDeviceGetMaxMigDeviceCount, mig_maximum)

EXPORT nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t handle, int *node)
{
    DEVICE_CALL(handle);
    NEED(node);
    return sim_i32(device, READING_numa_node, node);
}

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
    DEVICE_CALL(handle);
    NEED(major && minor);
    nvmlReturn_t code = sim_i32(device, READING_cuda_major, major);
    return code == NVML_SUCCESS ? sim_i32(device, READING_cuda_minor, minor) : code;
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, unsigned *current, unsigned *pending)
{
    DEVICE_CALL(handle);
    NEED(current && pending);
    nvmlReturn_t code = sim_u32(device, READING_ecc_mode, current);
    return code == NVML_SUCCESS ? sim_u32(device, READING_ecc_mode_pending, pending) : code;
}

/* ---- MIG ------------------------------------------------------------------------------------------------------ */

EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned *current, unsigned *pending)
{
    DEVICE_CALL(handle);
    NEED(current && pending);
    nvmlReturn_t code = sim_u32(device, READING_mig_mode, current);
    return code == NVML_SUCCESS ? sim_u32(device, READING_mig_mode_pending, pending) : code;
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned *is_mig)
{
    DEVICE_CALL(handle);
    NEED(is_mig);
    *is_mig = device->parent != NO_PARENT;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned index, nvmlDevice_t *instance)
{
    unsigned mode = 0, seen = 0;
    DEVICE_CALL(handle);
    NEED(instance);
    nvmlReturn_t code = sim_u32(device, READING_mig_mode, &mode);
    if (code != NVML_SUCCESS) return code;
    for (uint32_t slot = 0; slot < sim_host()->device_count && slot < MAX_DEVICES; slot++) {
        const struct layout_device *other = sim_device(slot);
        if (!other->present || other->removed || other->parent != handle->slot) continue;
        if (mode && seen++ == index) {
            *instance = sim_handle_of(slot);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle, nvmlDevice_t *card)
{
    DEVICE_CALL(handle);
    NEED(card && device->parent != NO_PARENT);
    *card = sim_handle_of(device->parent);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t handle, unsigned *id)
{
    DEVICE_CALL(handle);
    NEED(id);
    if (device->parent == NO_PARENT) return NVML_ERROR_NOT_SUPPORTED;
    *id = device->gpu_instance;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t handle, unsigned *id)
{
    DEVICE_CALL(handle);
    NEED(id);
    if (device->parent == NO_PARENT) return NVML_ERROR_NOT_SUPPORTED;
    *id = device->compute_instance;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, nvmlDeviceAttributes_t *attributes)
{
    DEVICE_CALL(handle);
    NEED(attributes);
    if (device->parent == NO_PARENT) return NVML_ERROR_NOT_SUPPORTED;
    unsigned long long memory = 0;
    nvmlReturn_t code = sim_u32(device, READING_mig_streaming_multiprocessors, &attributes->multiprocessorCount);
    if (code != NVML_SUCCESS) return code;
    code = sim_u64(device, READING_memory_total_bytes, &memory);
    if (code != NVML_SUCCESS) return code;
    attributes->memorySizeMB = memory >> 20;
    sim_u32(device, READING_mig_slices, &attributes->gpuInstanceSliceCount);
    attributes->computeInstanceSliceCount = attributes->gpuInstanceSliceCount;
    attributes->sharedCopyEngineCount = 1;
    attributes->sharedDecoderCount = attributes->sharedEncoderCount = 0;
    attributes->sharedJpegCount = attributes->sharedOfaCount = 0;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t handle, nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(handle, attributes);
}
