#include "training/checkpoint.h"

#include <ATen/ATen.h>

#include <span>
#include <utility>
#include <vector>

#include "engine/artifacts/number_text.h"
#include "engine/artifacts/sealed_file.h"
#include "engine/artifacts/tensor_bytes.h"
#include "engine/formats/error.h"

namespace docmem::training {
namespace {

using engine::MetadataMap;
using engine::NumberText;
using engine::SafetensorsView;
using engine::ThrowDataLoss;
using engine::ThrowFailedPrecondition;

constexpr const char* kName = "training checkpoint";
constexpr const char* kFormat = "docmem-training-1";
constexpr size_t kAlignment = 64;

std::string Field(const SafetensorsView& file, const char* key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) ThrowDataLoss(key, "the checkpoint lacks this field");
  return found->second;
}

int64_t Integer(const SafetensorsView& file, const char* key) {
  const auto value = engine::ParseInteger(Field(file, key));
  if (!value || *value < 0) ThrowDataLoss(key, "isn't a count");
  return *value;
}

double Number(const SafetensorsView& file, const char* key) {
  const auto value = engine::ParseNumber(Field(file, key));
  if (!value) ThrowDataLoss(key, "isn't a number");
  return *value;
}

std::optional<double> OptionalNumber(const SafetensorsView& file, const char* key) {
  if (!file.metadata().contains(key)) return std::nullopt;
  return Number(file, key);
}

at::Tensor Vector(const SafetensorsView& file, const char* name) {
  const engine::TensorInfo* info = file.Find(name);
  if (info == nullptr || info->dtype != engine::DType::kF32 || info->shape.size() != 1) {
    ThrowDataLoss(name, "isn't a vector of the checkpoint");
  }
  return engine::AliasBytes(file.Data(*info), *info, nullptr, name).clone();
}

}  // namespace

std::string WriteCheckpoint(const TrainingState& state, const std::string& inputs) {
  MetadataMap metadata = {{"format", kFormat},
                          {"inputs", inputs},
                          {"step", std::to_string(state.step)},
                          {"evaluations", std::to_string(state.evaluations)},
                          {"bad_evaluations", std::to_string(state.bad_evaluations)},
                          {"trained_tokens", std::to_string(state.trained_tokens)},
                          {"loss", NumberText(state.loss)}};
  if (state.best_loss) metadata["best_loss"] = NumberText(*state.best_loss);
  if (state.holdout_loss) metadata["holdout_loss"] = NumberText(*state.holdout_loss);
  std::vector<std::pair<std::string, at::Tensor>> tensors = {
      {"values", state.values.cpu()},
      {"first_moment", state.first_moment.cpu()},
      {"second_moment", state.second_moment.cpu()}};
  if (state.best_values.defined()) tensors.emplace_back("best_values", state.best_values.cpu());
  std::vector<engine::TensorSource> sections;
  for (const auto& [name, tensor] : tensors) sections.push_back(engine::SectionOf(name, tensor));
  std::string file;
  engine::WriteSealedFile(sections, metadata, kAlignment, [&](std::span<const std::byte> bytes) {
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  return file;
}

TrainingState ReadCheckpoint(std::string_view bytes, const std::string& inputs) {
  const SafetensorsView file =
      engine::OpenSealedFile(std::as_bytes(std::span(bytes.data(), bytes.size())), kName);
  if (Field(file, "format") != kFormat) {
    ThrowFailedPrecondition("format", "the checkpoint is of another format; train anew");
  }
  if (Field(file, "inputs") != inputs) {
    ThrowFailedPrecondition("inputs",
                            "the checkpoint is of a training with another model, other examples "
                            "or other options; train anew");
  }
  TrainingState state{.step = Integer(file, "step"),
                      .evaluations = Integer(file, "evaluations"),
                      .bad_evaluations = Integer(file, "bad_evaluations"),
                      .best_loss = OptionalNumber(file, "best_loss"),
                      .loss = Number(file, "loss"),
                      .holdout_loss = OptionalNumber(file, "holdout_loss"),
                      .trained_tokens = static_cast<uint64_t>(Integer(file, "trained_tokens")),
                      .values = Vector(file, "values"),
                      .first_moment = Vector(file, "first_moment"),
                      .second_moment = Vector(file, "second_moment"),
                      .best_values = {}};
  if (file.Find("best_values") != nullptr) state.best_values = Vector(file, "best_values");
  return state;
}

}  // namespace docmem::training
