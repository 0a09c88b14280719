// SPDX-License-Identifier: Apache-2.0
// Stands for CUDA's driver and for NVRTC in the tests: kernels are compiled by g++ and run on the
// processor. Linked once as libcuda.so.1 and once as libnvrtc.so.13. Environment variables:
//   CUDA_MOCK_LOG   a file to which calls of the driver and the compiler add lines
//   CUDA_MOCK_FAIL  "NAME,N,STATUS": call N of cuNAME, counted from 1, returns this error
//   CUDA_MOCK_ARCH  the architectures that the compiler knows; otherwise "75,90"
//   CUDA_MOCK_FOLDER  where it puts its files
// A call without a current context, with memory that was not allocated or with too many bytes
// returns an error, as the driver's functions do or should.
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

enum { INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_FILE = 301, NOT_FOUND = 500, NO_CONTEXT = 201 };

struct Three {
  unsigned x, y, z;
};
typedef void (*Launcher)(Three blocks, Three threads, void **arguments);

static std::string variable(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value ? value : otherwise;
}

static void log_line(const char *format, ...) {
  const std::string path = variable("CUDA_MOCK_LOG", "");
  FILE *file = path.empty() ? nullptr : fopen(path.c_str(), "a");
  if (!file) return;
  va_list args;
  va_start(args, format);
  vfprintf(file, format, args);
  va_end(args);
  fputc('\n', file);
  fclose(file);
}

// The error that a call of this function is to return; 0: none.
static int failure_of(const char *function) {
  static std::map<std::string, int> calls;
  char name[64] = "";
  int number = 0, status = 0;
  calls[function]++;
  if (sscanf(variable("CUDA_MOCK_FAIL", "").c_str(), "%63[^,],%d,%d", name, &number, &status) != 3)
    return 0;
  return name == std::string(function) && number == calls[function] ? status : 0;
}

#define FAILS(name)                                                                                \
  if (int status = failure_of(name)) return status

// ---- The driver -------------------------------------------------------------------------------

static thread_local std::vector<void *> contexts;
static std::map<uint64_t, size_t> memory;
static int retained;

static bool fits(uint64_t address, size_t bytes) {
  const auto found = memory.find(address);
  return !contexts.empty() && found != memory.end() && bytes <= found->second;
}

extern "C" {
int cuInit(unsigned flags) {
  FAILS("Init");
  return flags ? INVALID_VALUE : 0;
}

int cuDeviceGet(int *device, int number) {
  FAILS("DeviceGet");
  *device = 7;
  return number ? INVALID_VALUE : 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (device != 7 || (attribute != 75 && attribute != 76)) return INVALID_VALUE;
  *value = attribute == 75 ? 8 : 6;
  return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  FAILS("DevicePrimaryCtxRetain");
  *context = &retained;
  retained++;
  log_line("retain");
  return device == 7 ? 0 : INVALID_VALUE;
}

int cuDevicePrimaryCtxRelease_v2(int device) {
  log_line("release");
  return device == 7 && retained-- > 0 ? 0 : INVALID_VALUE;
}

int cuCtxPushCurrent_v2(void *context) {
  FAILS("CtxPushCurrent");
  contexts.push_back(context);
  return context == &retained && retained ? 0 : INVALID_VALUE;
}

int cuCtxPopCurrent_v2(void **context) {
  if (contexts.empty()) return NO_CONTEXT;
  *context = contexts.back();
  contexts.pop_back();
  return 0;
}

int cuCtxSynchronize() {
  FAILS("CtxSynchronize");
  log_line("synchronize");
  return contexts.empty() ? NO_CONTEXT : 0;
}

// The mock's PTX is a comment with the path of a library.
int cuModuleLoadData(void **module, const void *image) {
  FAILS("ModuleLoadData");
  const char *path = strstr((const char *)image, "// code: ");
  if (contexts.empty() || !path) return contexts.empty() ? NO_CONTEXT : INVALID_VALUE;
  *module = dlopen(std::string(path + 9, strcspn(path + 9, "\n")).c_str(), RTLD_NOW);
  log_line("load");
  return *module ? 0 : NO_FILE;
}

int cuModuleUnload(void *module) {
  log_line("unload");
  return contexts.empty() ? NO_CONTEXT : dlclose(module);
}

int cuModuleGetFunction(void **function, void *module, const char *name) {
  FAILS("ModuleGetFunction");
  *function = dlsym(module, (std::string("launch_") + name).c_str());
  log_line("function %s", name);
  return contexts.empty() ? NO_CONTEXT : *function ? 0 : NOT_FOUND;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  FAILS("MemAlloc");
  log_line("allocate %zu", bytes);
  if (contexts.empty() || !bytes) return contexts.empty() ? NO_CONTEXT : INVALID_VALUE;
  *address = (uint64_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
  memory[*address] = bytes;
  return *address ? 0 : OUT_OF_MEMORY;
}

int cuMemFree_v2(uint64_t address) {
  log_line("free");
  if (!fits(address, 0)) return INVALID_VALUE;
  memory.erase(address);
  free((void *)address);
  return 0;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  FAILS("MemcpyHtoD");
  log_line("copy in %zu", bytes);
  if (!fits(to, bytes)) return INVALID_VALUE;
  memcpy((void *)to, from, bytes);
  return 0;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  FAILS("MemcpyDtoH");
  log_line("copy out %zu", bytes);
  if (!fits(from, bytes)) return INVALID_VALUE;
  memcpy(to, (const void *)from, bytes);
  return 0;
}

int cuLaunchKernel(void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned shared,
                   void *stream, void **arguments, void **more) {
  FAILS("LaunchKernel");
  log_line("launch (%u, %u, %u) of (%u, %u, %u)", blocks_x, blocks_y, blocks_z, threads_x,
           threads_y, threads_z);
  bool none = !blocks_x || !blocks_y || !blocks_z || !threads_x || !threads_y || !threads_z;
  if (contexts.empty()) return NO_CONTEXT;
  if (none || blocks_y > 65535 || blocks_z > 65535 || threads_x * threads_y * threads_z > 1024 ||
      shared || stream || more)
    return INVALID_VALUE;
  ((Launcher)function)({blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z},
                       arguments);
  return 0;
}
}

// ---- The compiler -----------------------------------------------------------------------------

struct Program {
  std::string text, log, ptx;
};

static std::vector<int> architectures() {
  std::vector<int> result;
  std::stringstream text(variable("CUDA_MOCK_ARCH", "75,90"));
  for (std::string one; std::getline(text, one, ',');) result.push_back(std::stoi(one));
  return result;
}

static std::string contents(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A function launch_NAME for each kernel of the text.
static std::string launchers(const std::string &text) {
  static const std::regex kernel("extern \"C\" __global__ .*\n(\\w+)\\(");
  std::string result;
  for (std::sregex_iterator i(text.begin(), text.end(), kernel), end; i != end; ++i)
    result += "extern \"C\" void launch_" + i->str(1) +
              "(Three blocks, Three threads, void **arguments) {\n  launch_with(" + i->str(1) +
              ", blocks, threads, arguments);\n}\n";
  return result;
}

extern "C" {
int nvrtcGetNumSupportedArchs(int *count) {
  *count = (int)architectures().size();
  return 0;
}

int nvrtcGetSupportedArchs(int *known) {
  for (int one : architectures()) *known++ = one;
  return 0;
}

int nvrtcCreateProgram(Program **program, const char *text, const char *, int, const char *const *,
                       const char *const *) {
  FAILS("CreateProgram");
  *program = new Program{text, "", ""};
  return 0;
}

int nvrtcDestroyProgram(Program **program) {
  delete *program;
  *program = nullptr;
  return 0;
}

int nvrtcCompileProgram(Program *program, int count, const char *const *options) {
  std::string folder = variable("CUDA_MOCK_FOLDER", ".") + "/cuda_XXXXXX";
  if (!mkdtemp(folder.data())) return 1;
  const std::string source = folder + "/kernels.cpp", code = folder + "/kernels.so",
                    log = folder + "/log";
  std::ofstream(source) << program->text << launchers(program->text);
  const std::string command = "g++ -std=c++17 -O1 -ffp-contract=off -fno-strict-aliasing -shared "
                              "-fPIC -pthread -w -include " CUDA_ON_PROCESSOR " -o " +
                              code + " " + source + " > " + log + " 2>&1";
  const int status = system(command.c_str());
  program->log = contents(log);
  std::string words;
  for (int i = 0; i < count; i++) words += std::string(" ") + options[i];
  log_line("compile%s", words.c_str());
  program->ptx = "// code: " + code + "\n";
  return status ? 6 : failure_of("CompileProgram");
}

int nvrtcGetProgramLogSize(Program *program, size_t *bytes) {
  *bytes = program->log.size() + 1;
  return 0;
}

int nvrtcGetProgramLog(Program *program, char *log) {
  strcpy(log, program->log.c_str());
  return 0;
}

int nvrtcGetPTXSize(Program *program, size_t *bytes) {
  *bytes = program->ptx.size() + 1;
  return 0;
}

int nvrtcGetPTX(Program *program, char *text) {
  strcpy(text, program->ptx.c_str());
  return 0;
}
}
