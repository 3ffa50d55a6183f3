#include "server/runtime/adapter_choice.h"

#include "absl/strings/str_cat.h"
#include "server/errors/error.h"

namespace docmem::server {
namespace {

absl::Status CheckMadeFor(const store::Adapter& adapter, const std::string& name,
                          const engine::PromptFormat& running_format,
                          const store::Document& document) {
  if (adapter.state == store::AdapterState::kStale) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kAdapterStale,
                 absl::StrCat(name, " was made for an earlier text"));
  }
  if (adapter.spec.prompt_format_digest != running_format.digest()) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kAdapterMismatch,
                 absl::StrCat(name, " was made for another prompt format (",
                              adapter.spec.prompt_format_digest, ", running: ",
                              running_format.digest(), "); allow_adapter_mismatch overrides"),
                 {{"field", "prompt_format_digest"}});
  }
  if (adapter.spec.text_digest != document.spec.text_sha256) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kAdapterMismatch,
                 absl::StrCat(name,
                              " was made for another text; allow_adapter_mismatch "
                              "overrides"),
                 {{"field", "text_digest"}});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<store::Adapter> ChooseAdapter(store::AdapterStore& store,
                                             const engine::PromptFormat& running_format,
                                             const store::Document& document,
                                             const AdapterWish& wish) {
  if (wish.version == 0 && document.current_adapter_version == 0) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kNoCurrentAdapter,
                 absl::StrCat(NameOf(document.key),
                              " has no current adapter; upload one, choose a version, or use the "
                              "mode BASE"));
  }
  absl::StatusOr<store::Adapter> adapter = store.GetAdapter(document.key, wish.version);
  if (!adapter.ok()) return adapter;
  const std::string name =
      absl::StrCat("adapter version ", adapter->version, " of ", NameOf(document.key));
  if (adapter->quarantined()) {
    return Error(absl::StatusCode::kDataLoss, reason::kArtifactDamaged,
                 absl::StrCat(name, " is damaged and quarantined; upload it again"));
  }
  if (wish.allow_mismatch) return adapter;
  const absl::Status fits = CheckMadeFor(*adapter, name, running_format, document);
  if (!fits.ok()) return fits;
  return adapter;
}

std::string NameOf(const store::DocumentKey& key) {
  return absl::StrCat("document '", key.id, "' of collection '", key.collection, "'");
}

}  // namespace docmem::server
