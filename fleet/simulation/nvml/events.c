/* Event sets: XIDs, ECC errors and the like. What happened before a card was registered is not delivered, as in NVML. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "state.h"

#define WAIT_SLICE_NS 250000000 /* a waiter that nobody wakes looks by itself */

struct sim_event_set {
    uint64_t types[MAX_DEVICES];
    uint32_t since[MAX_DEVICES];
    uint32_t taken; /* events up to here were looked at */
};

static uint32_t written(void) { return __atomic_load_n(&sim_host()->events_written, __ATOMIC_ACQUIRE); }

GET_U64(nvmlDeviceGetSupportedEventTypes, event_types)

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    SYSTEM_CALL();
    NEED(set);
    *set = calloc(1, sizeof **set);
    if (!*set) return NVML_ERROR_UNKNOWN;
    (*set)->taken = written();
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    NEED(set);
    free(set);
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types, nvmlEventSet_t set)
{
    unsigned long long supported = 0;
    DEVICE_CALL(handle);
    NEED(set);
    nvmlReturn_t code = sim_u64(device, READING_event_types, &supported);
    if (code != NVML_SUCCESS) return code;
    if (types & ~supported) return NVML_ERROR_NOT_SUPPORTED;
    set->types[handle->slot] |= types;
    set->since[handle->slot] = written();
    return NVML_SUCCESS;
}

static int watches_lost_card(const struct sim_event_set *set)
{
    for (uint32_t slot = 0; slot < MAX_DEVICES; slot++) {
        const struct layout_device *device = sim_device(slot);
        if (set->types[slot] && (device->code == NVML_ERROR_GPU_IS_LOST || device->removed)) return 1;
    }
    return 0;
}

/* The next event that the set asked for; 1 when there was one. */
static int next_event(struct sim_event_set *set, nvmlEventData_t *data)
{
    while (set->taken != written()) {
        if (written() - set->taken > MAX_EVENTS) set->taken = written() - MAX_EVENTS;
        uint32_t number = set->taken++;
        struct layout_event event = sim_host()->events[number % MAX_EVENTS];
        if (event.slot >= MAX_DEVICES || !(set->types[event.slot] & event.type)) continue;
        if ((int32_t)(number - set->since[event.slot]) < 0) continue;
        *data = (nvmlEventData_t){ sim_handle_of(event.slot), event.type, event.data, ABI_NO_INSTANCE, ABI_NO_INSTANCE };
        return 1;
    }
    return 0;
}

static void sleep_for_event(uint32_t seen, int64_t nanoseconds)
{
    struct timespec slice = { nanoseconds / 1000000000, nanoseconds % 1000000000 };
    syscall(SYS_futex, &sim_host()->events_written, FUTEX_WAIT, seen, &slice, NULL, 0);
}

static nvmlReturn_t wait_for(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    NEED(set && data);
    int64_t deadline = sim_now_ns() + (int64_t)timeout_ms * 1000000;
    for (;;) {
        if (!sim_is_initialised()) return NVML_ERROR_UNINITIALIZED;
        uint32_t seen = written();
        if (next_event(set, data)) return NVML_SUCCESS;
        if (sim_host()->wait_code != NVML_SUCCESS) return sim_host()->wait_code;
        if (watches_lost_card(set)) return NVML_ERROR_GPU_IS_LOST; /* at once: a caller without a pause will spin */
        int64_t left = deadline - sim_now_ns();
        if (left <= 0) return NVML_ERROR_TIMEOUT;
        sleep_for_event(seen, left < WAIT_SLICE_NS ? left : WAIT_SLICE_NS);
    }
}

EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    SYSTEM_CALL();
    return wait_for(set, data, timeout_ms);
}

EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
    SYSTEM_CALL();
    return wait_for(set, data, timeout_ms);
}
