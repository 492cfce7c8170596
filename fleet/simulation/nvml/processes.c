/* Processes on a card or a MIG instance, and what each of them uses. */
#include <string.h>

#include "state.h"

#define MAX_LISTED 256

struct process_list {
    uint32_t count;
    struct layout_process items[MAX_LISTED];
};

static void copy_processes(const void *from, void *to)
{
    const struct layout_device *device = from;
    struct process_list *list = to;
    list->count = device->process_count < MAX_PROCESSES ? device->process_count : MAX_PROCESSES;
    memcpy(list->items, device->processes, list->count * sizeof *list->items);
}

static void gather_own(const struct layout_device *device, struct process_list *list)
{
    struct process_list own;
    sim_consistently(copy_processes, device, &own);
    for (uint32_t i = 0; i < own.count && list->count < MAX_LISTED; i++) list->items[list->count++] = own.items[i];
}

/* The processes of a device; a card that is divided lists those of its instances too, as the driver does. */
static void gather(const struct layout_device *device, struct process_list *list)
{
    list->count = 0;
    gather_own(device, list);
    uint32_t slot = (uint32_t)(device - sim_device(0));
    for (uint32_t other = 0; other < sim_host()->device_count && other < MAX_DEVICES; other++) {
        const struct layout_device *instance = sim_device(other);
        if (instance->present && instance->parent == slot) gather_own(instance, list);
    }
}

/* The processes of one kind, in the widest struct. count: room on the way in, how many there are on the way out. */
static nvmlReturn_t running(const struct layout_device *device, uint32_t kind, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    struct process_list list;
    unsigned room = infos ? *count : 0, found = 0;
    nvmlReturn_t code = sim_code(device, READING_processes);
    if (code != NVML_SUCCESS) return code;
    gather(device, &list);
    for (uint32_t i = 0; i < list.count; i++) {
        const struct layout_process *process = &list.items[i];
        if (!(process->kinds & kind)) continue;
        if (found < room) {
            infos[found].pid = process->pid;
            infos[found].usedGpuMemory =
                process->memory_bytes < 0 ? ABI_NOT_AVAILABLE : (unsigned long long)process->memory_bytes;
            infos[found].gpuInstanceId = process->gpu_instance;
            infos[found].computeInstanceId = process->compute_instance;
        }
        found++;
    }
    *count = found;
    return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t running_v1(const struct layout_device *device, uint32_t kind, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
    nvmlProcessInfo_v2_t wide[MAX_LISTED];
    unsigned room = infos ? *count : 0;
    *count = MAX_LISTED;
    nvmlReturn_t code = running(device, kind, count, wide);
    if (code != NVML_SUCCESS) return code;
    for (unsigned i = 0; i < *count && i < room; i++)
        infos[i] = (nvmlProcessInfo_v1_t){ wide[i].pid, wide[i].usedGpuMemory };
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define PROCESS_GETTERS(name, kind)                                                                    \
    EXPORT nvmlReturn_t name(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_v1_t *infos)         \
    {                                                                                                  \
        DEVICE_CALL(handle);                                                                           \
        NEED(count);                                                                                   \
        return running_v1(device, kind, count, infos);                                                 \
    }                                                                                                  \
    EXPORT nvmlReturn_t name##_v2(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_v2_t *infos)    \
    {                                                                                                  \
        DEVICE_CALL(handle);                                                                           \
        NEED(count);                                                                                   \
        return running(device, kind, count, infos);                                                    \
    }                                                                                                  \
    EXPORT nvmlReturn_t name##_v3(nvmlDevice_t handle, unsigned *count, nvmlProcessInfo_v2_t *infos)    \
    {                                                                                                  \
        DEVICE_CALL(handle);                                                                           \
        NEED(count);                                                                                   \
        return running(device, kind, count, infos);                                                    \
    }

PROCESS_GETTERS(nvmlDeviceGetComputeRunningProcesses, PROCESS_COMPUTE)
PROCESS_GETTERS(nvmlDeviceGetGraphicsRunningProcesses, PROCESS_GRAPHICS)
PROCESS_GETTERS(nvmlDeviceGetMPSComputeRunningProcesses, PROCESS_MPS)

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t handle, nvmlProcessDetailList_v1_t *list)
{
    static const uint32_t kinds[] = { PROCESS_COMPUTE, PROCESS_GRAPHICS, PROCESS_MPS };
    nvmlProcessInfo_v2_t wide[MAX_LISTED];
    unsigned count = MAX_LISTED;
    DEVICE_CALL(handle);
    NEED(list && list->mode < 3);
    if (list->version != ABI_VERSION(nvmlProcessDetailList_v1_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = sim_code(device, READING_process_details);
    if (code == NVML_SUCCESS) code = running(device, kinds[list->mode], &count, wide);
    if (code != NVML_SUCCESS) return code;
    unsigned room = list->procArray ? list->numProcArrayEntries : 0;
    list->numProcArrayEntries = count;
    if (count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < count; i++)
        list->procArray[i] = (nvmlProcessDetail_v1_t){ wide[i].pid, wide[i].usedGpuMemory, wide[i].gpuInstanceId,
                                                       wide[i].computeInstanceId, ABI_NOT_AVAILABLE };
    return NVML_SUCCESS;
}

/* ---- use per process -------------------------------------------------------------------------------------------- */

static nvmlReturn_t usage(const struct layout_device *device, unsigned long long last_seen, struct process_list *list)
{
    nvmlReturn_t code = sim_code(device, READING_process_utilization);
    if (code != NVML_SUCCESS) return code;
    gather(device, list);
    return list->count == 0 || sim_wall_us() <= last_seen ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle, nvmlProcessUtilizationSample_t *samples,
                                                    unsigned *count, unsigned long long last_seen)
{
    struct process_list list;
    DEVICE_CALL(handle);
    NEED(count);
    nvmlReturn_t code = usage(device, last_seen, &list);
    if (code != NVML_SUCCESS) return code;
    unsigned room = samples ? *count : 0;
    *count = list.count;
    if (list.count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < list.count; i++) {
        const struct layout_process *process = &list.items[i];
        samples[i] = (nvmlProcessUtilizationSample_t){ process->pid, sim_wall_us(), process->sm_percent,
                                                       process->memory_percent, process->encoder_percent,
                                                       process->decoder_percent };
    }
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t handle, nvmlProcessesUtilizationInfo_v1_t *info)
{
    struct process_list list;
    DEVICE_CALL(handle);
    NEED(info);
    if (info->version != ABI_VERSION(nvmlProcessesUtilizationInfo_v1_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = usage(device, info->lastSeenTimeStamp, &list);
    if (code != NVML_SUCCESS) return code;
    unsigned room = info->procUtilArray ? info->processSamplesCount : 0;
    info->processSamplesCount = list.count;
    if (list.count > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < list.count; i++) {
        const struct layout_process *process = &list.items[i];
        info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
            sim_wall_us(), process->pid, process->sm_percent, process->memory_percent, process->encoder_percent,
            process->decoder_percent, 0, 0 };
    }
    return NVML_SUCCESS;
}
