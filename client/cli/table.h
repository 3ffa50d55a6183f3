#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace docmem::cli {

/// A table for people: columns as wide as their widest cell, two spaces between, nothing cut. Cells
/// are made printable.
class Table {
 public:
  /// A title that begins with '>' marks a column that is aligned to the right.
  explicit Table(std::vector<std::string> titles);
  /// As many cells as titles.
  void Add(std::vector<std::string> cells);
  void Print(std::ostream& out) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::vector<bool> right_;
};

/// "name   value" lines for people, values aligned; those with an empty value are left out.
class Fields {
 public:
  void Add(const std::string& name, const std::string& value);
  void Print(std::ostream& out) const;

 private:
  std::vector<std::pair<std::string, std::string>> rows_;
};

}  // namespace docmem::cli
