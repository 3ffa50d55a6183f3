#include "client/internal/retrying_channel.h"

#include <arpa/inet.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <stop_token>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"
#include "client/internal/rpc_status.h"

namespace docmem::client::internal {
namespace {

constexpr size_t kMaxIdBytes = 128;
// How long one try waits for its connection. gRPC connects again by itself, but notices success
// only while somebody waits (else every 5 s), and a first attempt may fail for nothing: gRPC 1.51
// takes an errno of its own, such as that of looking for an absent /sys, for connect's. Whether a
// call that found no connection was sent can't be told afterwards, so one that must not come twice
// has a second.
constexpr std::chrono::milliseconds kConnectTime{200};
constexpr std::chrono::milliseconds kConnectTimeUnlessRepeated{1000};

bool IsId(const std::string& text) {
  const auto allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxIdBytes && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), allowed);
}

absl::Status CheckAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  const bool bracketed = colon != std::string::npos && colon > 1 && address.front() == '[' &&
                         address[colon - 1] == ']';
  int port = 0;
  if (colon == std::string::npos || colon == 0 || (!bracketed && address.find(':') != colon) ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("address \"", address, "\" isn't HOST:PORT or [IPV6]:PORT"));
  }
  return absl::OkStatus();
}

absl::Status CheckToken(const std::string& token) {
  const auto printable = [](unsigned char c) { return c > ' ' && c < 0x7F; };
  if (std::all_of(token.begin(), token.end(), printable)) return absl::OkStatus();
  return absl::InvalidArgumentError("the token has characters that no token has");
}

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  in_addr number = {};
  const bool is_number = inet_pton(AF_INET, host.c_str(), &number) == 1;
  return host == "localhost" || host == "[::1]" ||
         (is_number && (ntohl(number.s_addr) >> IN_CLASSA_NSHIFT) == IN_LOOPBACKNET);
}

absl::Status CheckTransport(const ConnectionOptions& options) {
  if (options.tls && options.tls->certificate.empty() != options.tls->key.empty()) {
    return absl::InvalidArgumentError(
        "a client certificate and its key go together; one of them is missing");
  }
  if (options.tls || options.token.empty() || options.insecure || IsLoopback(options.address)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the token would go to ", options.address,
                   " in plain text; use TLS, or allow it explicitly (insecure) where the network "
                   "itself keeps others from reading along"));
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ConnectionOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({options.tls->ca, options.tls->key, options.tls->certificate});
}

grpc::ChannelArguments ArgumentsOf(const ConnectionOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A daemon that comes back should be found at the pace of our own retries.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  // Despite its name also the time one attempt may take: a busy or distant daemon needs it.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2'000);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // A variable meant for web pages must not send loopback calls elsewhere.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetUserAgentPrefix("docmem-client/" DOCMEM_VERSION);
  if (options.tls && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  return arguments;
}

// gRPC's own codes for a connection that broke; proxies use the last two for it.
bool MayBeLost(grpc::StatusCode code) {
  return code == grpc::StatusCode::OK || code == grpc::StatusCode::UNAVAILABLE ||
         code == grpc::StatusCode::CANCELLED || code == grpc::StatusCode::INTERNAL ||
         code == grpc::StatusCode::UNKNOWN;
}

}  // namespace

std::string DocumentHeader(const std::string& collection, const std::string& document) {
  const std::string& name = collection.empty() ? "default" : collection;
  if (!IsId(name) || !IsId(document)) return "";
  return absl::StrCat(name, "/", document);
}

absl::StatusOr<std::unique_ptr<RetryingChannel>> RetryingChannel::Open(
    const ConnectionOptions& options) {
  if (absl::Status status = CheckAddress(options.address); !status.ok()) return status;
  if (absl::Status status = CheckToken(options.token); !status.ok()) return status;
  if (absl::Status status = CheckTransport(options); !status.ok()) return status;
  auto channel =
      grpc::CreateCustomChannel(options.address, CredentialsOf(options), ArgumentsOf(options));
  return std::unique_ptr<RetryingChannel>(new RetryingChannel(std::move(channel), options));
}

absl::Status RetryingChannel::Run(const Call& call, const CallOptions& options,
                                  const AttemptFunction& attempt) const {
  const absl::Time deadline =
      options_.clock->Now() + options.timeout.value_or(call.default_timeout);
  return RunWithRetries(options_.retry, options_.clock.get(), deadline, call.repeat, options,
                        [&] { return TryOnce(call, deadline, options.stop, attempt); });
}

Outcome RetryingChannel::TryOnce(const Call& call, absl::Time deadline, const std::stop_token& stop,
                                 const AttemptFunction& attempt) const {
  grpc::ClientContext context;
  if (deadline != absl::InfiniteFuture()) {
    context.set_deadline(std::chrono::system_clock::now() +
                         absl::ToChronoMicroseconds(deadline - options_.clock->Now()));
  }
  if (!call.document.empty()) context.AddMetadata(kDocumentHeader, call.document);
  if (!options_.token.empty()) {
    context.AddMetadata("authorization", absl::StrCat("Bearer ", options_.token));
  }
  // Half of what is left at most, so that there is time to say why.
  const auto now = std::chrono::system_clock::now();
  const auto patience = call.repeat == Repeat::kSafe ? kConnectTime : kConnectTimeUnlessRepeated;
  channel_->WaitForConnected(now + std::min<std::chrono::system_clock::duration>(
                                       patience, (context.deadline() - now) / 2));
  const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
  Attempt done = attempt(&context);
  if (!done.local.ok()) return {.status = done.local, .delivered = true};
  if (done.status.ok() && done.complete) return {};
  absl::Status status = FromGrpc(done.status);
  if (!MayBeLost(done.status.error_code()) || !DetailOf(status).reason.empty()) {
    if (absl::IsDeadlineExceeded(status) && DetailOf(status).reason.empty()) {
      status = absl::DeadlineExceededError(
          absl::StrCat("no answer from ", options_.address, " within the deadline"));
    }
    return {.status = std::move(status), .delivered = done.delivered};
  }
  const std::string what =
      done.status.error_message().empty() ? "the stream ended early" : done.status.error_message();
  return {.status = absl::UnavailableError(
              absl::StrCat("no connection to ", options_.address, ": ", what)),
          .lost = true,
          .delivered = done.delivered};
}

}  // namespace docmem::client::internal
