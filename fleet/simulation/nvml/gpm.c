/* GPM (Hopper and later): SM activity, tensor and memory bandwidth between two samples. */
#include <stdlib.h>

#include "state.h"

struct sim_gpm_sample {
    uint32_t slot; /* MAX_DEVICES while empty */
    int64_t taken_ns;
};

static const struct {
    unsigned id;
    enum reading reading;
    char *name;
} metrics[] = {
    { 1, READING_gpm_graphics_millipercent, "GRAPHICS_UTIL" },
    { 2, READING_gpm_sm_millipercent, "SM_UTIL" },
    { 3, READING_gpm_occupancy_millipercent, "SM_OCCUPANCY" },
    { 5, READING_gpm_tensor_millipercent, "ANY_TENSOR_UTIL" },
    { 10, READING_gpm_dram_millipercent, "DRAM_BW_UTIL" },
    { 12, READING_gpm_fp32_millipercent, "FP32_UTIL" },
    { 13, READING_gpm_fp16_millipercent, "FP16_UTIL" },
};

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, nvmlGpmSupport_t *support)
{
    DEVICE_CALL(handle);
    NEED(support);
    if (support->version != 1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = 0;
    nvmlReturn_t code = sim_u32(device, READING_gpm, &support->isSupportedDevice);
    return code == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : code;
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    SYSTEM_CALL();
    NEED(sample);
    *sample = calloc(1, sizeof **sample);
    if (!*sample) return NVML_ERROR_UNKNOWN;
    (*sample)->slot = MAX_DEVICES;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    NEED(sample);
    free(sample);
    return NVML_SUCCESS;
}

static nvmlReturn_t take(const struct layout_device *device, uint32_t slot, nvmlGpmSample_t sample)
{
    unsigned supported = 0;
    NEED(sample);
    nvmlReturn_t code = sim_u32(device, READING_gpm, &supported);
    if (code != NVML_SUCCESS) return code;
    if (!supported) return NVML_ERROR_NOT_SUPPORTED;
    sample->slot = slot;
    sample->taken_ns = sim_now_ns();
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t handle, nvmlGpmSample_t sample)
{
    DEVICE_CALL(handle);
    return take(device, handle->slot, sample);
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t handle, unsigned gpu_instance, nvmlGpmSample_t sample)
{
    DEVICE_CALL(handle);
    for (uint32_t slot = 0; slot < sim_host()->device_count && slot < MAX_DEVICES; slot++) {
        const struct layout_device *other = sim_device(slot);
        if (other->present && other->parent == handle->slot && other->gpu_instance == gpu_instance)
            return take(other, slot, sample);
    }
    return device->present ? NVML_ERROR_NOT_FOUND : NVML_ERROR_GPU_IS_LOST;
}

static void measure(const struct layout_device *device, nvmlGpmMetric_t *out)
{
    int64_t value = 0;
    out->value = 0;
    out->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        if (metrics[i].id != out->metricId) continue;
        out->nvmlReturn = sim_read(device, metrics[i].reading, &value);
        if (out->nvmlReturn == NVML_SUCCESS) out->value = (double)value / 1000;
        out->metricInfo.shortName = out->metricInfo.longName = metrics[i].name;
        out->metricInfo.unit = "%";
    }
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *request)
{
    SYSTEM_CALL();
    NEED(request && request->sample1 && request->sample2 && request->numMetrics <= 512);
    if (request->version != 1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    const struct sim_gpm_sample *first = request->sample1, *second = request->sample2;
    NEED(first->slot < MAX_DEVICES && first->slot == second->slot && second->taken_ns > first->taken_ns);
    for (unsigned i = 0; i < request->numMetrics; i++) measure(sim_device(first->slot), &request->metrics[i]);
    return NVML_SUCCESS;
}
