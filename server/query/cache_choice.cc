#include "server/query/cache_choice.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/artifacts/cache_identity.h"
#include "server/errors/error.h"
#include "server/errors/from_exception.h"
#include "server/runtime/adapter_choice.h"

namespace docmem::server {
namespace {

using CachePtrs = std::vector<const store::Cache*>;

constexpr size_t kShownHashDigits = 12;

bool Scored(uint32_t ratio_ppm) { return engine::IsScored({.ratio_ppm = ratio_ppm}); }

std::string Describe(const store::Cache& cache) {
  const store::CacheSpec& spec = cache.spec;
  std::string text = absl::StrCat(spec.id, " (ratio ", spec.ratio_ppm / 1e6, ", ", spec.profile,
                                  ", ", spec.kv_dtype);
  if (!spec.writer_adapter_hash.empty()) {
    absl::StrAppend(&text, ", written ", spec.scorer_adapter_hash.empty() ? "" : "and scored ",
                    "by adapter ", spec.writer_adapter_hash.substr(0, kShownHashDigits));
  }
  return text + ")";
}

std::string DescribeAll(const CachePtrs& caches) {
  return absl::StrJoin(caches, ", ", [](std::string* out, const store::Cache* cache) {
    absl::StrAppend(out, Describe(*cache));
  });
}

// The identity's field in which the cache differs from what the mode asks for; empty: none.
std::string OtherMaker(const CacheMakers& makers, const store::CacheSpec& spec) {
  const std::string none;
  const bool base = engine::UsesBaseCache(makers.mode);
  const bool scores = makers.mode == engine::Mode::kAdapterPrefill && Scored(spec.ratio_ppm);
  if (spec.writer_adapter_hash != (base ? none : makers.adapter_hash)) return "writer";
  if (spec.scorer_adapter_hash != (scores ? makers.adapter_hash : none)) return "scorer";
  return none;
}

bool GoesWith(const CacheMakers& makers, const store::Cache& cache) {
  return OtherMaker(makers, cache.spec).empty();
}

bool MadeAsAsked(const Question& question, const store::CacheSpec& spec) {
  if (spec.ratio_ppm != *question.ratio_ppm) return false;
  return !question.profile || !Scored(spec.ratio_ppm) ||
         spec.profile == engine::ProfileName(*question.profile);
}

bool MadeAlike(const store::CacheSpec& a, const store::CacheSpec& b) {
  return a.ratio_ppm == b.ratio_ppm && a.profile == b.profile && a.kv_dtype == b.kv_dtype &&
         a.system_text_digest == b.system_text_digest;
}

const store::Cache* FindCache(const store::Document& document, const std::string& id) {
  const auto found = std::find_if(document.caches.begin(), document.caches.end(),
                                  [&](const store::Cache& cache) { return cache.spec.id == id; });
  return found == document.caches.end() ? nullptr : &*found;
}

CachePtrs Matches(const Question& question, const CacheMakers& makers,
                  const store::Document& document) {
  CachePtrs matches;
  if (!question.cache_id.empty()) {
    const store::Cache* const chosen = FindCache(document, question.cache_id);
    if (chosen != nullptr) matches.push_back(chosen);
    return matches;
  }
  const store::Cache* const standard = FindCache(document, document.default_cache_id);
  if (!question.ratio_ppm) {
    if (standard == nullptr) return matches;
    if (GoesWith(makers, *standard)) return {standard};
  }
  for (const store::Cache& cache : document.caches) {
    const bool fits = question.ratio_ppm ? MadeAsAsked(question, cache.spec)
                                         : MadeAlike(cache.spec, standard->spec);
    if (fits && GoesWith(makers, cache)) matches.push_back(&cache);
  }
  return matches;
}

absl::Status CheckModel(const store::Cache& cache, const engine::ModelIdentity& running) {
  return CatchEngine([&] {
           engine::CacheIdentity::FromFields(
               {cache.spec.identity.begin(), cache.spec.identity.end()})
               .RequireModel(running);
           return true;
         })
      .status();
}

absl::Status NoSuchCache(const CacheMakers& makers, const store::Document& document) {
  CachePtrs all;
  for (const store::Cache& cache : document.caches) all.push_back(&cache);
  const std::string available = DescribeAll(all);
  return Error(absl::StatusCode::kNotFound, reason::kCacheNotFound,
               absl::StrCat(NameOf(document.key), " has no such cache for the mode ",
                            std::string(engine::ModeName(makers.mode)),
                            "; it has: ", available.empty() ? "none" : available),
               {{"available", available}});
}

absl::Status Ambiguous(const CachePtrs& caches) {
  return Error(absl::StatusCode::kInvalidArgument, reason::kCacheAmbiguous,
               absl::StrCat("several caches match, choose one by its id: ", DescribeAll(caches)),
               {{"field", "memory.ratio_ppm"},
                {"cache_ids", absl::StrJoin(caches, ",", [](std::string* out, auto* cache) {
                   absl::StrAppend(out, cache->spec.id);
                 })}});
}

absl::Status CheckUsable(const store::Cache& cache, const CacheMakers& makers,
                         const store::Document& document) {
  if (const std::string other = OtherMaker(makers, cache.spec); !other.empty()) {
    return Error(absl::StatusCode::kFailedPrecondition, reason::kIdentityMismatch,
                 absl::StrCat(other, ": the cache ", Describe(cache), " isn't one of the mode ",
                              std::string(engine::ModeName(makers.mode)), " with ",
                              makers.adapter_hash.empty()
                                  ? "no adapter"
                                  : absl::StrCat("adapter ",
                                                 makers.adapter_hash.substr(0, kShownHashDigits)),
                              "; choose mode and adapter that made it, or another cache"),
                 {{"field", other}});
  }
  if (!cache.file.quarantined) return absl::OkStatus();
  return Error(absl::StatusCode::kDataLoss, reason::kArtifactDamaged,
               absl::StrCat("cache ", cache.spec.id, " of ", NameOf(document.key),
                            " is damaged and quarantined; delete it and build it again"));
}

}  // namespace

absl::StatusOr<std::optional<store::Cache>> ChooseCache(const Question& question,
                                                        const CacheMakers& makers,
                                                        const store::Document& document) {
  const CachePtrs matches = Matches(question, makers, document);
  // Caches of another model stay behind after a change of model: they aren't candidates beside one
  // that fits.
  CachePtrs usable;
  absl::Status refusal;
  for (const store::Cache* cache : matches) {
    const absl::Status fits = CheckModel(*cache, makers.running);
    if (fits.ok()) {
      usable.push_back(cache);
    } else {
      refusal = fits;
    }
  }
  if (usable.empty() && question.build_if_missing && question.ratio_ppm) return std::nullopt;
  if (usable.empty()) return matches.empty() ? NoSuchCache(makers, document) : refusal;
  if (usable.size() > 1) return Ambiguous(usable);
  const absl::Status status = CheckUsable(*usable.front(), makers, document);
  if (!status.ok()) return status;
  return *usable.front();
}

}  // namespace docmem::server
