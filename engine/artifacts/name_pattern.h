#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace docmem::engine {

/// A regular expression from an adapter's configuration, as PEFT applies Python's `re` to module
/// names. Compiled and run under limits, because the expression comes from outside. Immutable,
/// cheap to copy, thread-safe.
class NamePattern {
 public:
  enum class Anchor {
    kWhole,  ///< like re.fullmatch
    kStart,  ///< like re.match
  };

  /// Throws `kInvalidArgument` with `field` for an expression that is too long or malformed.
  NamePattern(const std::string& expression, Anchor anchor, std::string field);

  /// Throws `kInvalidArgument` when the expression takes too many steps.
  bool Matches(std::string_view name) const;

  /// What the named group matched; nothing without a match or without such a group.
  std::optional<std::string> Group(std::string_view name, const std::string& group) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
  std::string field_;
};

}  // namespace docmem::engine
