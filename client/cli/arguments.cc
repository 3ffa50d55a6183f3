#include "client/cli/arguments.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/display.h"

namespace docmem::cli {
namespace {

absl::Status Refuse(const std::string& text, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" isn't ", expected));
}

// absl's own conversion takes "+5", " 5" and, for unsigned targets, nothing below 0.
template <class Integer>
Value WholeNumber(const std::string& placeholder, Integer* target) {
  return {.placeholder = placeholder, .assign = [target](const std::string& text) {
            const bool digits =
                !text.empty() && std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
            if (digits && absl::SimpleAtoi(text, target)) return absl::OkStatus();
            return Refuse(text, absl::StrCat("a whole number from 0 to ",
                                             std::numeric_limits<Integer>::max()));
          }};
}

template <class Integer>
Value OptionalNumber(const std::string& placeholder, std::optional<Integer>* target) {
  return {.placeholder = placeholder, .assign = [target](const std::string& text) {
            Integer number = 0;
            absl::Status status = WholeNumber("", &number).assign(text);
            if (status.ok()) *target = number;
            return status;
          }};
}

absl::Status CheckUtf8(const std::string& text) {
  return IsUtf8(text) ? absl::OkStatus() : absl::InvalidArgumentError("isn't valid UTF-8");
}

}  // namespace

Value Text(const std::string& placeholder, std::string* target) {
  return {.placeholder = placeholder, .assign = [target](const std::string& text) {
            *target = text;
            return CheckUtf8(text);
          }};
}

Value Path(const std::string& placeholder, std::string* target) {
  return {.placeholder = placeholder, .assign = [target](const std::string& text) {
            *target = text;
            return absl::OkStatus();
          }};
}

Value Texts(const std::string& placeholder, std::vector<std::string>* target) {
  return {
      .placeholder = placeholder, .repeated = true, .assign = [target](const std::string& text) {
        target->push_back(text);
        return CheckUtf8(text);
      }};
}

Value Number(const std::string& placeholder, uint32_t* target) {
  return WholeNumber(placeholder, target);
}

Value Number(const std::string& placeholder, uint64_t* target) {
  return WholeNumber(placeholder, target);
}

Value Number(const std::string& placeholder, std::optional<uint32_t>* target) {
  return OptionalNumber(placeholder, target);
}

Value Number(const std::string& placeholder, std::optional<uint64_t>* target) {
  return OptionalNumber(placeholder, target);
}

Value Decimal(const std::string& placeholder, double* target) {
  return {.placeholder = placeholder, .assign = [target](const std::string& text) {
            if (absl::SimpleAtod(text, target) && std::isfinite(*target)) return absl::OkStatus();
            return Refuse(text, "a number");
          }};
}

Value Decimal(const std::string& placeholder, std::optional<double>* target) {
  return {.placeholder = placeholder, .assign = [target](const std::string& text) {
            double number = 0;
            absl::Status status = Decimal("", &number).assign(text);
            if (status.ok()) *target = number;
            return status;
          }};
}

Value Pairs(std::map<std::string, std::string>* target) {
  return {
      .placeholder = "KEY=VALUE", .repeated = true, .assign = [target](const std::string& text) {
        const size_t equals = text.find('=');
        if (equals == std::string::npos || equals == 0) return Refuse(text, "KEY=VALUE");
        (*target)[text.substr(0, equals)] = text.substr(equals + 1);
        return CheckUtf8(text);
      }};
}

Value Choice(const std::string& placeholder, const std::vector<std::string>& choices,
             std::string* target) {
  return {.placeholder = placeholder,
          .choices = choices,
          .assign = [choices, target](const std::string& text) {
            if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
              return Refuse(text, absl::StrCat("one of ", absl::StrJoin(choices, ", ")));
            }
            *target = text;
            return absl::OkStatus();
          }};
}

Argument& ArgumentList::Positional(const Value& value, const std::string& help) {
  return arguments_.emplace_back(Argument{.kind = Argument::Kind::kPositional,
                                          .name = value.placeholder,
                                          .value = value,
                                          .help = help,
                                          .required = true});
}

Argument& ArgumentList::Option(const std::string& name, const Value& value,
                               const std::string& help) {
  return arguments_.emplace_back(
      Argument{.kind = Argument::Kind::kOption, .name = name, .value = value, .help = help});
}

Argument& ArgumentList::Flag(const std::string& name, bool* target, const std::string& help) {
  const Value value{.assign = [target](const std::string&) {
    *target = true;
    return absl::OkStatus();
  }};
  return arguments_.emplace_back(
      Argument{.kind = Argument::Kind::kFlag, .name = name, .value = value, .help = help});
}

Argument& ArgumentList::Switch(const std::string& name, std::optional<bool>* target, bool value,
                               const std::string& help) {
  const Value set{.assign = [target, value](const std::string&) {
    *target = value;
    return absl::OkStatus();
  }};
  return arguments_.emplace_back(
      Argument{.kind = Argument::Kind::kFlag, .name = name, .value = set, .help = help});
}

}  // namespace docmem::cli
