#pragma once

#include <functional>
#include <string_view>
#include <utility>

namespace docmem::eval {

/// Called after every unit of work with what is being done and which part of it is done, 0 … 1.
/// What it throws ends the evaluation; an `engine::Error` of kind `kCancelled` is a stop: a
/// training under way leaves its checkpoint behind.
using UnitHook = std::function<void(std::string_view activity, double done)>;

/// A hook for work that is the part from `from` to `to` of a larger one.
inline UnitHook Within(UnitHook hook, double from, double to) {
  return [hook = std::move(hook), from, to](std::string_view activity, double done) {
    hook(activity, from + (to - from) * done);
  };
}

}  // namespace docmem::eval
