#include "server/jobs/training_codec.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace docmem::server {
namespace {

using nlohmann::json;

constexpr char kIdPrefix[] = "training-";

json ToJson(const std::vector<training::QaPair>& pairs) {
  json list = json::array();
  for (const training::QaPair& pair : pairs) {
    json item = {{"question", pair.question}, {"answer", pair.answer}};
    if (pair.chunk) item["chunk"] = *pair.chunk;
    list.push_back(std::move(item));
  }
  return list;
}

std::vector<training::QaPair> PairsFromJson(const json& list) {
  std::vector<training::QaPair> pairs;
  for (const json& item : list) {
    training::QaPair pair{.question = item.at("question"), .answer = item.at("answer")};
    if (item.contains("chunk")) pair.chunk = item["chunk"].get<size_t>();
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

template <class Value>
json OrNull(const std::optional<Value>& value) {
  return value ? json(*value) : json();
}

template <class Value>
std::optional<Value> Maybe(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<Value>();
}

json OrNull(absl::Time time) {
  return time == absl::InfinitePast() ? json() : json(absl::ToUnixNanos(time));
}

absl::Time TimeOf(const json& value) {
  return value.is_null() ? absl::InfinitePast() : absl::FromUnixNanos(value.get<int64_t>());
}

}  // namespace

std::string WriteTraining(const StoredTraining& training) {
  const TrainingRequest& request = training.request;
  return json{{"options", training::OptionsJson(request.options)},
              {"given_pairs", ToJson(request.pairs)},
              {"synthetic_pairs", OrNull(request.synthetic_pairs)},
              {"keep_current", request.keep_current},
              {"text_sha256", training.text_sha256},
              {"synthesized", training.synthesized},
              {"pairs", ToJson(training.pairs)}}
      .dump();
}

absl::StatusOr<StoredTraining> ReadTraining(const std::string& bytes) {
  try {
    const json whole = json::parse(bytes);
    StoredTraining training;
    training.request.options = training::OptionsFromJson(whole.at("options").get<std::string>());
    training.request.pairs = PairsFromJson(whole.at("given_pairs"));
    training.request.synthetic_pairs = Maybe<uint32_t>(whole.at("synthetic_pairs"));
    training.request.keep_current = whole.at("keep_current");
    training.text_sha256 = whole.at("text_sha256");
    training.synthesized = whole.at("synthesized");
    training.pairs = PairsFromJson(whole.at("pairs"));
    return training;
  } catch (const std::exception&) {
    return absl::DataLossError("what was to be trained can't be read from the registry");
  }
}

std::string WriteReport(const TrainingReport& report) {
  return json{{"state", static_cast<int>(report.state)},
              {"message", report.message},
              {"step", report.step},
              {"total_steps", report.total_steps},
              {"loss", report.loss},
              {"holdout_loss", OrNull(report.holdout_loss)},
              {"tokens_per_second", report.tokens_per_second},
              {"remaining_seconds", report.remaining_seconds},
              {"qa_given", report.qa_given},
              {"qa_synthesized", report.qa_synthesized},
              {"qa_dropped", report.qa_dropped},
              {"adapter_version", report.adapter_version},
              {"started", OrNull(report.started)},
              {"ended", OrNull(report.ended)}}
      .dump();
}

absl::Status ReadReport(const std::string& bytes, TrainingReport* report) {
  try {
    const json whole = json::parse(bytes);
    TrainingReport read = *report;
    const int state = whole.at("state");
    if (state < 0 || state > static_cast<int>(TrainingState::kCancelled)) {
      return absl::DataLossError("a training's report names an unknown state");
    }
    read.state = static_cast<TrainingState>(state);
    read.message = whole.at("message");
    read.step = whole.at("step");
    read.total_steps = whole.at("total_steps");
    read.loss = whole.at("loss");
    read.holdout_loss = Maybe<double>(whole.at("holdout_loss"));
    read.tokens_per_second = whole.at("tokens_per_second");
    read.remaining_seconds = whole.at("remaining_seconds");
    read.qa_given = whole.at("qa_given");
    read.qa_synthesized = whole.at("qa_synthesized");
    read.qa_dropped = whole.at("qa_dropped");
    read.adapter_version = whole.at("adapter_version");
    read.started = TimeOf(whole.at("started"));
    read.ended = TimeOf(whole.at("ended"));
    *report = std::move(read);
    return absl::OkStatus();
  } catch (const std::exception&) {
    return absl::DataLossError("a training's report can't be read from the registry");
  }
}

std::string TrainingId(int64_t row) { return absl::StrCat(kIdPrefix, row); }

int64_t RowOfTraining(const std::string& id) {
  absl::string_view number = id;
  int64_t row = 0;
  if (!absl::ConsumePrefix(&number, kIdPrefix) || !absl::SimpleAtoi(number, &row)) return 0;
  return row > 0 && TrainingId(row) == id ? row : 0;  // not the number written in another way
}

}  // namespace docmem::server
