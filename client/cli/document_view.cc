#include "client/cli/document_view.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/display.h"
#include "client/cli/names.h"
#include "client/cli/ratio.h"
#include "client/cli/table.h"

namespace docmem::cli {
namespace {

std::string Labels(const v1::Document& document) {
  std::vector<std::string> labels;
  for (const auto& [key, value] : document.labels())
    labels.push_back(absl::StrCat(key, "=", value));
  std::sort(labels.begin(), labels.end());
  return absl::StrJoin(labels, ", ");
}

// An adapter's hash, short, else who made it without one.
std::string Maker(const std::string& adapter_hash, const std::string& else_who) {
  constexpr size_t kShownDigits = 12;
  return adapter_hash.empty() ? else_who : adapter_hash.substr(0, kShownDigits);
}

// The base model scores unless an adapter does; at ratio 0 and 1, told by the profile, nobody.
std::string Scorer(const v1::Cache& cache) {
  return Maker(cache.scorer_adapter_hash(),
               cache.profile() == v1::PROFILE_UNSPECIFIED ? "-" : "base");
}

// "0.9", and in brackets what isn't as usual: "0.9 (knorm, int8, adapter)".
std::string BriefCaches(const v1::Document& document) {
  return absl::StrJoin(document.caches(), ", ", [](std::string* out, const v1::Cache& cache) {
    std::vector<std::string> unusual;
    if (cache.profile() > v1::PROFILE_COMPACTOR) unusual.push_back(NameOf(cache.profile()));
    if (cache.kv_dtype() == v1::KV_DTYPE_INT8) unusual.push_back(NameOf(cache.kv_dtype()));
    if (!cache.writer_adapter_hash().empty()) unusual.push_back("adapter");
    absl::StrAppend(out, FormatRatio(cache.ratio_ppm()));
    if (!unusual.empty()) absl::StrAppend(out, " (", absl::StrJoin(unusual, ", "), ")");
  });
}

std::string AdapterText(const v1::Document& document) {
  if (document.adapter_count() == 0) return "none";
  const std::string count = FormatCount(document.adapter_count(), "version");
  if (document.current_adapter_version() == 0) return absl::StrCat(count, ", none current");
  return absl::StrCat("version ", document.current_adapter_version(), " is current, ", count);
}

}  // namespace

void PrintCaches(const google::protobuf::RepeatedPtrField<v1::Cache>& caches,
                 const std::string& default_id, std::ostream& out) {
  Table table({">RATIO", "PROFILE", "KV", "WRITER", "SCORER", ">TOKENS", ">DISK", ">DEVICE",
               ">FULL", "STATE", "CACHE"});
  for (const v1::Cache& cache : caches) {
    const std::string state = NameOf(cache.state());
    table.Add({FormatRatio(cache.ratio_ppm()), NameOf(cache.profile()), NameOf(cache.kv_dtype()),
               Maker(cache.writer_adapter_hash(), "base"), Scorer(cache),
               absl::StrCat(cache.kept_tokens(), " of ", cache.context_tokens()),
               FormatBytes(cache.stored_bytes()), FormatBytes(cache.device_bytes()),
               FormatBytes(cache.full_bytes()),
               cache.id() == default_id ? absl::StrCat(state, ", default") : state, cache.id()});
  }
  table.Print(out);
}

void PrintEvaluation(const v1::Evaluation& evaluation, std::ostream& out) {
  if (evaluation.has_create_time()) {
    out << "Evaluation of " << FormatTime(evaluation.create_time()) << '\n';
  }
  Table table({"MODE", ">RATIO", ">QUESTIONS", ">ROUGE-L", ">FIRST TOKEN", ">MEMORY"});
  for (const v1::Evaluation::Row& row : evaluation.rows()) {
    table.Add({NameOf(row.mode()), FormatRatio(row.ratio_ppm()), absl::StrCat(row.questions()),
               absl::StrFormat("%.1f", 100 * row.rouge_l()),
               FormatSeconds(row.first_token_seconds()), FormatBytes(row.memory_bytes())});
  }
  table.Print(out);
}

void PrintDocument(const v1::Document& document, std::ostream& out) {
  Fields fields;
  fields.Add("document", absl::StrCat(document.collection(), "/", document.id()));
  fields.Add("title", document.title());
  fields.Add("state", NameOf(document.state()));
  fields.Add("reason", document.state_message());
  fields.Add("labels", Labels(document));
  fields.Add("pinned", document.pinned() ? "yes" : "no");
  fields.Add("tokens", absl::StrCat(document.document_tokens()));
  fields.Add("text", absl::StrCat(FormatBytes(document.text_bytes()),
                                  document.text_retained() ? ", retained" : ", not retained"));
  fields.Add("text SHA-256", document.text_sha256());
  fields.Add("system text", document.system_text());
  fields.Add("adapter", AdapterText(document));
  fields.Add("on disk", FormatBytes(document.stored_bytes()));
  fields.Add("created", FormatTime(document.create_time()));
  fields.Add("updated", FormatTime(document.update_time()));
  fields.Add("revision", absl::StrCat(document.revision()));
  fields.Print(out);
  if (!document.caches().empty()) {
    out << '\n';
    PrintCaches(document.caches(), document.default_cache_id(), out);
  }
  if (document.has_evaluation()) {
    out << '\n';
    PrintEvaluation(document.evaluation(), out);
  }
}

void PrintDocuments(const std::vector<v1::Document>& documents, std::ostream& out) {
  Table table({"DOCUMENT", "STATE", ">TOKENS", "CACHES", ">ADAPTER", "PINNED", ">DISK", "UPDATED",
               "TITLE"});
  for (const v1::Document& document : documents) {
    const uint32_t adapter = document.current_adapter_version();
    table.Add({document.id(), NameOf(document.state()), absl::StrCat(document.document_tokens()),
               BriefCaches(document), adapter == 0 ? "-" : absl::StrCat(adapter),
               document.pinned() ? "yes" : "no", FormatBytes(document.stored_bytes()),
               FormatTime(document.update_time()), document.title()});
  }
  table.Print(out);
}

std::string DocumentLine(const v1::Document& document) {
  return absl::StrCat(document.collection(), "/", document.id(), ": ",
                      FormatCount(document.document_tokens(), "token"), ", ",
                      NameOf(document.state()));
}

}  // namespace docmem::cli
