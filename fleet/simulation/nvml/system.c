/* Versions, error texts, and how a card is found: by index, UUID, serial or bus id. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "state.h"

EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
    switch (code) {
    case NVML_SUCCESS: return "The operation was successful";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_INSUFFICIENT_POWER: return "Insufficient External Power";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    SYSTEM_CALL();
    return sim_text(&sim_host()->driver_version, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    SYSTEM_CALL();
    return sim_text(&sim_host()->nvml_version, version, length);
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    SYSTEM_CALL();
    NEED(version);
    *version = (int)sim_host()->cuda_version;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) { return nvmlSystemGetCudaDriverVersion(version); }

EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    SYSTEM_CALL();
    NEED(name && length > 0);
    for (unsigned index = 0; index < sim_index_count(); index++) {
        const struct layout_device *device = sim_device(sim_slot_at(index));
        for (uint32_t i = 0; i < device->process_count && i < MAX_PROCESSES; i++) {
            if (device->processes[i].pid != pid) continue;
            snprintf(name, length, "%s", device->processes[i].name);
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

/* ---- enumeration ---------------------------------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    SYSTEM_CALL();
    NEED(count);
    *count = sim_index_count();
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }

static nvmlReturn_t open_slot(uint32_t slot, nvmlDevice_t *handle)
{
    nvmlReturn_t refused = sim_code(sim_device(slot), READING_handle);
    if (refused != NVML_SUCCESS) return refused;
    *handle = sim_handle_of(slot);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *handle)
{
    SYSTEM_CALL();
    NEED(handle && index < sim_index_count());
    return open_slot(sim_slot_at(index), handle);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *handle)
{
    return nvmlDeviceGetHandleByIndex_v2(index, handle);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *handle)
{
    SYSTEM_CALL();
    NEED(uuid && handle);
    for (uint32_t slot = 0; slot < sim_host()->device_count && slot < MAX_DEVICES; slot++) {
        const struct layout_device *device = sim_device(slot);
        if (device->present && !device->removed && strcmp(device->uuid.value, uuid) == 0) return open_slot(slot, handle);
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *handle)
{
    SYSTEM_CALL();
    NEED(serial && handle);
    for (unsigned index = 0; index < sim_index_count(); index++) {
        const struct layout_device *device = sim_device(sim_slot_at(index));
        if (device->serial.code == NVML_SUCCESS && strcmp(device->serial.value, serial) == 0)
            return open_slot(sim_slot_at(index), handle);
    }
    return NVML_ERROR_NOT_FOUND;
}

static void format_bus(const struct layout_device *device, const char *format, char *buffer, size_t length)
{
    snprintf(buffer, length, format, (unsigned)device->readings[READING_pci_domain].value,
             (unsigned)device->readings[READING_pci_bus].value, (unsigned)device->readings[READING_pci_device].value);
}

EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *handle)
{
    char full[32], brief[32];
    SYSTEM_CALL();
    NEED(bus_id && handle);
    for (unsigned index = 0; index < sim_index_count(); index++) {
        const struct layout_device *device = sim_device(sim_slot_at(index));
        format_bus(device, "%08X:%02X:%02X.0", full, sizeof full);
        format_bus(device, "%04X:%02X:%02X.0", brief, sizeof brief);
        if (strcasecmp(full, bus_id) == 0 || strcasecmp(brief, bus_id) == 0) return open_slot(sim_slot_at(index), handle);
    }
    return NVML_ERROR_NOT_FOUND;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *info)
{
    DEVICE_CALL(handle);
    NEED(info);
    nvmlReturn_t code = sim_u32(device, READING_pci_domain, &info->domain);
    if (code != NVML_SUCCESS) return code;
    sim_u32(device, READING_pci_bus, &info->bus);
    sim_u32(device, READING_pci_device, &info->device);
    sim_u32(device, READING_pci_device_id, &info->pciDeviceId);
    sim_u32(device, READING_pci_subsystem_id, &info->pciSubSystemId);
    format_bus(device, "%04X:%02X:%02X.0", info->busIdLegacy, sizeof info->busIdLegacy);
    format_bus(device, "%08X:%02X:%02X.0", info->busId, sizeof info->busId);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_t *info)
{
    return nvmlDeviceGetPciInfo_v3(handle, info);
}

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned *position)
{
    DEVICE_CALL(handle);
    NEED(position);
    for (unsigned index = 0; index < sim_index_count(); index++) {
        if (sim_device(sim_slot_at(index)) != device) continue;
        *position = index;
        return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
}
