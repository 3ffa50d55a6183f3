#include "client/cli/table.h"

#include <algorithm>

#include "client/cli/display.h"

namespace docmem::cli {

Table::Table(std::vector<std::string> titles) : right_(titles.size()) {
  for (size_t i = 0; i < titles.size(); ++i) {
    right_[i] = titles[i].front() == '>';
    if (right_[i]) titles[i].erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void Table::Add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = PrintableLine(cell);
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out) const {
  std::vector<size_t> widths(right_.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i]), ' ');
      line += (i == 0 ? "" : "  ") + (right_[i] ? padding + row[i] : row[i] + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

void Fields::Add(const std::string& name, const std::string& value) {
  if (!value.empty()) rows_.emplace_back(name, PrintableLine(value));
}

void Fields::Print(std::ostream& out) const {
  size_t width = 0;
  for (const auto& [name, value] : rows_) width = std::max(width, DisplayWidth(name));
  for (const auto& [name, value] : rows_) {
    out << name << std::string(width - DisplayWidth(name) + 2, ' ') << value << '\n';
  }
}

}  // namespace docmem::cli
