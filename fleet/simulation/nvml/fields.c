/* nvmlDeviceGetFieldValues: many readings in one call, each by number, each with its own return code. */
#include "state.h"

struct field {
    unsigned id;
    enum reading reading;
    int value_type;
};

enum { U32 = NVML_VALUE_UNSIGNED_INT, U64 = NVML_VALUE_UNSIGNED_LONG_LONG, I32 = NVML_VALUE_SIGNED_INT };

static const struct field fields[] = {
    { 1, READING_ecc_mode, U32 },
    { 2, READING_ecc_mode_pending, U32 },
    { 3, READING_ecc_corrected_volatile, U64 },
    { 4, READING_ecc_uncorrected_volatile, U64 },
    { 5, READING_ecc_corrected_aggregate, U64 },
    { 6, READING_ecc_uncorrected_aggregate, U64 },
    { 29, READING_retired_pages_single_bit, U64 },
    { 30, READING_retired_pages_double_bit, U64 },
    { 31, READING_retired_pages_pending, U64 },
    { 38, READING_nvlink_crc_flit_errors, U64 },
    { 45, READING_nvlink_crc_data_errors, U64 },
    { 52, READING_nvlink_replay_errors, U64 },
    { 59, READING_nvlink_recovery_errors, U64 },
    { 74, READING_power_violation_ns, U64 },
    { 75, READING_thermal_violation_ns, U64 },
    { 76, READING_sync_boost_violation_ns, U64 },
    { 77, READING_board_limit_violation_ns, U64 },
    { 78, READING_low_utilization_violation_ns, U64 },
    { 79, READING_reliability_violation_ns, U64 },
    { 80, READING_application_clocks_violation_ns, U64 },
    { 81, READING_base_clocks_violation_ns, U64 },
    { 82, READING_memory_temperature_celsius, U32 },
    { 83, READING_energy_millijoules, U64 },
    { 90, READING_nvlink_speed_mbps, U32 },
    { 91, READING_nvlink_links, U32 },
    { 94, READING_pcie_replays, U32 },
    { 142, READING_remapped_rows_correctable, U32 },
    { 143, READING_remapped_rows_uncorrectable, U32 },
    { 144, READING_remapped_rows_pending, U32 },
    { 145, READING_remapped_rows_failure, U32 },
    { 161, READING_nvlink_replay_errors, U64 },
    { 162, READING_nvlink_recovery_errors, U64 },
    { 163, READING_nvlink_crc_flit_errors, U64 },
    { 164, READING_nvlink_speed_mbps, U32 },
    { 166, READING_nvlink_version, U32 },
    { 185, READING_power_average_milliwatts, U32 },
    { 186, READING_power_instant_milliwatts, U32 },
    { 187, READING_power_limit_minimum_milliwatts, U32 },
    { 188, READING_power_limit_maximum_milliwatts, U32 },
    { 189, READING_power_limit_default_milliwatts, U32 },
    { 190, READING_power_limit_enforced_milliwatts, U32 },
    { 191, READING_energy_millijoules, U64 },
    { 192, READING_power_limit_milliwatts, U32 },
    { 197, READING_pcie_tx_bytes, U32 },
    { 198, READING_pcie_rx_bytes, U32 },
    { 230, READING_recovery_action, U32 },
    { 269, READING_software_thermal_ns, U64 },
    { 270, READING_hardware_thermal_ns, U64 },
    { 271, READING_power_brake_ns, U64 },
};

/* Margins to a threshold that do not move: threshold − maximum, as the T.Limit fields tell them. */
static const struct field limits[] = {
    { 193, READING_temperature_shutdown_celsius, I32 },
    { 194, READING_temperature_slowdown_celsius, I32 },
    { 195, READING_temperature_memory_maximum_celsius, I32 },
    { 196, READING_temperature_maximum_celsius, I32 },
};

static const struct field *find(const struct field *table, size_t count, unsigned id)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].id == id) return &table[i];
    return NULL;
}

static void store(nvmlFieldValue_t *out, int value_type, int64_t value)
{
    out->valueType = value_type;
    out->value.ullVal = 0;
    if (value_type == U64) out->value.ullVal = (unsigned long long)value;
    else if (value_type == I32) out->value.siVal = (int)value;
    else out->value.uiVal = (unsigned)value; /* byte counters of 32 bits wrap here, as the card's do */
}

/* NVLink traffic: the whole card's with scope UINT_MAX, else an equal share of the link. */
static nvmlReturn_t nvlink_traffic(const struct layout_device *device, nvmlFieldValue_t *out)
{
    int64_t links = 0, total = 0;
    int is_tx = out->fieldId == 138 || out->fieldId == 140;
    nvmlReturn_t code = sim_read(device, READING_nvlink_links, &links);
    if (code == NVML_SUCCESS) code = sim_read(device, is_tx ? READING_nvlink_tx_kib : READING_nvlink_rx_kib, &total);
    if (code != NVML_SUCCESS) return code;
    if (out->scopeId != UINT32_MAX && out->scopeId >= links) return NVML_ERROR_INVALID_ARGUMENT;
    int64_t with_overhead = out->fieldId >= 140 ? total + total / 8 : total;
    store(out, U64, out->scopeId == UINT32_MAX ? with_overhead : with_overhead / links);
    return NVML_SUCCESS;
}

static nvmlReturn_t link_state(const struct layout_device *device, nvmlFieldValue_t *out)
{
    int64_t links = 0, inactive = 0;
    nvmlReturn_t code = sim_read(device, READING_nvlink_links, &links);
    if (code == NVML_SUCCESS) code = sim_read(device, READING_nvlink_inactive_mask, &inactive);
    if (code != NVML_SUCCESS) return code;
    if (out->scopeId >= links) return NVML_ERROR_INVALID_ARGUMENT;
    store(out, U32, !((inactive >> out->scopeId) & 1));
    return NVML_SUCCESS;
}

static nvmlReturn_t margin(const struct layout_device *device, const struct field *field, nvmlFieldValue_t *out)
{
    int64_t now = 0, threshold = 0;
    nvmlReturn_t code = sim_read(device, READING_temperature_margin_celsius, &now);
    if (code == NVML_SUCCESS) code = sim_read(device, field->reading, &threshold);
    if (code != NVML_SUCCESS) return code;
    int64_t maximum = 0;
    code = sim_read(device, READING_temperature_maximum_celsius, &maximum);
    if (code == NVML_SUCCESS) store(out, I32, maximum - threshold);
    return code;
}

static nvmlReturn_t answer(const struct layout_device *device, nvmlFieldValue_t *out)
{
    int64_t value = 0;
    if (out->fieldId >= 138 && out->fieldId <= 141) return nvlink_traffic(device, out);
    if (out->fieldId == 165) return link_state(device, out);
    const struct field *limit = find(limits, sizeof limits / sizeof *limits, out->fieldId);
    if (limit) return margin(device, limit, out);
    const struct field *field = find(fields, sizeof fields / sizeof *fields, out->fieldId);
    if (!field) return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t code = sim_read(device, field->reading, &value);
    if (code == NVML_SUCCESS) store(out, field->value_type, value);
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t *values)
{
    DEVICE_CALL(handle);
    NEED(values && count > 0);
    for (int i = 0; i < count; i++) {
        values[i].timestamp = (long long)sim_wall_us();
        values[i].latencyUsec = 2;
        values[i].nvmlReturn = answer(device, &values[i]);
    }
    return NVML_SUCCESS;
}
