#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/display.h"
#include "client/cli/json.h"
#include "client/cli/names.h"
#include "client/cli/ratio.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "client/collection_client.h"

namespace docmem::cli {
namespace {

constexpr uint32_t kDefaultRatioPpm = 900'000;

void Print(const v1::Collection& collection, std::ostream& out) {
  const v1::CollectionSettings& settings = collection.settings();
  const v1::CollectionLimits& limits = settings.limits();
  const auto limit = [](uint64_t value) { return value == 0 ? "none" : absl::StrCat(value); };
  Fields fields;
  fields.Add("collection", collection.name());
  fields.Add("documents", absl::StrCat(collection.document_count()));
  fields.Add("on disk", FormatBytes(collection.stored_bytes()));
  fields.Add("retains text", !settings.has_retain_text() || settings.retain_text() ? "yes" : "no");
  fields.Add("lexical index", settings.lexical_index() ? "yes" : "no");
  fields.Add("default ratio",
             FormatRatio(settings.has_default_ratio_ppm() ? settings.default_ratio_ppm()
                                                          : kDefaultRatioPpm));
  fields.Add("default mode", NameOf(settings.default_mode()));
  fields.Add("max in flight", limit(limits.max_in_flight()));
  fields.Add("max queued", limit(limits.max_queued()));
  fields.Add("max bytes", limit(limits.max_bytes()));
  fields.Add("max documents", limit(limits.max_documents()));
  fields.Add("created", FormatTime(collection.create_time()));
  fields.Add("updated", FormatTime(collection.update_time()));
  fields.Add("revision", absl::StrCat(collection.revision()));
  fields.Print(out);
}

// The options for a collection's settings; each that is given is named in a field mask.
class SettingsArguments {
 public:
  void Declare(ArgumentList* arguments) {
    arguments->Switch("--retain-text", &retain_text_, true, "Keep the documents' texts");
    arguments->Switch("--no-retain-text", &retain_text_, false, "Don't keep the documents' texts");
    arguments->Switch("--lexical-index", &lexical_index_, true, "Keep word statistics for routing");
    arguments->Switch("--no-lexical-index", &lexical_index_, false, "Keep no word statistics");
    arguments->Option("--default-ratio", Ratio(&default_ratio_ppm_),
                      "Compression ratio of ingestions that name none; else 0.9");
    arguments->Option("--default-mode", OneOf("MODE", &default_mode_),
                      "Mode of questions that name none");
    arguments->Option("--max-in-flight", Number("N", &max_in_flight_),
                      "Requests answered at once; 0: no limit");
    arguments->Option("--max-queued", Number("N", &max_queued_), "Requests waiting; 0: no limit");
    arguments->Option("--max-bytes", Number("BYTES", &max_bytes_),
                      "Stored bytes of all artifacts; 0: no limit");
    arguments->Option("--max-documents", Number("N", &max_documents_), "Documents; 0: no limit");
  }

  v1::CollectionSettings Build(google::protobuf::FieldMask* mask) const {
    v1::CollectionSettings settings;
    v1::CollectionLimits* limits = settings.mutable_limits();
    const auto set = [mask](const char* path, const auto& value, const auto& assign) {
      if (!value) return;
      assign(*value);
      mask->add_paths(path);
    };
    set("retain_text", retain_text_, [&](bool keep) { settings.set_retain_text(keep); });
    set("lexical_index", lexical_index_, [&](bool keep) { settings.set_lexical_index(keep); });
    set("default_ratio_ppm", default_ratio_ppm_,
        [&](uint32_t ppm) { settings.set_default_ratio_ppm(ppm); });
    set("default_mode", default_mode_, [&](v1::Mode mode) { settings.set_default_mode(mode); });
    set("limits.max_in_flight", max_in_flight_,
        [&](uint32_t count) { limits->set_max_in_flight(count); });
    set("limits.max_queued", max_queued_, [&](uint32_t count) { limits->set_max_queued(count); });
    set("limits.max_bytes", max_bytes_, [&](uint64_t bytes) { limits->set_max_bytes(bytes); });
    set("limits.max_documents", max_documents_,
        [&](uint32_t count) { limits->set_max_documents(count); });
    return settings;
  }

 private:
  std::optional<bool> retain_text_;
  std::optional<bool> lexical_index_;
  std::optional<uint32_t> default_ratio_ppm_;
  std::optional<v1::Mode> default_mode_;
  std::optional<uint32_t> max_in_flight_;
  std::optional<uint32_t> max_queued_;
  std::optional<uint64_t> max_bytes_;
  std::optional<uint32_t> max_documents_;
};

class CollectionCreateCommand final : public Command {
 public:
  CollectionCreateCommand() : Command("create", "Make a collection") {
    arguments().Positional(Text("NAME", &name_), "The collection");
    settings_.Declare(&arguments());
  }

  absl::Status Run(Session& session) override {
    v1::CreateCollectionRequest request;
    request.set_name(name_);
    google::protobuf::FieldMask unused;
    *request.mutable_settings() = settings_.Build(&unused);
    client::CollectionClient client(session.connection());
    return session.Show(client.Create(request, session.call()),
                        [&](const v1::Collection& made) { Print(made, session.out()); });
  }

 private:
  std::string name_;
  SettingsArguments settings_;
};

class CollectionListCommand final : public Command {
 public:
  CollectionListCommand() : Command("list", "List the collections") {}

  absl::Status Run(Session& session) override {
    v1::ListCollectionsRequest request;
    client::CollectionClient client(session.connection());
    std::vector<v1::Collection> collections;
    do {
      const auto page = client.List(request, session.call());
      if (!page.ok()) return page.status();
      collections.insert(collections.end(), page->collections().begin(), page->collections().end());
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    if (session.json()) {
      session.PrintJson(JsonObject({{"collections", JsonArrayOf(collections)}}));
      return absl::OkStatus();
    }
    Table table({"COLLECTION", ">DOCUMENTS", ">DISK", "UPDATED"});
    for (const v1::Collection& collection : collections) {
      table.Add({collection.name(), absl::StrCat(collection.document_count()),
                 FormatBytes(collection.stored_bytes()), FormatTime(collection.update_time())});
    }
    table.Print(session.out());
    return absl::OkStatus();
  }
};

class CollectionShowCommand final : public Command {
 public:
  CollectionShowCommand() : Command("show", "Show a collection with its settings") {
    arguments().Positional(Text("NAME", &name_), "The collection");
  }

  absl::Status Run(Session& session) override {
    v1::GetCollectionRequest request;
    request.set_name(name_);
    client::CollectionClient client(session.connection());
    return session.Show(client.Get(request, session.call()),
                        [&](const v1::Collection& found) { Print(found, session.out()); });
  }

 private:
  std::string name_;
};

class CollectionUpdateCommand final : public Command {
 public:
  CollectionUpdateCommand() : Command("update", "Change a collection's settings") {
    Describe("Settings act on what comes later, never on stored documents.");
    arguments().Positional(Text("NAME", &name_), "The collection");
    settings_.Declare(&arguments());
    arguments().Option("--reset", Texts("FIELD", &reset_),
                       "Give a setting its default back, such as default_mode");
    arguments().Option("--revision", Number("N", &revision_),
                       "Refuse if the collection has another revision");
  }

  absl::Status Run(Session& session) override {
    v1::UpdateCollectionRequest request;
    request.set_name(name_);
    request.set_revision(revision_);
    *request.mutable_settings() = settings_.Build(request.mutable_update_mask());
    for (const std::string& path : reset_) request.mutable_update_mask()->add_paths(path);
    if (request.update_mask().paths().empty()) {
      return UsageError("nothing to change: give an option");
    }
    client::CollectionClient client(session.connection());
    return session.Show(client.Update(request, session.call()),
                        [&](const v1::Collection& updated) { Print(updated, session.out()); });
  }

 private:
  std::string name_;
  SettingsArguments settings_;
  std::vector<std::string> reset_;
  uint64_t revision_ = 0;
};

class CollectionDeleteCommand final : public Command {
 public:
  CollectionDeleteCommand() : Command("delete", "Delete a collection") {
    arguments().Positional(Text("NAME", &name_), "The collection");
    arguments().Flag("--force", &force_, "Delete its documents with it");
    arguments().Flag("--allow-missing", &allow_missing_, "An absent collection is no error");
  }

  absl::Status Run(Session& session) override {
    v1::DeleteCollectionRequest request;
    request.set_name(name_);
    request.set_force(force_);
    request.set_allow_missing(allow_missing_);
    client::CollectionClient client(session.connection());
    return session.Show(
        client.Delete(request, session.call()), [&](const v1::DeleteCollectionResponse& reply) {
          session.out() << name_ << ": deleted with "
                        << FormatCount(reply.deleted_documents(), "document") << '\n';
        });
  }

 private:
  std::string name_;
  bool force_ = false;
  bool allow_missing_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCollectionGroup() {
  auto group = std::make_unique<CommandGroup>("collection", "Make and look after collections");
  group->Add(std::make_unique<CollectionCreateCommand>());
  group->Add(std::make_unique<CollectionListCommand>());
  group->Add(std::make_unique<CollectionShowCommand>());
  group->Add(std::make_unique<CollectionUpdateCommand>());
  group->Add(std::make_unique<CollectionDeleteCommand>());
  return group;
}

}  // namespace docmem::cli
