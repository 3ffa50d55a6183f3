#pragma once

#include <ostream>
#include <string>

namespace docmem::cli {

/// One line on a terminal that is written again and again, and gone at the end. Writes nothing
/// where there is no terminal.
class ProgressLine {
 public:
  /// `terminal`: null for none; must outlive this.
  explicit ProgressLine(std::ostream* terminal) : terminal_(terminal) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& text);
  /// "text [=====>    ] 50 %  after"; `fraction` from 0 to 1.
  void ShowBar(const std::string& text, double fraction, const std::string& after = "");
  void Clear();

 private:
  std::ostream* const terminal_;
  std::string shown_;
};

}  // namespace docmem::cli
