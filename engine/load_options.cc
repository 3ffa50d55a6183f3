#include "engine/load_options.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "engine/formats/json_fields.h"
#include "engine/formats/mapped_file.h"

namespace docmem::engine {
namespace {

constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kChatTemplate = "chat_template.jinja";

at::Device ParseCuda(const std::string& name) {
#ifdef DOCMEM_CUDA
  const std::string_view number = std::string_view(name).substr(std::min<size_t>(5, name.size()));
  int index = 0;
  for (const char digit : number) {
    if (digit < '0' || digit > '9' || index > 99) {
      ThrowInvalidArgument("device", "must be \"cpu\" or \"cuda:N\", not \"" + name + "\"");
    }
    index = index * 10 + (digit - '0');
  }
  if (index >= static_cast<int>(at::getNumGPUs())) {
    ThrowInvalidArgument("device", "\"" + name + "\" isn't there: this machine has " +
                                       std::to_string(at::getNumGPUs()) + " usable GPUs");
  }
  return {at::kCUDA, static_cast<at::DeviceIndex>(index)};
#else
  ThrowFailedPrecondition("device", "\"" + name +
                                        "\" needs a program built with CUDA: configure "
                                        "with -DDOCMEM_CUDA=ON, or use \"cpu\"");
#endif
}

bool HasNativeBfloat16() {
#ifdef __x86_64__
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

std::string TemplateOf(const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (value.is_array()) {
    for (const Json& entry : value) {
      if (entry.is_object() && entry.value("name", Json()) == "default" &&
          entry.value("template", Json()).is_string()) {
        return entry["template"].get<std::string>();
      }
    }
  }
  ThrowInvalidArgument("tokenizer_config.json.chat_template",
                       "must be a string, or a list with an entry named \"default\"");
}

std::string ChatTemplate(const std::filesystem::path& model_dir) {
  if (std::filesystem::exists(model_dir / kChatTemplate)) {
    return std::string(MappedFile::Open(model_dir / kChatTemplate).text());
  }
  if (!std::filesystem::exists(model_dir / kTokenizerConfig)) {
    return {};
  }
  const MappedFile file = MappedFile::Open(model_dir / kTokenizerConfig);
  const Json json = ParseJson(file.text(), kTokenizerConfig);
  const Json* chat_template = JsonFields(json, kTokenizerConfig).Find("chat_template");
  return chat_template == nullptr ? std::string() : TemplateOf(*chat_template);
}

}  // namespace

at::Device ParseDevice(const std::string& name) {
  if (name == "cpu") {
    return at::kCPU;
  }
  if (name == "cuda" || name.starts_with("cuda:")) {
    return ParseCuda(name);
  }
  ThrowInvalidArgument("device", "must be \"cpu\" or \"cuda:N\", not \"" + name + "\"");
}

ComputeType ResolveDtype(const std::string& name, at::Device device) {
  if (name == "auto") {
    const bool native = device.is_cuda() || HasNativeBfloat16();
    return ResolveDtype(native ? "bfloat16" : "float32", device);
  }
  if (name == "float32" || name == "bfloat16") {
    return {.name = name, .dtype = name == "float32" ? at::kFloat : at::kBFloat16};
  }
  if (name == "int8" && device.is_cuda()) {
    ThrowUnimplemented("dtype", "\"int8\" weights are for the CPU; use \"bfloat16\" on a GPU");
  }
  if (name == "int8") {
    return {.name = name, .dtype = at::kBFloat16, .int8_weights = true};
  }
  ThrowInvalidArgument(
      "dtype", "must be \"auto\", \"float32\", \"bfloat16\" or \"int8\", not \"" + name + "\"");
}

std::string DtypeName(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? "bfloat16" : "float32";
}

void SetThreads(int threads) {
  if (threads < 0) {
    ThrowInvalidArgument("threads", "must be at least 0, not " + std::to_string(threads));
  }
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  at::set_num_threads(threads == 0 ? cores : threads);
}

PromptFormat LoadPromptFormat(const std::string& name_or_path,
                              const std::filesystem::path& model_dir, const Tokenizer& tokenizer) {
  if (name_or_path.empty()) {
    return PromptFormat::Choose(tokenizer, ChatTemplate(model_dir));
  }
  const bool is_path =
      name_or_path.ends_with(".json") || name_or_path.find('/') != std::string::npos;
  if (!is_path) {
    return PromptFormat::BuiltIn(name_or_path, tokenizer);
  }
  return PromptFormat::FromJson(MappedFile::Open(name_or_path).text(), tokenizer);
}

}  // namespace docmem::engine
