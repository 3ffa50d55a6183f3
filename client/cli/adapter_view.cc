#include "client/cli/adapter_view.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/display.h"
#include "client/cli/names.h"
#include "client/cli/table.h"

namespace docmem::cli {

void PrintAdapter(const v1::Adapter& adapter, std::ostream& out) {
  Fields fields;
  fields.Add("document", absl::StrCat(adapter.collection(), "/", adapter.document()));
  fields.Add("version", absl::StrCat(adapter.version(), adapter.current() ? ", current" : ""));
  fields.Add("state", NameOf(adapter.state()));
  fields.Add("hash", adapter.hash());
  fields.Add("scope", NameOf(adapter.scope()));
  fields.Add("base model", adapter.base_model());
  fields.Add("on disk", FormatBytes(adapter.stored_bytes()));
  fields.Add("on device", FormatBytes(adapter.device_bytes()));
  fields.Add("prompt format", adapter.prompt_format_digest());
  fields.Add("text", adapter.text_digest());
  fields.Add("trained by", adapter.training_job_id());
  fields.Add("created", FormatTime(adapter.create_time()));
  fields.Print(out);
  if (adapter.modules().empty()) return;
  out << '\n';
  Table table({"MODULE", ">RANK", ">SCALE"});
  for (const v1::AdapterModule& module : adapter.modules()) {
    table.Add({module.name(), absl::StrCat(module.rank()), absl::StrFormat("%g", module.scale())});
  }
  table.Print(out);
}

}  // namespace docmem::cli
