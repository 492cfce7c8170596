/* What tells of a failing card: ECC counters, remapped rows, retired pages, NVLink. */
#include "state.h"

/* ---- ECC -------------------------------------------------------------------------------------------------------- */

static enum reading ecc_reading(unsigned error, unsigned counter)
{
    static const enum reading readings[2][2] = {
        { READING_ecc_corrected_volatile, READING_ecc_corrected_aggregate },
        { READING_ecc_uncorrected_volatile, READING_ecc_uncorrected_aggregate },
    };
    return readings[error][counter];
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, unsigned error, unsigned counter, unsigned long long *count)
{
    DEVICE_CALL(handle);
    NEED(count && error < 2 && counter < 2);
    return sim_u64(device, ecc_reading(error, counter), count);
}

/* All errors are told of the memory (location 2); the other places have none. */
EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t handle, unsigned error, unsigned counter, unsigned location,
                                                    unsigned long long *count)
{
    DEVICE_CALL(handle);
    NEED(count && error < 2 && counter < 2 && location < 8);
    nvmlReturn_t code = sim_u64(device, ecc_reading(error, counter), count);
    if (code == NVML_SUCCESS && location != 2) *count = 0;
    return code;
}

/* ---- rows and pages --------------------------------------------------------------------------------------------- */

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t handle, unsigned *correctable, unsigned *uncorrectable,
                                              unsigned *is_pending, unsigned *has_failed)
{
    DEVICE_CALL(handle);
    NEED(correctable && uncorrectable && is_pending && has_failed);
    nvmlReturn_t code = sim_u32(device, READING_remapped_rows_correctable, correctable);
    if (code == NVML_SUCCESS) code = sim_u32(device, READING_remapped_rows_uncorrectable, uncorrectable);
    if (code == NVML_SUCCESS) code = sim_u32(device, READING_remapped_rows_pending, is_pending);
    if (code == NVML_SUCCESS) code = sim_u32(device, READING_remapped_rows_failure, has_failed);
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t handle, nvmlRowRemapperHistogramValues_t *values)
{
    unsigned remapped = 0;
    DEVICE_CALL(handle);
    NEED(values);
    nvmlReturn_t code = sim_u32(device, READING_remapped_rows_uncorrectable, &remapped);
    if (code != NVML_SUCCESS) return code;
    *values = (nvmlRowRemapperHistogramValues_t){ 640 - (remapped ? 1 : 0), remapped ? 1 : 0, 0, 0, 0 };
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t handle, unsigned cause, unsigned *count, unsigned long long *pages)
{
    unsigned retired = 0;
    DEVICE_CALL(handle);
    NEED(count && cause < 2);
    nvmlReturn_t code = sim_u32(device, cause ? READING_retired_pages_double_bit : READING_retired_pages_single_bit, &retired);
    if (code != NVML_SUCCESS) return code;
    unsigned room = pages ? *count : 0;
    *count = retired;
    for (unsigned i = 0; i < retired && i < room; i++) pages[i] = 0x100000ull + 0x1000ull * (cause * 4096 + i);
    return retired > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

GET_U32(nvmlDeviceGetRetiredPagesPendingStatus, retired_pages_pending)

/* ---- NVLink ----------------------------------------------------------------------------------------------------- */

static nvmlReturn_t check_link(const struct layout_device *device, unsigned link)
{
    unsigned links = 0;
    nvmlReturn_t code = sim_u32(device, READING_nvlink_links, &links);
    if (code != NVML_SUCCESS) return code;
    return link < links ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned link, unsigned *is_active)
{
    int64_t inactive = 0;
    DEVICE_CALL(handle);
    NEED(is_active);
    nvmlReturn_t code = check_link(device, link);
    if (code == NVML_SUCCESS) code = sim_read(device, READING_nvlink_inactive_mask, &inactive);
    if (code == NVML_SUCCESS) *is_active = !((inactive >> link) & 1);
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t handle, unsigned link, unsigned *version)
{
    DEVICE_CALL(handle);
    NEED(version);
    nvmlReturn_t code = check_link(device, link);
    return code == NVML_SUCCESS ? sim_u32(device, READING_nvlink_version, version) : code;
}

/* The errors of a card are told of its link 0. */
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t handle, unsigned link, unsigned kind, unsigned long long *count)
{
    static const enum reading kinds[] = { READING_nvlink_replay_errors, READING_nvlink_recovery_errors,
                                          READING_nvlink_crc_flit_errors, READING_nvlink_crc_data_errors };
    DEVICE_CALL(handle);
    NEED(count && kind < 4);
    nvmlReturn_t code = check_link(device, link);
    if (code == NVML_SUCCESS) code = sim_u64(device, kinds[kind], count);
    if (code == NVML_SUCCESS && link != 0) *count = 0;
    return code;
}
