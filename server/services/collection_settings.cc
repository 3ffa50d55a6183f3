#include "server/services/collection_settings.h"

#include <string>

#include "server/errors/error.h"
#include "server/services/messages.h"
#include "server/services/validate.h"

namespace docmem::server {
namespace {

using From = v1::CollectionSettings;
using To = store::CollectionSettings;

absl::Status SetRatio(const From& from, To* to) {
  const uint32_t ratio =
      from.has_default_ratio_ppm() ? from.default_ratio_ppm() : To().default_ratio_ppm;
  to->default_ratio_ppm = ratio;
  return CheckRatio("settings.default_ratio_ppm", ratio);
}

absl::Status SetMode(const From& from, To* to) {
  const auto mode = FromMessage(from.default_mode());
  if (!mode && from.default_mode() != v1::MODE_UNSPECIFIED) {
    return InvalidField("settings.default_mode", "is no mode");
  }
  to->default_mode = mode ? std::string(engine::ModeName(*mode)) : "";
  return absl::OkStatus();
}

struct Path {
  const char* name;
  absl::Status (*set)(const From& from, To* to);
};

template <auto Getter, auto Member>
absl::Status SetLimit(const From& from, To* to) {
  to->limits.*Member = (from.limits().*Getter)();
  return absl::OkStatus();
}

using Limits = v1::CollectionLimits;
constexpr Path kPaths[] = {
    {"retain_text",
     [](const From& from, To* to) {
       to->retain_text = from.has_retain_text() ? from.retain_text() : true;
       return absl::OkStatus();
     }},
    {"lexical_index",
     [](const From& from, To* to) {
       to->lexical_index = from.lexical_index();
       return absl::OkStatus();
     }},
    {"default_ratio_ppm", SetRatio},
    {"default_mode", SetMode},
    {"limits.max_in_flight",
     SetLimit<&Limits::max_in_flight, &store::CollectionLimits::max_in_flight>},
    {"limits.max_queued", SetLimit<&Limits::max_queued, &store::CollectionLimits::max_queued>},
    {"limits.max_bytes", SetLimit<&Limits::max_bytes, &store::CollectionLimits::max_bytes>},
    {"limits.max_documents",
     SetLimit<&Limits::max_documents, &store::CollectionLimits::max_documents>},
};

}  // namespace

absl::Status ApplySettings(const v1::CollectionSettings& from,
                           const google::protobuf::FieldMask& mask,
                           store::CollectionSettings* settings) {
  if (mask.paths().empty()) return InvalidField("update_mask", "must name at least one field");
  for (const std::string& wanted : mask.paths()) {
    bool known = false;
    for (const Path& path : kPaths) {
      const std::string name = path.name;
      if (name != wanted && name.rfind(wanted + ".", 0) != 0) continue;
      known = true;
      if (absl::Status status = path.set(from, settings); !status.ok()) return status;
    }
    if (!known) {
      return InvalidField("update_mask", "names a field that the settings don't have");
    }
  }
  return absl::OkStatus();
}

google::protobuf::FieldMask AllSettingsMask() {
  google::protobuf::FieldMask mask;
  for (const Path& path : kPaths) mask.add_paths(path.name);
  return mask;
}

}  // namespace docmem::server
