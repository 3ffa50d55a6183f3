#include "server/query/resolver.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/artifacts/cache_identity.h"
#include "engine/model/model_config.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"

namespace docmem::server {
namespace {

using engine::Mode;

std::string NameOf(const store::DocumentKey& key) {
  return absl::StrCat("document '", key.id, "' of collection '", key.collection, "'");
}

absl::Status CheckReady(const store::Document& document) {
  switch (document.state) {
    case store::DocumentState::kReady:
      return absl::OkStatus();
    case store::DocumentState::kQuarantined:
      return Error(absl::StatusCode::kDataLoss, reason::kDocumentQuarantined,
                   absl::StrCat(NameOf(document.key), " is quarantined: ", document.state_reason,
                                "; delete it and ingest it again"));
    case store::DocumentState::kFailed:
      return Error(absl::StatusCode::kFailedPrecondition, reason::kDocumentNotReady,
                   absl::StrCat("the ingestion of ", NameOf(document.key),
                                " failed: ", document.state_reason, "; ingest it again"));
    case store::DocumentState::kBuilding:
      break;
  }
  return Error(absl::StatusCode::kFailedPrecondition, reason::kDocumentNotReady,
               absl::StrCat(NameOf(document.key), " is still being built"));
}

absl::Status CheckModeFits(const Question& question) {
  const bool adapter_prefill = question.mode && !engine::UsesBaseCache(*question.mode);
  if (question.mode == Mode::kBase && question.adapter_version != 0) {
    return InvalidField("memory.adapter_version",
                        "the mode BASE uses no adapter; leave the version out or choose another "
                        "mode");
  }
  if (adapter_prefill && question.scope == engine::AdapterScope::kAnswerOnly) {
    return InvalidField("memory.adapter_scope",
                        "a scope of the answer alone doesn't go with a mode whose cache the "
                        "adapter has written");
  }
  if (adapter_prefill) {
    return Error(absl::StatusCode::kUnimplemented, reason::kNotImplemented,
                 absl::StrCat("the mode ", std::string(engine::ModeName(*question.mode)),
                              " doesn't exist yet"));
  }
  return absl::OkStatus();
}

std::string Describe(const store::Cache& cache) {
  return absl::StrCat(cache.spec.id, " (ratio ", cache.spec.ratio_ppm / 1e6, ", ",
                      cache.spec.profile, ", ", cache.spec.kv_dtype, ")");
}

bool Scored(uint32_t ratio_ppm) { return ratio_ppm != 0 && ratio_ppm != engine::kRatioOnePpm; }

bool Matches(const Question& question, const store::CacheSpec& spec) {
  if (!spec.writer_adapter_hash.empty() || !spec.scorer_adapter_hash.empty()) return false;
  if (spec.ratio_ppm != *question.ratio_ppm) return false;
  return !question.profile || !Scored(spec.ratio_ppm) ||
         spec.profile == engine::ProfileName(*question.profile);
}

}  // namespace

absl::StatusOr<ResolvedQuestion> Resolver::Resolve(const Question& question) const {
  if (absl::Status status = CheckModeFits(question); !status.ok()) return status;
  absl::StatusOr<store::Document> document = store_->GetDocument(question.document);
  if (!document.ok()) return document.status();
  if (absl::Status status = CheckReady(*document); !status.ok()) return status;

  ResolvedQuestion resolved;
  resolved.document = document->key;
  absl::StatusOr<Mode> mode = DecideMode(question, *document);
  if (!mode.ok()) return mode.status();
  resolved.mode = *mode;
  if (engine::UsesAdapter(*mode)) {
    absl::StatusOr<store::Adapter> adapter = ChooseAdapter(question, *document);
    if (!adapter.ok()) return adapter.status();
    resolved.scope =
        question.scope.value_or(engine::ScopeFromName(adapter->spec.scope)
                                    .value_or(engine::AdapterScope::kQuestionAndAnswer));
    resolved.adapter = *std::move(adapter);
  }

  absl::StatusOr<std::optional<store::Cache>> cache = ChooseCache(question, *document);
  if (!cache.ok()) return cache.status();
  resolved.cache = *std::move(cache);
  resolved.ratio_ppm =
      resolved.cache ? resolved.cache->spec.ratio_ppm : question.ratio_ppm.value_or(0);
  resolved.profile = question.profile.value_or(engine::Profile::kCompactor);

  if (absl::Status status = EncodePrompt(question, resolved); !status.ok()) return status;
  if (absl::Status status = CheckLength(question, resolved); !status.ok()) return status;
  return resolved;
}

absl::StatusOr<Mode> Resolver::DecideMode(const Question& question,
                                          const store::Document& document) const {
  if (question.mode) return *question.mode;
  if (question.adapter_version != 0) return Mode::kBaseKvAdapterDecode;
  absl::StatusOr<store::Collection> collection = store_->GetCollection(document.key.collection);
  if (!collection.ok()) return collection.status();
  if (const auto mode = engine::ModeFromName(collection->settings.default_mode)) {
    Question as_asked = question;
    as_asked.mode = mode;
    if (absl::Status status = CheckModeFits(as_asked); !status.ok()) return status;
    return *mode;
  }
  return document.current_adapter_version != 0 ? Mode::kBaseKvAdapterDecode : Mode::kBase;
}

absl::StatusOr<store::Adapter> Resolver::ChooseAdapter(const Question& question,
                                                       const store::Document& document) const {
  if (question.adapter_version == 0 && document.current_adapter_version == 0) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kNoCurrentAdapter,
                 absl::StrCat(NameOf(document.key),
                              " has no current adapter; upload one, choose a version, or ask "
                              "with the mode BASE"));
  }
  absl::StatusOr<store::Adapter> adapter =
      store_->GetAdapter(document.key, question.adapter_version);
  if (!adapter.ok()) return adapter;
  const std::string name =
      absl::StrCat("adapter version ", adapter->version, " of ", NameOf(document.key));
  if (adapter->quarantined()) {
    return Error(absl::StatusCode::kDataLoss, reason::kArtifactDamaged,
                 absl::StrCat(name, " is damaged and quarantined; upload it again"));
  }
  if (question.allow_adapter_mismatch) return adapter;
  if (adapter->state == store::AdapterState::kStale) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kAdapterStale,
                 absl::StrCat(name, " was made for an earlier text"));
  }
  if (adapter->spec.prompt_format_digest != engine_->prompt_format().digest()) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kAdapterMismatch,
                 absl::StrCat(name, " was made for another prompt format (",
                              adapter->spec.prompt_format_digest,
                              ", running: ", engine_->prompt_format().digest(),
                              "); allow_adapter_mismatch overrides"),
                 {{"field", "prompt_format_digest"}});
  }
  if (adapter->spec.text_digest != document.spec.text_sha256) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kAdapterMismatch,
                 absl::StrCat(name,
                              " was made for another text; allow_adapter_mismatch "
                              "overrides"),
                 {{"field", "text_digest"}});
  }
  return adapter;
}

absl::StatusOr<std::optional<store::Cache>> Resolver::ChooseCache(
    const Question& question, const store::Document& document) const {
  std::vector<const store::Cache*> matches;
  for (const store::Cache& cache : document.caches) {
    const bool chosen = !question.cache_id.empty() ? cache.spec.id == question.cache_id
                        : question.ratio_ppm       ? Matches(question, cache.spec)
                                                   : cache.spec.id == document.default_cache_id;
    if (chosen) matches.push_back(&cache);
  }
  // Caches of another model stay behind after a change of model: they aren't candidates beside one
  // that fits.
  std::vector<const store::Cache*> usable;
  absl::Status refusal;
  for (const store::Cache* cache : matches) {
    const auto fits = CatchEngine([&] {
      engine::CacheIdentity::FromFields({cache->spec.identity.begin(), cache->spec.identity.end()})
          .RequireModel(engine_->identity());
      return true;
    });
    if (fits.ok()) {
      usable.push_back(cache);
    } else {
      refusal = fits.status();
    }
  }
  if (usable.empty() && question.build_if_missing && question.ratio_ppm) return std::nullopt;
  if (usable.empty() && !matches.empty()) return refusal;
  const auto describe = [](std::string* out, const auto& cache) {
    absl::StrAppend(out, Describe(*cache));
  };
  if (usable.empty()) {
    std::vector<const store::Cache*> all;
    for (const store::Cache& cache : document.caches) all.push_back(&cache);
    const std::string available = absl::StrJoin(all, ", ", describe);
    return Error(absl::StatusCode::kNotFound, reason::kCacheNotFound,
                 absl::StrCat(NameOf(document.key), " has no such cache; it has: ",
                              available.empty() ? "none" : available),
                 {{"available", available}});
  }
  if (usable.size() > 1) {
    return Error(absl::StatusCode::kInvalidArgument, reason::kCacheAmbiguous,
                 absl::StrCat("several caches match, choose one by its id: ",
                              absl::StrJoin(usable, ", ", describe)),
                 {{"field", "memory.ratio_ppm"},
                  {"cache_ids", absl::StrJoin(usable, ",", [](std::string* out, auto* cache) {
                     absl::StrAppend(out, cache->spec.id);
                   })}});
  }
  if (usable.front()->file.quarantined) {
    return Error(absl::StatusCode::kDataLoss, reason::kArtifactDamaged,
                 absl::StrCat("cache ", usable.front()->spec.id, " of ", NameOf(document.key),
                              " is damaged and quarantined; delete it and build it again"));
  }
  return *usable.front();
}

absl::Status Resolver::EncodePrompt(const Question& question, ResolvedQuestion& resolved) const {
  return CatchEngine([&] {
           const engine::PromptFormat& format = engine_->prompt_format();
           resolved.prompt_ids =
               format.QuestionIds(question.history, question.instruction, question.question);
           if (question.answer_to_score) {
             resolved.answer_ids = format.AnswerIds(*question.answer_to_score);
           }
           return true;
         })
      .status();
}

absl::Status Resolver::CheckLength(const Question& question,
                                   const ResolvedQuestion& resolved) const {
  if (!resolved.cache) return absl::OkStatus();
  const store::CacheSpec& spec = resolved.cache->spec;
  const uint64_t context =
      spec.kept_tokens == spec.head_tokens ? spec.head_tokens : spec.context_tokens;
  const uint64_t answer =
      question.answer_to_score ? resolved.answer_ids.size() : question.max_tokens;
  const uint64_t need = context + resolved.prompt_ids.size() + answer;
  const auto positions = static_cast<uint64_t>(engine_->config().max_positions);
  if (need <= positions) return absl::OkStatus();
  return Error(
      absl::StatusCode::kInvalidArgument, reason::kContextTooLong,
      absl::StrCat("context ", context, " + prompt ", resolved.prompt_ids.size(), " + answer ",
                   answer, " = ", need, " tokens, but the model has ", positions, " positions"),
      {{"field", question.answer_to_score ? "answer" : "max_tokens"}});
}

}  // namespace docmem::server
