#include "server/services/messages.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace docmem::server {
namespace {

v1::Document::State ToMessage(store::DocumentState state) {
  switch (state) {
    case store::DocumentState::kBuilding:
      return v1::Document::STATE_BUILDING;
    case store::DocumentState::kReady:
      return v1::Document::STATE_READY;
    case store::DocumentState::kFailed:
      return v1::Document::STATE_FAILED;
    case store::DocumentState::kQuarantined:
      return v1::Document::STATE_QUARANTINED;
  }
  return v1::Document::STATE_UNSPECIFIED;
}

v1::Adapter::State StateOf(const store::Adapter& adapter) {
  if (adapter.quarantined()) return v1::Adapter::STATE_QUARANTINED;
  return adapter.state == store::AdapterState::kStale ? v1::Adapter::STATE_STALE
                                                      : v1::Adapter::STATE_READY;
}

void AddModules(const std::string& description, v1::Adapter* message) {
  const auto modules = nlohmann::json::parse(description, nullptr, /*allow_exceptions=*/false);
  if (!modules.is_array()) return;
  for (const auto& module : modules) {
    v1::AdapterModule* added = message->add_modules();
    added->set_name(module.value("name", ""));
    added->set_rank(module.value("rank", 0U));
    added->set_scale(module.value("scale", 0.0));
  }
}

}  // namespace

google::protobuf::Timestamp ToMessage(absl::Time time) {
  const int64_t nanos = absl::ToUnixNanos(time);
  constexpr int64_t kSecond = 1'000'000'000;
  google::protobuf::Timestamp message;
  message.set_seconds(nanos / kSecond);
  message.set_nanos(static_cast<int32_t>(nanos % kSecond));
  return message;
}

v1::Mode ToMessage(engine::Mode mode) { return static_cast<v1::Mode>(static_cast<int>(mode) + 1); }

std::optional<engine::Mode> FromMessage(v1::Mode mode) {
  if (mode == v1::MODE_UNSPECIFIED || !v1::Mode_IsValid(mode)) return std::nullopt;
  return static_cast<engine::Mode>(static_cast<int>(mode) - 1);
}

v1::AdapterScope ToMessage(engine::AdapterScope scope) {
  return static_cast<v1::AdapterScope>(static_cast<int>(scope) + 1);
}

std::optional<engine::AdapterScope> FromMessage(v1::AdapterScope scope) {
  if (scope == v1::ADAPTER_SCOPE_UNSPECIFIED || !v1::AdapterScope_IsValid(scope)) {
    return std::nullopt;
  }
  return static_cast<engine::AdapterScope>(static_cast<int>(scope) - 1);
}

v1::Profile ProfileToMessage(const std::string& name) {
  const std::optional<engine::Profile> profile = engine::ProfileFromName(name);
  if (!profile) return v1::PROFILE_UNSPECIFIED;
  return static_cast<v1::Profile>(static_cast<int>(*profile) + 1);
}

std::optional<engine::Profile> FromMessage(v1::Profile profile) {
  if (profile == v1::PROFILE_UNSPECIFIED || !v1::Profile_IsValid(profile)) return std::nullopt;
  return static_cast<engine::Profile>(static_cast<int>(profile) - 1);
}

v1::KvDtype KvDtypeToMessage(const std::string& name) {
  constexpr std::pair<const char*, v1::KvDtype> kNames[] = {{"float32", v1::KV_DTYPE_FLOAT32},
                                                            {"bfloat16", v1::KV_DTYPE_BFLOAT16},
                                                            {"float16", v1::KV_DTYPE_FLOAT16},
                                                            {"int8", v1::KV_DTYPE_INT8}};
  for (const auto& [known, value] : kNames) {
    if (name == known) return value;
  }
  return v1::KV_DTYPE_UNSPECIFIED;
}

v1::Tier ToMessage(store::Tier tier) { return static_cast<v1::Tier>(static_cast<int>(tier) + 1); }

v1::ArtifactKind ToMessage(store::ResidentKind kind) {
  return kind == store::ResidentKind::kCache ? v1::ARTIFACT_KIND_CACHE : v1::ARTIFACT_KIND_ADAPTER;
}

v1::Collection ToMessage(const store::Collection& collection) {
  v1::Collection message;
  message.set_name(collection.name);
  message.set_revision(collection.revision);
  *message.mutable_create_time() = ToMessage(collection.created);
  *message.mutable_update_time() = ToMessage(collection.updated);
  message.set_document_count(static_cast<uint32_t>(collection.documents));
  message.set_stored_bytes(collection.stored_bytes);
  const store::CollectionSettings& from = collection.settings;
  v1::CollectionSettings* settings = message.mutable_settings();
  settings->set_retain_text(from.retain_text);
  settings->set_lexical_index(from.lexical_index);
  settings->set_default_ratio_ppm(from.default_ratio_ppm);
  if (const auto mode = engine::ModeFromName(from.default_mode)) {
    settings->set_default_mode(ToMessage(*mode));
  }
  v1::CollectionLimits* limits = settings->mutable_limits();
  limits->set_max_in_flight(from.limits.max_in_flight);
  limits->set_max_queued(from.limits.max_queued);
  limits->set_max_bytes(from.limits.max_bytes);
  limits->set_max_documents(from.limits.max_documents);
  return message;
}

v1::Cache ToMessage(const store::Cache& cache) {
  const store::CacheSpec& spec = cache.spec;
  v1::Cache message;
  message.set_id(spec.id);
  message.set_state(cache.file.quarantined ? v1::Cache::STATE_QUARANTINED : v1::Cache::STATE_READY);
  message.set_ratio_ppm(spec.ratio_ppm);
  message.set_profile(ProfileToMessage(spec.profile));
  message.set_kv_dtype(KvDtypeToMessage(spec.kv_dtype));
  message.set_writer_adapter_hash(spec.writer_adapter_hash);
  message.set_scorer_adapter_hash(spec.scorer_adapter_hash);
  message.set_system_text_digest(spec.system_text_digest);
  message.set_head_tokens(spec.head_tokens);
  message.set_context_tokens(spec.context_tokens);
  message.set_kept_tokens(spec.kept_tokens);
  message.set_stored_bytes(cache.file.bytes);
  message.set_device_bytes(spec.device_bytes);
  message.set_full_bytes(spec.full_bytes);
  *message.mutable_create_time() = ToMessage(cache.created);
  return message;
}

v1::Document ToMessage(const store::Document& document) {
  const store::DocumentSpec& spec = document.spec;
  v1::Document message;
  message.set_collection(document.key.collection);
  message.set_id(document.key.id);
  message.set_state(ToMessage(document.state));
  message.set_state_message(document.state_reason);
  message.set_title(spec.title);
  for (const auto& [key, value] : spec.labels) (*message.mutable_labels())[key] = value;
  message.set_pinned(spec.pinned);
  message.set_text_retained(document.text.has_value());
  message.set_text_bytes(spec.text_bytes);
  message.set_text_sha256(spec.text_sha256);
  message.set_document_tokens(document.document_tokens);
  message.set_system_text(spec.system_text);
  for (const store::Cache& cache : document.caches) *message.add_caches() = ToMessage(cache);
  message.set_default_cache_id(document.default_cache_id);
  message.set_current_adapter_version(document.current_adapter_version);
  message.set_adapter_count(document.adapter_count);
  message.set_stored_bytes(document.stored_bytes);
  message.set_revision(document.revision);
  *message.mutable_create_time() = ToMessage(document.created);
  *message.mutable_update_time() = ToMessage(document.updated);
  v1::Evaluation evaluation;
  if (!document.evaluation.empty() && evaluation.ParseFromString(document.evaluation)) {
    *message.mutable_evaluation() = std::move(evaluation);
  }
  return message;
}

v1::Adapter ToMessage(const store::Adapter& adapter) {
  const store::AdapterSpec& spec = adapter.spec;
  v1::Adapter message;
  message.set_collection(adapter.document.collection);
  message.set_document(adapter.document.id);
  message.set_version(adapter.version);
  message.set_hash(spec.hash);
  message.set_state(StateOf(adapter));
  message.set_current(adapter.current);
  if (const auto scope = engine::ScopeFromName(spec.scope)) message.set_scope(ToMessage(*scope));
  message.set_base_model(spec.base_model);
  AddModules(spec.description, &message);
  message.set_stored_bytes(adapter.stored_bytes());
  message.set_device_bytes(spec.device_bytes);
  message.set_prompt_format_digest(spec.prompt_format_digest);
  message.set_text_digest(spec.text_digest);
  message.set_training_job_id(spec.training_job_id);
  *message.mutable_create_time() = ToMessage(adapter.created);
  return message;
}

}  // namespace docmem::server
