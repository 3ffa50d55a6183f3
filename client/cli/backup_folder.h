#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "docmem/v1/collection.pb.h"
#include "docmem/v1/document.pb.h"

namespace docmem::cli {

/// A collection's part of a folder that `docmem backup` writes and `docmem restore` reads:
/// `collection.json` (its settings), ID.docmem for each document (an exported file), and
/// `documents.json`: in which state each document was when its file was written. Errors name the
/// path.
class CollectionBackup {
 public:
  /// DATA_LOSS where the name, which a daemon sent, could lead out of `folder`.
  static absl::StatusOr<CollectionBackup> Of(const std::string& folder, const std::string& name);
  /// Those in `folder`, by name. NOT_FOUND where it holds none.
  static absl::StatusOr<std::vector<std::string>> Names(const std::string& folder);

  const std::string& name() const { return name_; }
  absl::StatusOr<v1::Collection> ReadSettings() const;
  /// Makes the folder where needed, and reads which states are known.
  absl::Status Open(const v1::Collection& settings);
  /// Where the document's file is, or will be; DATA_LOSS as `Of`.
  absl::StatusOr<std::string> PathOf(const std::string& document) const;
  /// Whether its file is there, written in this state of the document.
  bool Holds(const v1::Document& document) const;
  void Remember(const v1::Document& document);
  /// Makes what was written durable, then what was remembered.
  absl::Status Save() const;
  /// The ids of the documents whose files are there, by name.
  absl::StatusOr<std::vector<std::string>> Documents() const;

 private:
  CollectionBackup(std::string folder, std::string name)
      : folder_(std::move(folder)), name_(std::move(name)) {}

  std::string folder_;
  std::string name_;
  std::map<std::string, v1::Document> known_;  // by id; only what tells one state from another
};

}  // namespace docmem::cli
