#include "server/query/resolver.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/model/model_config.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/query/cache_choice.h"
#include "server/runtime/adapter_choice.h"

namespace docmem::server {
namespace {

using engine::Mode;

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

absl::Status CheckModeFits(const Question& question, Mode mode) {
  if (mode == Mode::kBase && question.adapter_version != 0) {
    return InvalidField("memory.adapter_version",
                        "the mode BASE uses no adapter; leave the version out or choose another "
                        "mode");
  }
  if (!engine::UsesBaseCache(mode) && question.scope == engine::AdapterScope::kAnswerOnly) {
    return InvalidField("memory.adapter_scope",
                        "a scope of the answer alone doesn't go with a mode whose cache the "
                        "adapter has written");
  }
  return absl::OkStatus();
}

absl::StatusOr<engine::AdapterScope> DecideScope(const Question& question, Mode mode,
                                                 const store::Adapter& adapter) {
  if (question.scope) return *question.scope;
  const engine::AdapterScope stored =
      engine::ScopeFromName(adapter.spec.scope).value_or(engine::AdapterScope::kQuestionAndAnswer);
  if (engine::UsesBaseCache(mode) || stored != engine::AdapterScope::kAnswerOnly) return stored;
  return InvalidField("memory.adapter_scope",
                      absl::StrCat("adapter version ", adapter.version,
                                   " is stored with the scope of the answer alone, which doesn't "
                                   "go with a mode whose cache it has written; name another scope "
                                   "or another mode"));
}

}  // namespace

absl::StatusOr<ResolvedQuestion> Resolver::Resolve(const Question& question) const {
  const absl::StatusOr<store::DocumentKey> key = ChooseDocument(question);
  if (!key.ok()) return key.status();
  absl::StatusOr<store::Document> document = store_->GetDocument(*key);
  if (!document.ok()) return document.status();
  if (absl::Status status = CheckReady(*document); !status.ok()) return status;

  ResolvedQuestion resolved;
  resolved.document = document->key;
  absl::StatusOr<Mode> mode = DecideMode(question, *document);
  if (!mode.ok()) return mode.status();
  resolved.mode = *mode;
  if (absl::Status status = CheckModeFits(question, *mode); !status.ok()) return status;
  CacheMakers makers{.mode = *mode, .running = engine_->identity()};
  if (engine::UsesAdapter(*mode)) {
    absl::StatusOr<store::Adapter> adapter = ChooseAdapter(
        *store_, engine_->prompt_format(), *document,
        {.version = question.adapter_version, .allow_mismatch = question.allow_adapter_mismatch});
    if (!adapter.ok()) return adapter.status();
    const absl::StatusOr<engine::AdapterScope> scope = DecideScope(question, *mode, *adapter);
    if (!scope.ok()) return scope.status();
    resolved.scope = *scope;
    makers.adapter_hash = adapter->spec.hash;
    resolved.adapter = *std::move(adapter);
  }

  absl::StatusOr<std::optional<store::Cache>> cache = ChooseCache(question, makers, *document);
  if (!cache.ok()) return cache.status();
  resolved.cache = *std::move(cache);
  resolved.ratio_ppm =
      resolved.cache ? resolved.cache->spec.ratio_ppm : question.ratio_ppm.value_or(0);
  resolved.profile = question.profile.value_or(engine::Profile::kCompactor);

  if (absl::Status status = EncodePrompt(question, resolved); !status.ok()) return status;
  if (absl::Status status = CheckLength(question, resolved); !status.ok()) return status;
  return resolved;
}

absl::StatusOr<store::DocumentKey> Resolver::ChooseDocument(const Question& question) const {
  if (!question.document.id.empty()) return question.document;
  const std::string& collection = question.document.collection;
  const absl::StatusOr<store::RouteResult> routed = store_->Route(collection, question.question, 1);
  if (!routed.ok()) return routed.status();
  if (!routed->abstained) return routed->documents.front().key;
  return Error(absl::StatusCode::kNotFound, reason::kNoDocumentFits,
               absl::StrCat("no document of collection '", collection,
                            "' fits the question; name one, or ask in other words"));
}

absl::StatusOr<Mode> Resolver::DecideMode(const Question& question,
                                          const store::Document& document) const {
  if (question.mode) return *question.mode;
  const auto settings = store_->GetCollectionSettings(document.key.collection);
  if (!settings.ok()) return settings.status();
  const auto mode = engine::ModeFromName(settings->default_mode);
  const bool names_adapter = question.adapter_version != 0;
  if (mode && (engine::UsesAdapter(*mode) || !names_adapter)) return *mode;
  return names_adapter || document.current_adapter_version != 0 ? Mode::kBaseKvAdapterDecode
                                                                : Mode::kBase;
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
