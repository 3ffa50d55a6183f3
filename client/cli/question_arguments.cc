#include "client/cli/question_arguments.h"

#include "client/cli/command.h"
#include "client/cli/names.h"
#include "client/cli/ratio.h"

namespace docmem::cli {

void DeclareCollection(ArgumentList* arguments, std::string* collection) {
  arguments->Option("--collection", Text("NAME", collection),
                    "Collection of the document; else default");
}

void DeclareInstruction(ArgumentList* arguments, std::string* instruction) {
  arguments->Option("--instruction", Text("TEXT", instruction),
                    "Stands between the document and the question");
}

void MemoryArguments::Declare(ArgumentList* arguments) {
  DeclareCollection(arguments, &collection_);
  arguments->Option("--mode", OneOf("MODE", &mode_),
                    "Who prefills and who decodes; else the collection's default, else the adapter "
                    "decodes where there is one");
  arguments->Option("--ratio", Ratio(&ratio_ppm_),
                    "Use the cache with this compression ratio (part of the document's tokens that "
                    "is evicted, 0 to 1); else the document's default cache");
  arguments->Option("--profile", OneOf("PROFILE", &profile_), "With --ratio: its eviction profile");
  arguments->Option("--cache", Text("CACHE", &cache_id_), "Use the cache with this id");
  arguments->Flag("--build", &build_, "With --ratio: build the cache first if it isn't there");
  arguments->Option("--adapter", Number("VERSION", &adapter_version_),
                    "Use this adapter version; else the current one");
  arguments->Option("--adapter-scope", OneOf("SCOPE", &adapter_scope_),
                    "Tokens that the adapter acts on");
  arguments->Flag("--allow-adapter-mismatch", &allow_adapter_mismatch_,
                  "Use an adapter made for another prompt format or text");
}

absl::StatusOr<v1::MemorySelection> MemoryArguments::Build(const std::string& document) const {
  if (ratio_ppm_ && !cache_id_.empty()) return UsageError("--ratio and --cache exclude each other");
  if (build_ && !ratio_ppm_) return UsageError("--build needs --ratio");
  if (profile_ != v1::PROFILE_UNSPECIFIED && !ratio_ppm_) {
    return UsageError("--profile needs --ratio");
  }
  v1::MemorySelection memory;
  memory.set_collection(collection_);
  memory.set_document(document);
  memory.set_mode(mode_);
  if (ratio_ppm_) memory.set_ratio_ppm(*ratio_ppm_);
  if (!cache_id_.empty()) memory.set_cache_id(cache_id_);
  memory.set_profile(profile_);
  memory.set_build_if_missing(build_);
  memory.set_adapter_version(adapter_version_);
  memory.set_adapter_scope(adapter_scope_);
  memory.set_allow_adapter_mismatch(allow_adapter_mismatch_);
  return memory;
}

void AnswerArguments::Declare(ArgumentList* arguments) {
  arguments->Option("--max-tokens", Number("N", &max_tokens_), "Longest answer; else 256");
  arguments->Option("--temperature", Decimal("T", &temperature_),
                    "Sample at this temperature, up to 2; else greedy");
  arguments->Option("--top-p", Decimal("P", &top_p_),
                    "Sample from the likeliest tokens that reach this probability together");
  arguments->Option("--top-k", Number("K", &top_k_), "Sample from the K likeliest tokens");
  arguments->Option("--seed", Number("N", &seed_), "Same seed, same answer");
  arguments->Option("--stop", Texts("TEXT", &stop_), "Text that ends the answer, not part of it");
  arguments->Flag("--log-probabilities", &log_probabilities_,
                  "Also give the log-probability of each token of the answer");
  arguments->Option("--priority", OneOf("PRIORITY", &priority_),
                    "batch lets interactive questions go first, for up to 30 s; else interactive");
}

void AnswerArguments::Fill(v1::AskRequest* request) const {
  request->set_max_tokens(max_tokens_);
  request->mutable_sampling()->set_temperature(temperature_);
  request->mutable_sampling()->set_top_p(top_p_);
  request->mutable_sampling()->set_top_k(top_k_);
  if (seed_) request->mutable_sampling()->set_seed(*seed_);
  for (const std::string& text : stop_) request->add_stop(text);
  request->set_log_probabilities(log_probabilities_);
  request->set_priority(priority_);
}

}  // namespace docmem::cli
