// SPDX-License-Identifier: Apache-2.0
// Implements the memory of the interpreter: the storage of data variables, and accesses that check
// every bound.
#include "interp/program.h"

InterpStorage *storage_new(Machine *machine, Str name, DType type, int64_t bytes) {
  size_t limit = machine->options.max_bytes ? machine->options.max_bytes : (size_t)4 << 30;
  if (bytes < 0 || (size_t)bytes > limit || (size_t)(machine->bytes + bytes) > limit)
    machine_fail(machine, "%s would take %lld bytes: more than the %zu allowed", name,
                 (long long)bytes, limit);
  InterpStorage *storage = arena_new(machine->arena, InterpStorage);
  storage->name = name;
  storage->bytes = bytes;
  storage->data = arena_alloc(machine->arena, (size_t)MAX_OF(bytes, 1));
  // All bits set is a NaN in every floating type; integers get a large, odd pattern.
  if (machine->options.poison)
    memset(storage->data, dtype_is_float(type) ? 0xff : 0x5b, (size_t)bytes);
  if (machine->options.report_reads)
    storage->written = arena_alloc(machine->arena, (size_t)MAX_OF(bytes, 1));
  machine->bytes += bytes;
  return storage;
}

static inline int64_t lane_index(const Machine *machine, const InterpNode *index, int lane) {
  return machine->frame[index->out + (index->lanes == 1 ? 0 : lane)].i;
}

static const char *index_list(Machine *machine, InterpNode *const *nodes, int rank, int lane) {
  Text text = text_new(machine->arena);
  text_puts(&text, "[");
  for (int i = 0; i < rank; i++)
    text_printf(&text, "%s%lld", i ? ", " : "", (long long)lane_index(machine, nodes[i], lane));
  text_puts(&text, "]");
  return text_string(&text);
}

NO_RETURN static void fail_outside(Machine *machine, const InterpAccess *access, int lane) {
  machine_fail(machine, "%s%s is outside of %s%s", access->buffer->name,
               index_list(machine, access->indices, access->rank, lane), access->buffer->name,
               index_list(machine, access->shape, access->rank, 0));
}

// The distance in bytes from the start of the storage to the element at this lane's indices.
// Indices, shape, strides and offset are evaluated already.
int64_t access_address(Machine *machine, const InterpAccess *access, int lane, bool check) {
  int64_t element = access->offset ? machine->frame[access->offset->out].i : 0;
  for (int i = 0; i < access->rank; i++) {
    int64_t index = lane_index(machine, access->indices[i], lane);
    bool fixed = access->fixed;
    int64_t extent = fixed ? access->extents[i] : machine->frame[access->shape[i]->out].i;
    if (check && (index < 0 || index >= extent)) fail_outside(machine, access, lane);
    element += index * (fixed ? access->steps[i] : machine->frame[access->strides[i]->out].i);
  }
  const InterpScalar *handle = machine->frame + access->data;
  int64_t size = (int64_t)access->element_bytes * access->element_lanes;
  int64_t address = handle[1].i + element * size;
  if (check && (address < 0 || address + size > handle[0].storage->bytes))
    machine_fail(machine, "%s%s is byte %lld of %s, which has %lld", access->buffer->name,
                 index_list(machine, access->indices, access->rank, lane), (long long)address,
                 handle[0].storage->name, (long long)handle[0].storage->bytes);
  return address;
}

// The same at scalar indices, which are evaluated here, for a fixed access: an index of which no
// bound holds is left to access_address, which reports it.
static inline int64_t fixed_address(Machine *machine, const InterpAccess *access) {
  uint64_t element = (uint64_t)access->start;
  bool inside = true;
  for (int i = 0; i < access->rank; i++) {
    uint64_t index = node_value(machine, access->indices[i])->u;
    inside &= index < (uint64_t)access->extents[i];
    element += index * (uint64_t)access->steps[i];
  }
  const InterpScalar *handle = machine->frame + access->data;
  int64_t size = access->element_bytes, address = handle[1].i + (int64_t)(element * (uint64_t)size);
  inside &= address >= 0 && address <= handle[0].storage->bytes - size;
  return inside ? address : access_address(machine, access, 0, true);
}

// Evaluates indices, shape, strides and offset; returns the number of lanes of the indices.
static int access_prepare(Machine *machine, const InterpAccess *access) {
  int lanes = 1;
  for (int i = 0; i < access->rank; i++) {
    node_value(machine, access->indices[i]);
    lanes = MAX_OF(lanes, access->indices[i]->lanes);
    if (access->fixed) continue;
    node_value(machine, access->shape[i]);
    node_value(machine, access->strides[i]);
  }
  if (access->offset) node_value(machine, access->offset);
  return lanes;
}

static void check_written(Machine *machine, const InterpAccess *access,
                          const InterpStorage *storage, int64_t address, int lane) {
  if (!storage->written || storage->written[address]) return;
  machine_fail(machine, "%s%s is read before it is written", access->buffer->name,
               index_list(machine, access->indices, access->rank, lane));
}

static inline void load_value(DType type, const void *data, InterpScalar *out) {
  if (dtype_is_float(type))
    out->f = number_load_float(type, data);
  else
    out->i = number_load_int(type, data);
}

static void load_element(Machine *machine, const InterpAccess *access, DType type, int lane,
                         InterpScalar *out) {
  int64_t address = access_address(machine, access, lane, true);
  const InterpStorage *storage = machine->frame[access->data].storage;
  for (int i = 0; i < access->element_lanes; i++, address += access->element_bytes) {
    check_written(machine, access, storage, address, lane);
    load_value(type, storage->data + address, &out[i]);
  }
}

void eval_load_scalar(Machine *machine, const InterpNode *node) {
  const InterpAccess *access = node->as.access;
  int64_t address = fixed_address(machine, access);
  const InterpStorage *storage = machine->frame[access->data].storage;
  check_written(machine, access, storage, address, 0);
  load_value(node->type, storage->data + address, machine->frame + node->out);
}

void eval_load(Machine *machine, const InterpNode *node) {
  const InterpAccess *access = node->as.access;
  int lanes = access_prepare(machine, access), each = access->element_lanes;
  InterpScalar *out = machine->frame + node->out;
  for (int lane = 0; lane < lanes; lane++)
    if (lanes == 1 || lane_counts(machine, lane * each))
      load_element(machine, access, node->type, lane, out + lane * each);
}

void eval_address_of(Machine *machine, const InterpNode *node) {
  access_prepare(machine, node->as.access);
  InterpScalar *out = machine->frame + node->out;
  out[0] = machine->frame[node->as.access->data];
  out[1].i = access_address(machine, node->as.access, 0, false);
}

static void store_element(Machine *machine, const InterpAccess *access, int64_t address,
                          const InterpScalar *value) {
  DType type = dtype_lanes(access->buffer->type, 1);
  InterpStorage *storage = machine->frame[access->data].storage;
  if (storage->constant)
    machine_fail(machine, "%s is constant and cannot be stored to", access->buffer->name);
  for (int i = 0; i < access->element_lanes; i++, address += access->element_bytes) {
    if (dtype_is_float(type))
      number_store(type, storage->data + address, value[i].f);
    else
      number_store_int(type, storage->data + address, value[i].i);
    if (storage->written) memset(storage->written + address, 1, (size_t)access->element_bytes);
  }
}

void run_store(Machine *machine, const InterpStep *step) {
  const InterpAccess *access = step->as.store.access;
  machine->stmt = step->stmt;
  const InterpScalar *value = node_value(machine, step->as.store.value);
  if (access->is_scalar) {
    store_element(machine, access, fixed_address(machine, access), value);
    return;
  }
  int lanes = access_prepare(machine, access), each = access->element_lanes;
  int spread = step->as.store.value->lanes == 1 ? 0 : each; // a scalar goes to every lane
  for (int lane = 0; lane < lanes; lane++)
    store_element(machine, access, access_address(machine, access, lane, true),
                  value + lane * spread);
}
