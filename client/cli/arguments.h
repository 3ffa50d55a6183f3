#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace docmem::cli {

/// How an argument's value is written and where it goes. Targets must outlive the parsing.
struct Value {
  std::string placeholder;           ///< in the help, such as "N"
  std::vector<std::string> choices;  ///< empty: free
  bool repeated = false;
  /// INVALID_ARGUMENT says what is allowed. Called once for each value.
  std::function<absl::Status(const std::string&)> assign;
};

/// Valid UTF-8.
Value Text(const std::string& placeholder, std::string* target);
Value Texts(const std::string& placeholder, std::vector<std::string>* target);
/// Any bytes.
Value Path(const std::string& placeholder, std::string* target);
/// A whole number from 0.
Value Number(const std::string& placeholder, uint32_t* target);
Value Number(const std::string& placeholder, uint64_t* target);
Value Number(const std::string& placeholder, std::optional<uint32_t>* target);
Value Number(const std::string& placeholder, std::optional<uint64_t>* target);
Value Decimal(const std::string& placeholder, double* target);
Value Decimal(const std::string& placeholder, std::optional<double>* target);
/// KEY=VALUE, repeated.
Value Pairs(std::map<std::string, std::string>* target);
/// One of `choices`.
Value Choice(const std::string& placeholder, const std::vector<std::string>& choices,
             std::string* target);

/// One argument of a command.
struct Argument {
  enum class Kind { kPositional, kOption, kFlag };
  Kind kind = Kind::kPositional;
  std::string name;  ///< "--mode", or "ID" for a positional
  Value value;       ///< of a flag: `assign` is called with an empty text
  std::string help;
  bool required = false;
};

/// The arguments of a command in the order of its help. A reference that it returns holds until the
/// next call.
class ArgumentList {
 public:
  Argument& Positional(const Value& value, const std::string& help);
  Argument& Option(const std::string& name, const Value& value, const std::string& help);
  Argument& Flag(const std::string& name, bool* target, const std::string& help);
  /// A flag that sets `target` to `value`, which is otherwise left unset.
  Argument& Switch(const std::string& name, std::optional<bool>* target, bool value,
                   const std::string& help);
  const std::vector<Argument>& all() const { return arguments_; }

 private:
  std::vector<Argument> arguments_;
};

}  // namespace docmem::cli
