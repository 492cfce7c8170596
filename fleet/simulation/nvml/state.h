/* What every part of the simulated library shares: the mapped file, handles, and what surrounds each call. */
#ifndef FLEETDECK_STATE_H
#define FLEETDECK_STATE_H

#include <stddef.h>

#include "layout.h"
#include "nvml_abi.h"

/* What an nvmlDevice_t points to. */
struct sim_handle {
    uint32_t slot;
};

int sim_is_initialised(void);
struct layout_host *sim_host(void);             /* NULL before the first initialisation, then for ever some file */
struct layout_device *sim_device(uint32_t slot);
nvmlDevice_t sim_handle_of(uint32_t slot);
unsigned sim_index_count(void);                 /* cards enumerated by the last initialisation */
uint32_t sim_slot_at(unsigned index);           /* MAX_DEVICES when there is none */

int64_t sim_now_ns(void);                       /* monotonic */
unsigned long long sim_wall_us(void);
void sim_sleep_ns(int64_t nanoseconds);

/* Start of a call: counts it, waits while the driver or the card hangs, answers the code in force. */
nvmlReturn_t sim_enter(const char *function, int *counter);
nvmlReturn_t sim_enter_device(const char *function, int *counter, nvmlDevice_t handle, struct layout_device **device);

/* Run `copy` on a consistent state: again when the writer was at work meanwhile. */
void sim_consistently(void (*copy)(const void *from, void *to), const void *from, void *to);

nvmlReturn_t sim_read(const struct layout_device *device, enum reading reading, int64_t *value);
nvmlReturn_t sim_u32(const struct layout_device *device, enum reading reading, unsigned *value);
nvmlReturn_t sim_i32(const struct layout_device *device, enum reading reading, int *value);
nvmlReturn_t sim_u64(const struct layout_device *device, enum reading reading, unsigned long long *value);
nvmlReturn_t sim_code(const struct layout_device *device, enum reading reading);
nvmlReturn_t sim_text(const struct layout_text *text, char *buffer, unsigned length);

#define SYSTEM_CALL()                                         \
    do {                                                      \
        static int counter_ = -1;                             \
        nvmlReturn_t entered_ = sim_enter(__func__, &counter_); \
        if (entered_ != NVML_SUCCESS) return entered_;        \
    } while (0)

#define DEVICE_CALL(handle)                                                           \
    struct layout_device *device;                                                     \
    do {                                                                              \
        static int counter_ = -1;                                                     \
        nvmlReturn_t entered_ = sim_enter_device(__func__, &counter_, handle, &device); \
        if (entered_ != NVML_SUCCESS) return entered_;                                \
    } while (0)

#define NEED(condition)                                          \
    do {                                                         \
        if (!(condition)) return NVML_ERROR_INVALID_ARGUMENT;    \
    } while (0)

/* The plainest getter: one reading, one unsigned int. */
#define GET_U32(function, reading)                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned *value) \
    {                                                                  \
        DEVICE_CALL(handle);                                           \
        NEED(value);                                                   \
        return sim_u32(device, READING_##reading, value);              \
    }

#define GET_U64(function, reading)                                               \
    EXPORT nvmlReturn_t function(nvmlDevice_t handle, unsigned long long *value) \
    {                                                                            \
        DEVICE_CALL(handle);                                                     \
        NEED(value);                                                             \
        return sim_u64(device, READING_##reading, value);                        \
    }

#endif
