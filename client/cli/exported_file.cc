#include "client/cli/exported_file.h"

#include "absl/strings/str_cat.h"
#include "client/cli/display.h"
#include "client/cli/local_file.h"
#include "client/cli/progress_line.h"
#include "client/document_client.h"

namespace docmem::cli {

absl::StatusOr<uint64_t> WriteExportedFile(const Session& session,
                                           const v1::ExportDocumentRequest& request,
                                           const std::string& path, const std::string& label) {
  LocalFileWriter file(path);
  ProgressLine line(session.terminal());
  uint64_t bytes = 0;
  client::DocumentClient client(session.connection());
  absl::Status status = client.Export(
      request,
      [&](absl::string_view chunk) {
        bytes += chunk.size();
        line.Show(absl::StrCat(label, "received ", FormatBytes(bytes)));
        return file.Write(chunk);
      },
      session.call());
  if (status.ok()) status = file.Commit();
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace docmem::cli
