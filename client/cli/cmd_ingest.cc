#include <stop_token>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/build_arguments.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/document_view.h"
#include "client/cli/local_file.h"
#include "client/cli/question_arguments.h"
#include "client/cli/session.h"
#include "client/document_client.h"

namespace docmem::cli {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{64} << 20;

class IngestCommand final : public Command {
 public:
  IngestCommand() : Command("ingest", "Read a document into the daemon and build its caches") {
    Describe(
        "The same text under the same id again costs nothing; another ratio builds one more "
        "cache. Another text under the same id needs --replace.");
    arguments().Positional(Path("FILE", &path_),
                           "UTF-8 text of at most 64 MiB; - is standard input");
    arguments().Option("--id", Text("ID", &header_id_),
                       "The document's id; else derived from the text");
    DeclareCollection(&arguments(), &collection_);
    build_.Declare(&arguments());
    arguments().Option("--title", Text("TEXT", &title_), "Title for people");
    arguments().Option("--label", Pairs(&labels_), "Label to find it by");
    arguments().Flag("--pin", &pin_, "Keep its default cache and current adapter loaded");
    arguments().Switch("--retain-text", &retain_text_, true,
                       "Keep the text, whatever the collection says");
    arguments().Switch("--no-retain-text", &retain_text_, false,
                       "Don't keep the text: no cache can be built later");
    arguments().Flag("--replace", &replace_,
                     "Overwrite another text under this id: needs --revision");
    arguments().Option("--revision", Number("N", &revision_),
                       "With --replace: the document's revision that was seen");
    arguments().Flag("--train", &train_,
                     "Train an adapter once it is ready, as docmem train does without options");
    arguments().Flag("--detach", &detach_, "Return once the text has arrived; the daemon goes on");
  }

  absl::Status Run(Session& session) override {
    if (replace_ != (revision_ > 0)) return UsageError("--replace and --revision need each other");
    v1::IngestHeader header;
    if (absl::Status status = FillHeader(&header); !status.ok()) return status;
    const absl::StatusOr<std::string> text = ReadInput(path_, kMaxTextBytes, session.environment());
    if (!text.ok()) return text.status();
    if (detach_) return IngestDetached(session, header, *text);
    client::DocumentClient documents(session.connection());
    ProgressLine line(session.terminal());
    const auto result = documents.Ingest(
        header, *text,
        [&](const v1::BuildProgress& progress) { ShowBuildProgress(progress, &line); },
        session.call());
    line.Clear();
    return session.Show(result, [&](const v1::IngestResult& done) { Print(done, session.out()); });
  }

 private:
  absl::Status FillHeader(v1::IngestHeader* header) const {
    header->set_collection(collection_);
    header->set_document(header_id_);
    header->set_replace(replace_);
    header->set_revision(revision_);
    header->set_detach(detach_);
    v1::IngestOptions* options = header->mutable_options();
    options->set_title(title_);
    options->mutable_labels()->insert(labels_.begin(), labels_.end());
    options->set_pin(pin_);
    if (train_) options->mutable_train_after();
    if (retain_text_) options->set_retain_text(*retain_text_);
    return build_.Fill(options);
  }

  // Leaves as soon as the daemon says that it has the whole text.
  absl::Status IngestDetached(const Session& session, const v1::IngestHeader& header,
                              const std::string& text) const {
    std::stop_source leave;
    const std::stop_callback chain(session.environment().stop, [&] { leave.request_stop(); });
    client::CallOptions call = session.call();
    call.stop = leave.get_token();
    client::DocumentClient documents(session.connection());
    ProgressLine line(session.terminal());
    bool arrived = false;
    const auto result = documents.Ingest(
        header, text,
        [&](const v1::BuildProgress& progress) {
          ShowBuildProgress(progress, &line);
          if (progress.phase() <= v1::BuildProgress::PHASE_RECEIVING) return;
          arrived = true;
          leave.request_stop();
        },
        call);
    line.Clear();
    if (result.ok() || !arrived || session.environment().stop.stop_requested()) {
      return session.Show(result,
                          [&](const v1::IngestResult& done) { Print(done, session.out()); });
    }
    v1::IngestResult accepted;
    v1::Document* document = accepted.mutable_document();
    document->set_collection(header.collection().empty() ? "default" : header.collection());
    document->set_id(header.document().empty() ? client::DerivedDocumentId(text)
                                               : header.document());
    document->set_state(v1::Document::STATE_BUILDING);
    return session.Show(absl::StatusOr<v1::IngestResult>(accepted), [&](const v1::IngestResult&) {
      session.out() << document->collection() << '/' << document->id() << ": the daemon goes on\n";
    });
  }

  static void Print(const v1::IngestResult& result, std::ostream& out) {
    const v1::Document& document = result.document();
    const v1::BuildSeconds& seconds = result.seconds();
    out << PrintableLine(DocumentLine(document));
    if (result.built_cache_ids().empty()) {
      out << "; all was there already\n";
    } else {
      const double total = seconds.queue() + seconds.tokenize() + seconds.prefill() +
                           seconds.score() + seconds.publish();
      out << "; built "
          << FormatCount(static_cast<uint64_t>(result.built_cache_ids_size()), "cache") << " in "
          << FormatSeconds(total) << '\n';
    }
    PrintCaches(document.caches(), document.default_cache_id(), out);
    if (!result.training_job_id().empty()) out << "training " << result.training_job_id() << '\n';
  }

  std::string path_;
  std::string header_id_;
  std::string collection_;
  BuildArguments build_;
  std::string title_;
  std::map<std::string, std::string> labels_;
  bool pin_ = false;
  bool train_ = false;
  std::optional<bool> retain_text_;
  bool replace_ = false;
  uint64_t revision_ = 0;
  bool detach_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeIngestCommand() { return std::make_unique<IngestCommand>(); }

}  // namespace docmem::cli
