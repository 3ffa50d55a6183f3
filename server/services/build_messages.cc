#include "server/services/build_messages.h"

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

constexpr int kMaxRatios = 8;
constexpr int kMaxProfiles = 5;

v1::BuildProgress::Phase ToMessage(BuildProgress::Phase phase) {
  switch (phase) {
    case BuildProgress::Phase::kReceiving:
      return v1::BuildProgress::PHASE_RECEIVING;
    case BuildProgress::Phase::kQueued:
      return v1::BuildProgress::PHASE_QUEUED;
    case BuildProgress::Phase::kTokenizing:
      return v1::BuildProgress::PHASE_TOKENIZING;
    case BuildProgress::Phase::kPrefilling:
      return v1::BuildProgress::PHASE_PREFILLING;
    case BuildProgress::Phase::kPublishing:
      break;
  }
  return v1::BuildProgress::PHASE_PUBLISHING;
}

absl::StatusOr<std::vector<engine::Profile>> ToProfiles(
    const google::protobuf::RepeatedField<int>& profiles) {
  std::vector<engine::Profile> chosen;
  for (const int value : profiles) {
    const auto profile = FromMessage(static_cast<v1::Profile>(value));
    if (!profile) return InvalidField("profiles", absl::StrCat("unknown value ", value));
    chosen.push_back(*profile);
  }
  if (chosen.empty()) chosen.push_back(engine::Profile::kCompactor);
  return chosen;
}

// Whether keys and values shall be int8.
absl::StatusOr<bool> IsInt8(v1::KvDtype wanted, const std::string& models_own) {
  if (wanted == v1::KV_DTYPE_INT8) return true;
  const v1::KvDtype own = KvDtypeToMessage(models_own);
  if (wanted == v1::KV_DTYPE_UNSPECIFIED || wanted == own) return false;
  return InvalidField(
      "kv_dtype",
      absl::StrCat(v1::KvDtype_IsValid(wanted) ? v1::KvDtype_Name(wanted) : absl::StrCat(wanted),
                   " isn't possible with the running model; possible are ", v1::KvDtype_Name(own),
                   ", its own, and ", v1::KvDtype_Name(v1::KV_DTYPE_INT8)));
}

}  // namespace

absl::StatusOr<std::vector<engine::Compression>> ToCompressions(
    const google::protobuf::RepeatedField<uint32_t>& ratios_ppm,
    const google::protobuf::RepeatedField<int>& profiles, v1::KvDtype kv_dtype,
    const BuildDefaults& defaults) {
  if (ratios_ppm.size() > kMaxRatios) {
    return InvalidField("ratio_ppm", absl::StrCat("has ", ratios_ppm.size(), " values; at most ",
                                                  kMaxRatios, " are allowed"));
  }
  if (profiles.size() > kMaxProfiles) {
    return InvalidField("profiles", absl::StrCat("has ", profiles.size(), " values; at most ",
                                                 kMaxProfiles, " are allowed"));
  }
  const absl::StatusOr<bool> int8 = IsInt8(kv_dtype, defaults.kv_dtype);
  if (!int8.ok()) return int8.status();
  absl::StatusOr<std::vector<engine::Profile>> chosen = ToProfiles(profiles);
  if (!chosen.ok()) return chosen.status();
  std::vector<uint32_t> ratios(ratios_ppm.begin(), ratios_ppm.end());
  if (ratios.empty()) ratios.push_back(defaults.ratio_ppm);
  std::vector<engine::Compression> compressions;
  for (const uint32_t ratio : ratios) {
    if (absl::Status status = CheckRatio("ratio_ppm", ratio); !status.ok()) return status;
    for (const engine::Profile profile : *chosen) {
      compressions.push_back({.ratio_ppm = ratio, .profile = profile, .int8 = *int8});
    }
  }
  return compressions;
}

v1::BuildProgress ToMessage(const BuildProgress& progress) {
  v1::BuildProgress message;
  message.set_phase(ToMessage(progress.phase));
  message.set_fraction(progress.fraction);
  message.set_received_bytes(progress.received_bytes);
  message.set_context_tokens(progress.context_tokens);
  message.set_elapsed_seconds(absl::ToDoubleSeconds(progress.elapsed));
  return message;
}

v1::BuildSeconds SecondsOf(const BuildResult& result) {
  v1::BuildSeconds seconds;
  seconds.set_queue(absl::ToDoubleSeconds(result.queue));
  seconds.set_tokenize(absl::ToDoubleSeconds(result.tokenize));
  seconds.set_prefill(absl::ToDoubleSeconds(result.prefill));
  seconds.set_score(absl::ToDoubleSeconds(result.score));
  seconds.set_publish(absl::ToDoubleSeconds(result.publish));
  return seconds;
}

v1::IngestResult ToIngestResult(const BuildResult& result) {
  v1::IngestResult message;
  *message.mutable_document() = ToMessage(result.document);
  for (const std::string& id : result.built_cache_ids) message.add_built_cache_ids(id);
  *message.mutable_seconds() = SecondsOf(result);
  message.set_training_job_id(result.training_id);
  return message;
}

v1::BuildCacheResult ToBuildCacheResult(const BuildResult& result) {
  v1::BuildCacheResult message;
  for (const std::string& id : result.cache_ids) {
    for (const store::Cache& cache : result.document.caches) {
      if (cache.spec.id == id) *message.add_caches() = ToMessage(cache);
    }
  }
  for (const std::string& id : result.built_cache_ids) message.add_built_cache_ids(id);
  *message.mutable_seconds() = SecondsOf(result);
  return message;
}

}  // namespace docmem::server
