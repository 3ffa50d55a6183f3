#include "server/telemetry/metrics_server.h"

#include <netdb.h>
#include <prometheus/exposer.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "absl/status/status.h"

namespace docmem::server {
namespace {

// Connects and hangs up.
void Knock(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  addrinfo* address = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &address) != 0) return;
  const int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0) {
    connect(fd, address->ai_addr, address->ai_addrlen);
    close(fd);
  }
  freeaddrinfo(address);
}

// HOST of HOST:PORT, without the brackets of an IPv6 address.
std::string HostOf(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

class MetricsServer::Impl {
 public:
  Impl(const std::string& address, const Metrics& metrics)
      : collectable(metrics.collectable()), exposer(address, 1) {
    exposer.RegisterCollectable(collectable);
  }
  const std::shared_ptr<prometheus::Collectable> collectable;
  prometheus::Exposer exposer;
};

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(const std::string& address,
                                                                    const Metrics& metrics) {
  try {
    auto impl = std::make_unique<Impl>(address, metrics);
    const int port = impl->exposer.GetListeningPorts().at(0);
    return std::unique_ptr<MetricsServer>(
        new MetricsServer(std::move(impl), HostOf(address), port));
  } catch (const std::exception&) {
    return absl::UnavailableError("can't listen on " + address +
                                  " for metrics: it is in use or not an address of this machine");
  }
}

MetricsServer::MetricsServer(std::unique_ptr<Impl> impl, std::string host, int port)
    : impl_(std::move(impl)), host_(std::move(host)), port_(port) {}

// civetweb looks whether it shall stop when someone connects, otherwise every two seconds.
MetricsServer::~MetricsServer() {
  std::atomic<bool> stopped = false;
  std::thread knocks([&] {
    while (!stopped) {
      Knock(host_, port_);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  impl_.reset();
  stopped = true;
  knocks.join();
}

}  // namespace docmem::server
