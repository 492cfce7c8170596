/* The memory-mapped file that describes a simulated server: fixed structs, written by Python, read by the library.
 *
 * Readers use the sequence counter of the header (odd while the writer is at work); see state.c. Mirrored by layout.py,
 * which refuses to run when its sizes differ from the ones that the library reports. */
#ifndef FLEETDECK_LAYOUT_H
#define FLEETDECK_LAYOUT_H

#include <stdint.h>

#define LAYOUT_MAGIC 0x4d564446u /* "FDVM" */
#define MAX_DEVICES 64
#define MAX_PROCESSES 32
#define MAX_EVENTS 256
#define MAX_COUNTERS 256
#define NO_PARENT UINT32_MAX

enum reading {
#define READING(name) READING_##name,
#include "readings.def"
#undef READING
    READING_COUNT
};

/* value + rate × (now − since): counters go on growing between two edits. delay_us: how long the call takes. */
struct layout_reading {
    int64_t value;
    double rate_per_second;
    int64_t since_ns;
    int32_t code;
    uint32_t delay_us;
};

struct layout_text {
    int32_t code;
    char value[92];
};

enum { PROCESS_COMPUTE = 1, PROCESS_GRAPHICS = 2, PROCESS_MPS = 4 };

struct layout_process {
    uint32_t pid;
    uint32_t kinds;
    int64_t memory_bytes; /* negative: the driver does not say */
    uint32_t sm_percent, memory_percent, encoder_percent, decoder_percent;
    uint32_t gpu_instance, compute_instance;
    char name[64];
};

/* A card, or a MIG instance (parent is the slot of its card). code: what every call on it answers, 0 when well. */
struct layout_device {
    uint32_t present; /* 0: slot unused */
    uint32_t removed; /* leaves the enumeration at the next initialisation */
    int32_t code;
    uint32_t parent;
    int64_t hang_until_ns; /* on the monotonic clock */
    uint32_t gpu_instance, compute_instance;
    uint32_t process_count;
    uint32_t reserved;
    struct layout_text name, uuid, serial, vbios, part_number;
    struct layout_reading readings[READING_COUNT];
    struct layout_process processes[MAX_PROCESSES];
};

struct layout_event {
    uint32_t slot;
    uint32_t reserved;
    uint64_t type;
    uint64_t data;
};

/* Written by the library: how often each function was called. state: 0 free, 1 being named, 2 in use. */
struct layout_counter {
    uint32_t state;
    uint32_t reserved;
    uint64_t calls;
    char function[80];
};

struct layout_host {
    uint32_t magic;
    uint32_t size;
    uint32_t sequence;
    uint32_t device_count; /* slots in use, gaps included */
    int32_t init_code;     /* what nvmlInit answers */
    int32_t calls_code;    /* what every call on every card answers, 0 when well */
    int32_t wait_code;     /* what a wait for events answers at once, 0 to wait */
    uint32_t cuda_version;
    int64_t hang_until_ns;
    uint32_t events_written; /* also the futex word that waiters sleep on */
    uint32_t reserved;
    struct layout_text driver_version, nvml_version;
    struct layout_event events[MAX_EVENTS];
    struct layout_counter counters[MAX_COUNTERS];
    struct layout_device devices[MAX_DEVICES];
};

#endif
