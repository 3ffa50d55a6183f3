#include "server/services/admin_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/errors/error.h"
#include "server/services/messages.h"
#include "server/services/unary.h"
#include "server/services/validate.h"
#include "server/telemetry/version.h"

namespace docmem::server {
namespace {

v1::GetStatusResponse::Phase PhaseOf(const Lifecycle& lifecycle) {
  switch (lifecycle.phase()) {
    case Phase::kOpeningRegistry:
      return v1::GetStatusResponse::PHASE_OPENING_REGISTRY;
    case Phase::kLoadingModel:
      return v1::GetStatusResponse::PHASE_LOADING_MODEL;
    case Phase::kStopping:
      return v1::GetStatusResponse::PHASE_STOPPING;
    case Phase::kServing:
    case Phase::kRecovery:
      break;
  }
  if (lifecycle.draining()) return v1::GetStatusResponse::PHASE_DRAINING;
  return lifecycle.phase() == Phase::kRecovery ? v1::GetStatusResponse::PHASE_RECOVERY
                                               : v1::GetStatusResponse::PHASE_SERVING;
}

void FillModel(const ModelFacts& facts, v1::ModelInfo* message) {
  message->set_name(facts.name);
  message->set_family(facts.family);
  message->set_dtype(facts.dtype);
  message->set_device(facts.device);
  message->set_parameters(facts.parameters);
  message->set_layers(facts.layers);
  message->set_positions(facts.positions);
  message->set_vocabulary(facts.vocabulary);
  message->set_weight_bytes(facts.weight_bytes);
  message->set_weights_digest(facts.weights_digest);
  message->set_config_digest(facts.config_digest);
  message->set_tokenizer_digest(facts.tokenizer_digest);
  message->set_prompt_format(facts.prompt_format);
  message->set_prompt_format_digest(facts.prompt_format_digest);
}

void FillLimits(const LimitFacts& facts, v1::Limits* message) {
  message->set_max_text_bytes(kMaxTextBytes);
  message->set_max_adapter_bytes(kMaxAdapterBytes);
  message->set_max_message_bytes(kMaxMessageBytes);
  message->set_max_adapter_rank(facts.max_adapter_rank);
  message->set_max_queue(facts.max_queue);
  message->set_max_sequences(facts.max_sequences);
  message->set_max_batch_tokens(facts.max_batch_tokens);
  message->set_question_reserve_tokens(facts.question_reserve_tokens);
}

void FillQueue(const QueueFacts& facts, v1::QueueStatus* message) {
  message->set_waiting(facts.waiting);
  message->set_loading(facts.loading);
  message->set_running(facts.running);
  message->set_building(facts.building);
}

void AddKind(v1::ArtifactKind kind, const store::KindUsage& usage, v1::TierUsage* tier) {
  v1::KindUsage* added = tier->add_kinds();
  added->set_kind(kind);
  added->set_items(static_cast<uint32_t>(usage.items));
  added->set_bytes(usage.bytes);
}

void AddDisk(const store::StoreStats& stats, v1::GetStatusResponse* response) {
  response->set_collections(static_cast<uint32_t>(stats.collections));
  response->set_documents(static_cast<uint32_t>(stats.documents));
  response->set_caches(static_cast<uint32_t>(stats.cache.items));
  response->set_adapters(static_cast<uint32_t>(stats.adapter.items));
  response->set_quarantined(
      static_cast<uint32_t>(stats.quarantined_documents + stats.quarantined_files));
  v1::TierUsage* tier = response->add_tiers();
  tier->set_tier(v1::TIER_DISK);
  tier->set_budget_bytes(stats.budget_bytes);
  tier->set_used_bytes(stats.used_bytes + stats.reserved_bytes);
  AddKind(v1::ARTIFACT_KIND_TEXT, stats.text, tier);
  AddKind(v1::ARTIFACT_KIND_CACHE, stats.cache, tier);
  AddKind(v1::ARTIFACT_KIND_ADAPTER, stats.adapter, tier);
}

void AddTier(v1::Tier name, const store::ResidentStats& stats, v1::GetStatusResponse* response) {
  v1::TierUsage* tier = response->add_tiers();
  tier->set_tier(name);
  tier->set_budget_bytes(stats.budget_bytes);
  tier->set_used_bytes(stats.used_bytes);
  for (int i = 0; i < store::kResidentKinds; ++i) {
    const store::ResidentKindStats& from = stats.kinds[i];
    v1::KindUsage* kind = tier->add_kinds();
    kind->set_kind(ToMessage(static_cast<store::ResidentKind>(i)));
    kind->set_items(static_cast<uint32_t>(from.resident_items));
    kind->set_bytes(from.resident_bytes);
    kind->set_pinned_bytes(from.pinned_bytes);
    kind->set_leased_bytes(from.leased_bytes);
    kind->set_loading_bytes(from.loading_bytes);
  }
}

// Orders items and names the place where a page ends.
std::string PlaceOf(const ResidentMemory& item) {
  return absl::StrCat(static_cast<int>(item.resident.key.kind), "/", item.document.collection, "/",
                      item.document.id, "/", item.id, "/", static_cast<int>(item.resident.tier));
}

bool Wanted(const v1::ListResidentRequest& request, const ResidentMemory& item) {
  const bool tier =
      request.tier() == v1::TIER_UNSPECIFIED || request.tier() == ToMessage(item.resident.tier);
  const bool kind = request.kind() == v1::ARTIFACT_KIND_UNSPECIFIED ||
                    request.kind() == ToMessage(item.resident.key.kind);
  return tier && kind && PlaceOf(item) > request.page_token();
}

absl::Status CheckList(const v1::ListResidentRequest& request) {
  constexpr std::ptrdiff_t kSlashes = 4;
  const std::string& token = request.page_token();
  if (!token.empty() && std::count(token.begin(), token.end(), '/') != kSlashes) {
    return InvalidField("page_token", "isn't one that ListResident gave");
  }
  if (request.tier() == v1::TIER_DISK || !v1::Tier_IsValid(request.tier())) {
    return InvalidField("tier", "must be HOST or DEVICE; documents show what they have on disk");
  }
  if (request.kind() == v1::ARTIFACT_KIND_TEXT || !v1::ArtifactKind_IsValid(request.kind())) {
    return InvalidField("kind", "must be CACHE or ADAPTER; texts are never loaded");
  }
  return absl::OkStatus();
}

v1::ResidentItem ItemMessage(const ResidentMemory& item) {
  v1::ResidentItem message;
  message.set_kind(ToMessage(item.resident.key.kind));
  message.set_id(item.id);
  message.set_collection(item.document.collection);
  message.set_document(item.document.id);
  message.set_tier(ToMessage(item.resident.tier));
  message.set_bytes(item.resident.bytes);
  message.set_leases(item.resident.leases);
  message.set_pinned(item.resident.pinned);
  message.set_loading(item.resident.loading);
  return message;
}

}  // namespace

// Here, so that the stubs' many templates are compiled in one file.
AdminService::AdminService(ServiceContext services, Parts parts)
    : services_(services), parts_(std::move(parts)), started_(absl::Now()) {}
AdminService::~AdminService() = default;

grpc::ServerUnaryReactor* AdminService::GetStatus(grpc::CallbackServerContext* context,
                                                  const v1::GetStatusRequest* /*request*/,
                                                  v1::GetStatusResponse* response) {
  return RunUnary(services_, method::kGetStatus, context, [=, this](Call& call) {
    response->set_version(kVersion);
    response->set_api_revision(kApiRevision);
    response->set_phase(PhaseOf(*parts_.lifecycle));
    response->set_draining(parts_.lifecycle->draining());
    response->set_load_progress(parts_.lifecycle->load_progress());
    *response->mutable_start_time() = ToMessage(started_);
    response->set_uptime_seconds(absl::ToDoubleSeconds(absl::Now() - started_));
    FillLimits(parts_.limits, response->mutable_limits());
    FillQueue(parts_.queue(), response->mutable_queue());
    if (const ModelFacts* model = parts_.model->get()) FillModel(*model, response->mutable_model());
    store::AdapterStore* const store = parts_.store->get();
    if (store != nullptr) response->set_generation(absl::StrCat(store->generation()));
    if (!call.principal().collections.all()) return absl::OkStatus();
    if (store != nullptr) {
      const auto stats = store->Stats();
      if (!stats.ok()) return stats.status();
      AddDisk(*stats, response);
    }
    if (const Residency* residency = parts_.residency->get()) {
      if (const auto host = residency->HostStats()) AddTier(v1::TIER_HOST, *host, response);
      AddTier(v1::TIER_DEVICE, residency->Stats(), response);
    }
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::ListResident(grpc::CallbackServerContext* context,
                                                     const v1::ListResidentRequest* request,
                                                     v1::ListResidentResponse* response) {
  return RunUnary(services_, method::kListResident, context, [=, this](Call& call) {
    const auto page = CheckPage(request->page_size(), request->page_token());
    if (!page.ok()) return page.status();
    if (absl::Status status = CheckList(*request); !status.ok()) return status;
    std::vector<ResidentMemory> items = (*parts_.residency)->Residents();
    std::erase_if(items, [&](const ResidentMemory& item) {
      return !call.principal().collections.contains(item.document.collection) ||
             !Wanted(*request, item);
    });
    std::sort(items.begin(), items.end(),
              [](const auto& a, const auto& b) { return PlaceOf(a) < PlaceOf(b); });
    if (items.size() > page->size) {
      items.resize(page->size);
      response->set_next_page_token(PlaceOf(items.back()));
    }
    for (const ResidentMemory& item : items) *response->add_items() = ItemMessage(item);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* AdminService::Drain(grpc::CallbackServerContext* context,
                                              const v1::DrainRequest* request,
                                              v1::DrainResponse* response) {
  return RunUnary(services_, method::kDrain, context, [=, this](Call&) {
    parts_.drain(!request->undo());
    response->set_draining(parts_.lifecycle->draining());
    FillQueue(parts_.queue(), response->mutable_queue());
    return absl::OkStatus();
  });
}

}  // namespace docmem::server
