/* Readings that change all the time: utilisation, memory, power, temperature, clocks, PCIe, fans. */
#include "state.h"

GET_U32(nvmlDeviceGetPowerUsage, power_milliwatts)
GET_U32(nvmlDeviceGetPowerManagementLimit, power_limit_milliwatts)
GET_U32(nvmlDeviceGetPowerManagementDefaultLimit, power_limit_default_milliwatts)
GET_U32(nvmlDeviceGetEnforcedPowerLimit, power_limit_enforced_milliwatts)
GET_U32(nvmlDeviceGetPerformanceState, performance_state)
GET_U32(nvmlDeviceGetPowerState, performance_state)
GET_U32(nvmlDeviceGetCurrPcieLinkGeneration, pcie_generation)
GET_U32(nvmlDeviceGetCurrPcieLinkWidth, pcie_width)
GET_U32(nvmlDeviceGetMaxPcieLinkGeneration, pcie_generation_maximum)
GET_U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, pcie_generation_maximum)
GET_U32(nvmlDeviceGetMaxPcieLinkWidth, pcie_width_maximum)
GET_U32(nvmlDeviceGetPcieReplayCounter, pcie_replays)
GET_U32(nvmlDeviceGetNumFans, fan_count)
GET_U32(nvmlDeviceGetFanSpeed, fan_percent)
GET_U64(nvmlDeviceGetTotalEnergyConsumption, energy_millijoules)
GET_U64(nvmlDeviceGetCurrentClocksEventReasons, clock_event_reasons)
GET_U64(nvmlDeviceGetCurrentClocksThrottleReasons, clock_event_reasons)
GET_U64(nvmlDeviceGetSupportedClocksEventReasons, clock_event_reasons_supported)
GET_U64(nvmlDeviceGetSupportedClocksThrottleReasons, clock_event_reasons_supported)

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *utilization)
{
    DEVICE_CALL(handle);
    NEED(utilization);
    nvmlReturn_t code = sim_u32(device, READING_utilization_percent, &utilization->gpu);
    return code == NVML_SUCCESS ? sim_u32(device, READING_memory_busy_percent, &utilization->memory) : code;
}

#define GET_ENGINE(function, reading)                                                      \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *percent, unsigned *period) \
    {                                                                                      \
        DEVICE_CALL(handle);                                                               \
        NEED(percent && period);                                                           \
        *period = 167000;                                                                  \
        return sim_u32(device, READING_##reading, percent);                                \
    }

GET_ENGINE(nvmlDeviceGetEncoderUtilization, encoder_percent)
GET_ENGINE(nvmlDeviceGetDecoderUtilization, decoder_percent)
GET_ENGINE(nvmlDeviceGetJpgUtilization, jpeg_percent)
GET_ENGINE(nvmlDeviceGetOfaUtilization, ofa_percent)

/* ---- memory: v1 counts what the driver reserves as used, v2 tells it apart -------------------------------------- */

struct memory {
    unsigned long long total, reserved, used;
};

static nvmlReturn_t read_memory(const struct layout_device *device, struct memory *memory)
{
    nvmlReturn_t code = sim_u64(device, READING_memory_total_bytes, &memory->total);
    if (code == NVML_SUCCESS) code = sim_u64(device, READING_memory_used_bytes, &memory->used);
    if (code == NVML_SUCCESS && sim_u64(device, READING_memory_reserved_bytes, &memory->reserved) != NVML_SUCCESS)
        memory->reserved = 0;
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *info)
{
    struct memory memory;
    DEVICE_CALL(handle);
    NEED(info);
    nvmlReturn_t code = read_memory(device, &memory);
    if (code != NVML_SUCCESS) return code;
    info->total = memory.total;
    info->used = memory.used + memory.reserved;
    info->free = memory.total - info->used;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *info)
{
    struct memory memory;
    DEVICE_CALL(handle);
    NEED(info);
    if (info->version != ABI_VERSION(nvmlMemory_v2_t, 2)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = sim_code(device, READING_memory_v2);
    if (code == NVML_SUCCESS) code = read_memory(device, &memory);
    if (code != NVML_SUCCESS) return code;
    info->total = memory.total;
    info->reserved = memory.reserved;
    info->used = memory.used;
    info->free = memory.total - memory.used - memory.reserved;
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *info)
{
    DEVICE_CALL(handle);
    NEED(info);
    nvmlReturn_t code = sim_u64(device, READING_bar1_total_bytes, &info->bar1Total);
    if (code == NVML_SUCCESS) code = sim_u64(device, READING_bar1_used_bytes, &info->bar1Used);
    if (code == NVML_SUCCESS) info->bar1Free = info->bar1Total - info->bar1Used;
    return code;
}

/* ---- temperature ------------------------------------------------------------------------------------------------ */

EXPORT nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, int sensor, unsigned *celsius)
{
    DEVICE_CALL(handle);
    NEED(celsius && sensor == 0);
    return sim_u32(device, READING_temperature_celsius, celsius);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, nvmlTemperature_v1_t *reading)
{
    DEVICE_CALL(handle);
    NEED(reading);
    if (reading->version != ABI_VERSION(nvmlTemperature_v1_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    NEED(reading->sensorType == 0);
    return sim_i32(device, READING_temperature_celsius, &reading->temperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t handle, nvmlMarginTemperature_v1_t *margin)
{
    DEVICE_CALL(handle);
    NEED(margin);
    if (margin->version != ABI_VERSION(nvmlMarginTemperature_v1_t, 1)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return sim_i32(device, READING_temperature_margin_celsius, &margin->marginTemperature);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, unsigned kind, unsigned *celsius)
{
    static const enum reading thresholds[] = {
        READING_temperature_shutdown_celsius,       READING_temperature_slowdown_celsius,
        READING_temperature_memory_maximum_celsius, READING_temperature_maximum_celsius,
        READING_temperature_acoustic_minimum_celsius, READING_temperature_acoustic_celsius,
        READING_temperature_acoustic_maximum_celsius,
    };
    DEVICE_CALL(handle);
    NEED(celsius && kind < sizeof thresholds / sizeof *thresholds);
    return sim_u32(device, thresholds[kind], celsius);
}

/* ---- clocks, power limits, violations --------------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, unsigned kind, unsigned *mhz)
{
    static const enum reading clocks[] = {
        READING_graphics_clock_mhz, READING_sm_clock_mhz, READING_memory_clock_mhz, READING_video_clock_mhz };
    DEVICE_CALL(handle);
    NEED(mhz && kind < 4);
    return sim_u32(device, clocks[kind], mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, unsigned kind, unsigned *mhz)
{
    static const enum reading clocks[] = { READING_graphics_clock_maximum_mhz, READING_sm_clock_maximum_mhz,
                                           READING_memory_clock_maximum_mhz, READING_video_clock_maximum_mhz };
    DEVICE_CALL(handle);
    NEED(mhz && kind < 4);
    return sim_u32(device, clocks[kind], mhz);
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle, unsigned *low, unsigned *high)
{
    DEVICE_CALL(handle);
    NEED(low && high);
    nvmlReturn_t code = sim_u32(device, READING_power_limit_minimum_milliwatts, low);
    return code == NVML_SUCCESS ? sim_u32(device, READING_power_limit_maximum_milliwatts, high) : code;
}

EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t handle, unsigned policy, nvmlViolationTime_t *time)
{
    enum reading reading;
    DEVICE_CALL(handle);
    NEED(time);
    switch (policy) {
    case 0: reading = READING_power_violation_ns; break;
    case 1: reading = READING_thermal_violation_ns; break;
    case 2: reading = READING_sync_boost_violation_ns; break;
    case 3: reading = READING_board_limit_violation_ns; break;
    case 4: reading = READING_low_utilization_violation_ns; break;
    case 5: reading = READING_reliability_violation_ns; break;
    case 10: reading = READING_application_clocks_violation_ns; break;
    case 11: reading = READING_base_clocks_violation_ns; break;
    default: return NVML_ERROR_INVALID_ARGUMENT;
    }
    time->referenceTime = sim_wall_us();
    return sim_u64(device, reading, &time->violationTime);
}

/* ---- PCIe and fans ---------------------------------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t handle, unsigned direction, unsigned *kib)
{
    DEVICE_CALL(handle);
    NEED(kib && direction < 2);
    return sim_u32(device, direction ? READING_pcie_rx_kib_per_second : READING_pcie_tx_kib_per_second, kib);
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t handle, unsigned fan, unsigned *percent)
{
    unsigned count = 0;
    DEVICE_CALL(handle);
    NEED(percent);
    nvmlReturn_t code = sim_u32(device, READING_fan_count, &count);
    if (code != NVML_SUCCESS) return code;
    NEED(fan < count);
    return sim_u32(device, READING_fan_percent, percent);
}

/* ---- the driver's own history: a ring of one value, the present one ---------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t handle, unsigned kind, unsigned long long last_seen, int *value_type,
                                         unsigned *count, nvmlSample_t *samples)
{
    static const enum reading kinds[] = {
        READING_power_milliwatts, READING_utilization_percent, READING_memory_busy_percent,
        READING_encoder_percent, READING_decoder_percent, READING_sm_clock_mhz, READING_memory_clock_mhz };
    unsigned value;
    DEVICE_CALL(handle);
    NEED(value_type && count && kind < sizeof kinds / sizeof *kinds);
    nvmlReturn_t code = sim_u32(device, kinds[kind], &value);
    if (code != NVML_SUCCESS) return code;
    if (sim_wall_us() <= last_seen) return NVML_ERROR_NOT_FOUND;
    *value_type = NVML_VALUE_UNSIGNED_INT;
    if (samples) {
        if (*count < 1) return NVML_ERROR_INSUFFICIENT_SIZE;
        samples[0].timeStamp = sim_wall_us();
        samples[0].sampleValue.uiVal = value;
    }
    *count = 1;
    return NVML_SUCCESS;
}
