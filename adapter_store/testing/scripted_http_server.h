// An HTTP server on loopback that answers as a test says.

#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "adapter_store/sync.h"
#include "gtest/gtest.h"

namespace docmem::store::store_test {

struct HttpRequest {
  std::string method;
  std::string target;
  std::string head;  ///< lower-case
  std::string body;
};

/// An answer with its length and body; `sent` bytes of the body, then the connection breaks.
struct HttpAnswer {
  int code = 200;
  std::string body;
  std::string headers;              ///< whole lines
  size_t sent = std::string::npos;  ///< of the body
  bool silent = false;              ///< the connection breaks without an answer
  bool waits = false;               ///< there is no answer until the client goes
};

/// One connection at a time, one request for each; the answers in turn, the last one for all
/// that follow.
class ScriptedHttpServer {
 public:
  explicit ScriptedHttpServer(std::deque<HttpAnswer> answers) : answers_(std::move(answers)) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    endpoint_ = absl::StrCat("http://127.0.0.1:", ntohs(address.sin_port));
    thread_ = std::thread([this] { Serve(); });
  }
  ~ScriptedHttpServer() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  ScriptedHttpServer(const ScriptedHttpServer&) = delete;
  ScriptedHttpServer& operator=(const ScriptedHttpServer&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  std::vector<HttpRequest> requests() const {
    MutexLock lock(&mutex_);
    return requests_;
  }

 private:
  void Serve() {
    for (;;) {
      const int peer = accept(listener_, nullptr, nullptr);
      if (peer < 0) return;
      Answer(peer);
      close(peer);
    }
  }

  void Answer(int peer) {
    std::string text;
    size_t head_end = std::string::npos;
    while ((head_end = text.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive(peer, text)) return;
    }
    HttpRequest request;
    request.head = absl::AsciiStrToLower(text.substr(0, head_end + 2));
    request.method = text.substr(0, text.find(' '));
    request.target = text.substr(request.method.size() + 1);
    request.target.resize(request.target.find(' '));
    size_t length = 0;
    const size_t field = request.head.find("content-length: ");
    if (field != std::string::npos) length = std::strtoull(&request.head[field + 16], nullptr, 10);
    if (request.head.find("expect: 100-continue") != std::string::npos) {
      Transmit(peer, "HTTP/1.1 100 Continue\r\n\r\n");
    }
    while (text.size() < head_end + 4 + length) {
      if (!Receive(peer, text)) return;
    }
    request.body = text.substr(head_end + 4);
    HttpAnswer answer;
    {
      MutexLock lock(&mutex_);
      requests_.push_back(request);
      answer = answers_.front();
      if (answers_.size() > 1) answers_.pop_front();
    }
    if (answer.silent) return;
    while (answer.waits && Receive(peer, text)) {
    }
    if (answer.waits) return;
    Transmit(peer,
             absl::StrCat("HTTP/1.1 ", answer.code, " Answer\r\nConnection: close\r\n",
                          answer.headers, "Content-Length: ", answer.body.size(), "\r\n\r\n"));
    if (request.method != "HEAD") Transmit(peer, answer.body.substr(0, answer.sent));
  }

  static bool Receive(int peer, std::string& text) {
    char buffer[65536];
    const ssize_t count = recv(peer, buffer, sizeof(buffer), 0);
    if (count > 0) text.append(buffer, static_cast<size_t>(count));
    return count > 0;
  }
  static void Transmit(int peer, const std::string& text) {
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t count = send(peer, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<size_t>(count);
    }
  }

  int listener_ = -1;
  std::string endpoint_;
  mutable Mutex mutex_;
  std::deque<HttpAnswer> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<HttpRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace docmem::store::store_test
