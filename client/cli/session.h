#pragma once

#include <google/protobuf/message.h>

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/environment.h"
#include "client/connection.h"
#include "client/options.h"
#include "docmem/v1/common.pb.h"

namespace docmem::cli {

/// What a command works with: the daemon's connection, the output, the wish to stop.
class Session {
 public:
  struct Settings {
    bool json = false;
    std::optional<absl::Duration> timeout;
  };

  /// `environment` must outlive the session. `connection` may be null for commands without one.
  Session(const Environment* environment, Settings settings,
          std::shared_ptr<const client::Connection> connection)
      : environment_(*environment), settings_(settings), connection_(std::move(connection)) {}

  const std::shared_ptr<const client::Connection>& connection() const { return connection_; }
  const Environment& environment() const { return environment_; }
  bool json() const { return settings_.json; }
  std::ostream& out() const { return *environment_.out; }
  std::ostream& err() const { return *environment_.err; }
  /// Standard error where it is a terminal, else null: for progress.
  std::ostream* terminal() const { return environment_.err_is_terminal ? &err() : nullptr; }

  /// With the user's timeout, Ctrl-C and a word on retries.
  client::CallOptions call() const;

  /// A line for people beside the output; not with JSON.
  void Note(const std::string& text) const;

  /// Prints a reply: as JSON, or as `human` does. Gives a failed reply's status back.
  template <class Message, class Human>
  absl::Status Show(const absl::StatusOr<Message>& reply, const Human& human) const {
    if (!reply.ok()) return reply.status();
    if (json()) {
      PrintJson(*reply);
    } else {
      human(*reply);
    }
    return absl::OkStatus();
  }

  void PrintJson(const google::protobuf::Message& message) const;
  void PrintJson(const std::string& json) const { out() << json << '\n'; }

 private:
  const Environment& environment_;
  const Settings settings_;
  const std::shared_ptr<const client::Connection> connection_;
};

}  // namespace docmem::cli
