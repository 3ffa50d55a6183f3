#include "engine/model/rope_config.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace docmem::engine {
namespace {

constexpr int64_t kMaxPositions = int64_t{1} << 31;

constexpr std::array<std::string_view, 14> kKnownKeys = {
    "rope_theta",
    "rope_type",
    "type",
    "factor",
    "low_freq_factor",
    "high_freq_factor",
    "beta_fast",
    "beta_slow",
    "mscale",
    "mscale_all_dim",
    "truncate",
    "original_max_position_embeddings",
    "attention_factor",
    "partial_rotary_factor",
};

double Positive(const JsonFields& fields, std::string_view key, double value) {
  if (!(value > 0.0)) {
    ThrowInvalidArgument(fields.Path(key), "must be above 0, is " + std::to_string(value));
  }
  return value;
}

void RequireKnownKeys(const JsonFields& fields) {
  for (const auto& [key, value] : fields.json().items()) {
    bool known = false;
    for (std::string_view name : kKnownKeys) known = known || name == key;
    if (!known && !value.is_null()) {
      ThrowUnimplemented(fields.Path(key), "this setting of rotary embeddings isn't supported");
    }
  }
}

void RequireFullRotation(const JsonFields& fields) {
  const double fraction = fields.OptionalNumber("partial_rotary_factor").value_or(1.0);
  if (fraction != 1.0) {
    ThrowUnimplemented(fields.Path("partial_rotary_factor"),
                       "partial rotation isn't supported, is " + std::to_string(fraction));
  }
}

RopeType ParseType(const JsonFields& fields) {
  const std::optional<std::string> now = fields.OptionalString("rope_type");
  const std::optional<std::string> old = fields.OptionalString("type");
  if (now && old && *now != *old) {
    ThrowInvalidArgument(fields.Path("type"),
                         "is \"" + *old + "\" but rope_type is \"" + *now + "\"");
  }
  if (!now && !old) {
    if (fields.Has("factor")) {
      ThrowInvalidArgument(fields.Path("rope_type"), "is missing, but a factor is given");
    }
    return RopeType::kDefault;
  }
  const std::string& type = now ? *now : *old;
  if (type == "default") return RopeType::kDefault;
  if (type == "linear") return RopeType::kLinear;
  if (type == "llama3") return RopeType::kLlama3;
  if (type == "yarn") return RopeType::kYarn;
  ThrowUnimplemented(fields.Path(now ? "rope_type" : "type"),
                     "\"" + type + "\" isn't one of default, linear, llama3, yarn");
}

// YaRN's temperature, arXiv 2309.00071 section 3.4.
double YarnScale(double factor, double mscale) {
  return factor <= 1.0 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

double YarnAttentionFactor(const JsonFields& fields, double factor) {
  if (const auto given = fields.OptionalNumber("attention_factor")) {
    return Positive(fields, "attention_factor", *given);
  }
  const double mscale = fields.OptionalNumber("mscale").value_or(0.0);
  const double mscale_all_dim = fields.OptionalNumber("mscale_all_dim").value_or(0.0);
  if (mscale != 0.0 && mscale_all_dim != 0.0) {
    const double all_dim = YarnScale(factor, mscale_all_dim);
    return Positive(fields, "mscale",
                    YarnScale(factor, mscale) / Positive(fields, "mscale_all_dim", all_dim));
  }
  return YarnScale(factor, 1.0);
}

double NonZeroOr(const JsonFields& fields, std::string_view key, double otherwise) {
  const double value = fields.OptionalNumber(key).value_or(0.0);
  return value == 0.0 ? otherwise : Positive(fields, key, value);
}

void ParseLlama3(const JsonFields& fields, RopeConfig* rope) {
  rope->factor = Positive(fields, "factor", fields.Number("factor"));
  rope->low_freq_factor = Positive(fields, "low_freq_factor", fields.Number("low_freq_factor"));
  rope->high_freq_factor = Positive(fields, "high_freq_factor", fields.Number("high_freq_factor"));
  if (rope->high_freq_factor <= rope->low_freq_factor) {
    ThrowInvalidArgument(fields.Path("high_freq_factor"), "must be above low_freq_factor");
  }
}

void ParseYarn(const JsonFields& fields, int64_t max_positions, RopeConfig* rope) {
  const double stretch =
      static_cast<double>(max_positions) / static_cast<double>(rope->original_max_positions);
  rope->factor = Positive(fields, "factor", fields.OptionalNumber("factor").value_or(stretch));
  rope->beta_fast = NonZeroOr(fields, "beta_fast", rope->beta_fast);
  rope->beta_slow = NonZeroOr(fields, "beta_slow", rope->beta_slow);
  rope->truncate = fields.OptionalBool("truncate").value_or(true);
  rope->attention_factor = YarnAttentionFactor(fields, rope->factor);
}

RopeConfig ParseScaling(const JsonFields& fields, const RopeConfig& base, int64_t max_positions) {
  RequireKnownKeys(fields);
  RequireFullRotation(fields);
  RopeConfig rope = base;
  rope.type = ParseType(fields);
  if (rope.type == RopeType::kLinear) {
    rope.factor = Positive(fields, "factor", fields.Number("factor"));
  }
  if (rope.type == RopeType::kLlama3 || rope.type == RopeType::kYarn) {
    const auto own = fields.OptionalInt("original_max_position_embeddings", 1, kMaxPositions);
    if (rope.original_max_positions == 0) {
      rope.original_max_positions = own.value_or(max_positions);
    }
  }
  if (rope.type == RopeType::kLlama3) ParseLlama3(fields, &rope);
  if (rope.type == RopeType::kYarn) ParseYarn(fields, max_positions, &rope);
  if (rope.type == RopeType::kDefault || rope.type == RopeType::kLinear) {
    rope.original_max_positions = 0;
  }
  return rope;
}

void TakeTheta(const JsonFields& fields, std::optional<double>* theta) {
  const std::optional<double> found = fields.OptionalNumber("rope_theta");
  if (!found) return;
  Positive(fields, "rope_theta", *found);
  if (*theta && **theta != *found) {
    ThrowInvalidArgument(fields.Path("rope_theta"), "is " + std::to_string(*found) +
                                                        ", but another place of the file says " +
                                                        std::to_string(**theta));
  }
  *theta = *found;
}

}  // namespace

RopeConfig ParseRopeConfig(const JsonFields& config, int64_t max_positions) {
  const std::optional<JsonFields> parameters = config.OptionalObject("rope_parameters");
  const std::optional<JsonFields> scaling = config.OptionalObject("rope_scaling");
  RequireFullRotation(config);

  std::optional<double> theta;
  TakeTheta(config, &theta);
  if (parameters) TakeTheta(*parameters, &theta);
  if (scaling) TakeTheta(*scaling, &theta);
  if (!theta) {
    ThrowInvalidArgument(config.Path("rope_theta"),
                         "is missing, also in rope_parameters; the model's base is needed");
  }

  RopeConfig base;
  base.theta = *theta;
  base.original_max_positions =
      config.OptionalInt("original_max_position_embeddings", 1, kMaxPositions).value_or(0);
  RopeConfig plain = base;
  plain.original_max_positions = 0;
  if (!parameters && !scaling) return plain;

  const RopeConfig resolved =
      ParseScaling(parameters ? *parameters : *scaling, base, max_positions);
  if (parameters && scaling && ParseScaling(*scaling, base, max_positions) != resolved) {
    ThrowInvalidArgument(config.Path("rope_scaling"), "disagrees with rope_parameters");
  }
  return resolved;
}

}  // namespace docmem::engine
