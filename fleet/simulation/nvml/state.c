/* The mapped file, initialisation and enumeration, consistent reads, and what surrounds each call. */
#define _GNU_SOURCE
#include "state.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HANG_POLL_NS 10000000
#define MAX_RETRIES 2000 /* a writer that died half way must not hold readers for ever */

static struct {
    pthread_mutex_t lock;
    struct layout_host *host; /* stays mapped after shutdown: a hanging call may still look at it */
    int is_writable;
    dev_t device;
    ino_t inode;
    unsigned references;
    unsigned count;
    uint32_t order[MAX_DEVICES]; /* NVML index → slot, fixed at initialisation as in the real library */
    struct sim_handle handles[MAX_DEVICES];
} sim = { .lock = PTHREAD_MUTEX_INITIALIZER };

int64_t sim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

unsigned long long sim_wall_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

void sim_sleep_ns(int64_t nanoseconds)
{
    struct timespec left = { nanoseconds / 1000000000, nanoseconds % 1000000000 };
    while (nanosleep(&left, &left) != 0) {
    }
}

int sim_is_initialised(void) { return __atomic_load_n(&sim.references, __ATOMIC_ACQUIRE) > 0; }

struct layout_host *sim_host(void) { return sim.host; }

struct layout_device *sim_device(uint32_t slot) { return &sim.host->devices[slot]; }

nvmlDevice_t sim_handle_of(uint32_t slot)
{
    sim.handles[slot].slot = slot;
    return &sim.handles[slot];
}

unsigned sim_index_count(void) { return sim.count; }

uint32_t sim_slot_at(unsigned index) { return index < sim.count ? sim.order[index] : MAX_DEVICES; }

/* ---- initialisation ------------------------------------------------------------------------------------------- */

static nvmlReturn_t map_file(void)
{
    const char *path = getenv("FLEETDECK_SIMULATION_FILE");
    struct stat status;
    if (!path || !*path) return NVML_ERROR_DRIVER_NOT_LOADED;
    int file = open(path, O_RDWR | O_CLOEXEC), is_writable = file >= 0;
    if (file < 0) file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NVML_ERROR_DRIVER_NOT_LOADED;
    if (fstat(file, &status) != 0 || status.st_size != (off_t)sizeof(struct layout_host)) {
        fprintf(stderr, "simulated NVML: %s has another layout than this library\n", path);
        close(file);
        return NVML_ERROR_UNKNOWN;
    }
    if (sim.host && sim.device == status.st_dev && sim.inode == status.st_ino) {
        close(file);
        return NVML_SUCCESS;
    }
    void *memory = mmap(NULL, sizeof(struct layout_host), PROT_READ | (is_writable ? PROT_WRITE : 0), MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return NVML_ERROR_UNKNOWN;
    struct layout_host *host = memory;
    if (host->magic != LAYOUT_MAGIC || host->size != sizeof *host) {
        munmap(memory, sizeof *host);
        return NVML_ERROR_UNKNOWN;
    }
    sim.host = host;
    sim.is_writable = is_writable;
    sim.device = status.st_dev;
    sim.inode = status.st_ino;
    return NVML_SUCCESS;
}

static int64_t bus_address(uint32_t slot)
{
    const struct layout_reading *readings = sim.host->devices[slot].readings;
    return (readings[READING_pci_domain].value << 32) | (readings[READING_pci_bus].value << 16) |
           readings[READING_pci_device].value;
}

/* Cards in PCI order, as the real library numbers them; MIG instances have no index. */
static void enumerate(void)
{
    sim.count = 0;
    for (uint32_t slot = 0; slot < sim.host->device_count && slot < MAX_DEVICES; slot++) {
        const struct layout_device *device = &sim.host->devices[slot];
        if (!device->present || device->removed || device->parent != NO_PARENT) continue;
        unsigned at = sim.count++;
        while (at > 0 && bus_address(sim.order[at - 1]) > bus_address(slot)) {
            sim.order[at] = sim.order[at - 1];
            at--;
        }
        sim.order[at] = slot;
    }
}

static void wait_while_hanging(const int64_t *until_ns)
{
    while (__atomic_load_n(until_ns, __ATOMIC_RELAXED) > sim_now_ns()) sim_sleep_ns(HANG_POLL_NS);
}

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    pthread_mutex_lock(&sim.lock);
    nvmlReturn_t code = sim.references ? NVML_SUCCESS : map_file();
    pthread_mutex_unlock(&sim.lock);
    if (code != NVML_SUCCESS) return code;
    wait_while_hanging(&sim.host->hang_until_ns); /* outside the lock: other threads go on */
    pthread_mutex_lock(&sim.lock);
    code = sim.host->init_code;
    if (code == NVML_SUCCESS) {
        if (sim.references == 0) enumerate();
        __atomic_add_fetch(&sim.references, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&sim.lock);
    return code;
}

EXPORT nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
EXPORT nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

EXPORT nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&sim.lock);
    nvmlReturn_t code = sim.references ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (sim.references) __atomic_sub_fetch(&sim.references, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&sim.lock);
    return code;
}

/* For the Python side: do the two agree about the file? */
EXPORT unsigned fleetdeck_simulation_layout_size(void) { return sizeof(struct layout_host); }

/* ---- what surrounds each call --------------------------------------------------------------------------------- */

static int claim_counter(const char *function)
{
    for (int i = 0; i < MAX_COUNTERS; i++) {
        struct layout_counter *counter = &sim.host->counters[i];
        uint32_t expected = 0;
        if (__atomic_compare_exchange_n(&counter->state, &expected, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            strncpy(counter->function, function, sizeof counter->function - 1);
            __atomic_store_n(&counter->state, 2, __ATOMIC_RELEASE);
            return i;
        }
        while (__atomic_load_n(&counter->state, __ATOMIC_ACQUIRE) == 1) sched_yield();
        if (strcmp(counter->function, function) == 0) return i;
    }
    return MAX_COUNTERS;
}

static void count_call(const char *function, int *cached)
{
    if (!sim.is_writable) return;
    int index = __atomic_load_n(cached, __ATOMIC_RELAXED);
    /* The cache may belong to another file, which this process used before: the name decides. */
    if (index < 0 || index >= MAX_COUNTERS || strcmp(sim.host->counters[index].function, function) != 0) {
        index = claim_counter(function);
        __atomic_store_n(cached, index, __ATOMIC_RELAXED);
    }
    if (index < MAX_COUNTERS) __atomic_add_fetch(&sim.host->counters[index].calls, 1, __ATOMIC_RELAXED);
}

nvmlReturn_t sim_enter(const char *function, int *counter)
{
    if (!sim_is_initialised()) return NVML_ERROR_UNINITIALIZED;
    count_call(function, counter);
    wait_while_hanging(&sim.host->hang_until_ns);
    return NVML_SUCCESS;
}

nvmlReturn_t sim_enter_device(const char *function, int *counter, nvmlDevice_t handle, struct layout_device **device)
{
    nvmlReturn_t code = sim_enter(function, counter);
    if (code != NVML_SUCCESS) return code;
    if (handle < sim.handles || handle >= sim.handles + MAX_DEVICES) return NVML_ERROR_INVALID_ARGUMENT;
    struct layout_device *self = &sim.host->devices[handle->slot];
    struct layout_device *card = self->parent == NO_PARENT ? self : &sim.host->devices[self->parent];
    wait_while_hanging(&card->hang_until_ns);
    *device = self;
    if (sim.host->calls_code != NVML_SUCCESS) return sim.host->calls_code;
    if (card->code != NVML_SUCCESS) return card->code;
    if (card->removed || !self->present) return NVML_ERROR_GPU_IS_LOST;
    return NVML_SUCCESS;
}

/* ---- consistent reads ----------------------------------------------------------------------------------------- */

void sim_consistently(void (*copy)(const void *from, void *to), const void *from, void *to)
{
    for (int attempt = 0; attempt < MAX_RETRIES; attempt++) {
        uint32_t before = __atomic_load_n(&sim.host->sequence, __ATOMIC_ACQUIRE);
        copy(from, to);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        if (!(before & 1) && before == __atomic_load_n(&sim.host->sequence, __ATOMIC_ACQUIRE)) return;
        if (attempt > 10) sim_sleep_ns(20000);
    }
}

static void copy_reading(const void *from, void *to) { memcpy(to, from, sizeof(struct layout_reading)); }
static void copy_text(const void *from, void *to) { memcpy(to, from, sizeof(struct layout_text)); }

nvmlReturn_t sim_read(const struct layout_device *device, enum reading reading, int64_t *value)
{
    struct layout_reading copy;
    sim_consistently(copy_reading, &device->readings[reading], &copy);
    if (copy.delay_us) sim_sleep_ns((int64_t)copy.delay_us * 1000);
    if (copy.code != NVML_SUCCESS) return copy.code;
    *value = copy.value;
    if (copy.rate_per_second != 0) {
        *value += (int64_t)(copy.rate_per_second * (double)(sim_now_ns() - copy.since_ns) / 1e9);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t sim_u32(const struct layout_device *device, enum reading reading, unsigned *value)
{
    int64_t wide;
    nvmlReturn_t code = sim_read(device, reading, &wide);
    if (code == NVML_SUCCESS) *value = (unsigned)wide;
    return code;
}

nvmlReturn_t sim_i32(const struct layout_device *device, enum reading reading, int *value)
{
    int64_t wide;
    nvmlReturn_t code = sim_read(device, reading, &wide);
    if (code == NVML_SUCCESS) *value = (int)wide;
    return code;
}

nvmlReturn_t sim_u64(const struct layout_device *device, enum reading reading, unsigned long long *value)
{
    int64_t wide;
    nvmlReturn_t code = sim_read(device, reading, &wide);
    if (code == NVML_SUCCESS) *value = (unsigned long long)wide;
    return code;
}

nvmlReturn_t sim_code(const struct layout_device *device, enum reading reading)
{
    int64_t ignored;
    return sim_read(device, reading, &ignored);
}

nvmlReturn_t sim_text(const struct layout_text *text, char *buffer, unsigned length)
{
    struct layout_text copy;
    NEED(buffer);
    sim_consistently(copy_text, text, &copy);
    if (copy.code != NVML_SUCCESS) return copy.code;
    size_t size = strnlen(copy.value, sizeof copy.value);
    if (size + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(buffer, copy.value, size);
    buffer[size] = '\0';
    return NVML_SUCCESS;
}
