// What the C++ workers of `./dev bench` share: lines in, lines out.
#pragma once

#include <cstdint>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace docmem::bench {

// Memory in use at most so far, in bytes.
inline int64_t PeakBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Answers requests with `measure(request)`, or with why it failed, until input ends.
template <class Measure>
void ServeLines(const Measure& measure) {
  using Json = nlohmann::json;
  std::cout << Json{{"ready", true}} << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    Json answer;
    try {
      answer = measure(Json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer << std::endl;
  }
}

}  // namespace docmem::bench
