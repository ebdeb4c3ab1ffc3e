/// @file
/// Fuzzes logs of containers and pods: the streams do not depend on the places of cuts.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "docker/log_frames.hpp"
#include "kubernetes_api/log_frames.hpp"

namespace {

using Streams = std::pair<std::string, std::string>;

void feed(auto& frames, std::string_view text, std::size_t piece) {
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size())))
    frames.feed(text.substr(0, piece));
  frames.finish();
}

auto keep(Streams& streams) {
  return [&streams](bool is_stderr, std::string_view bytes) {
    (is_stderr ? streams.second : streams.first) += bytes;
  };
}

Streams of_engine(std::string_view text, std::size_t piece) {
  Streams streams;
  pipeline::docker::EngineLogFrames frames(keep(streams));
  feed(frames, text, piece);
  return streams;
}

/// Returns the streams of a pod's log; the agent's copy of it has the text, too, since a step can
/// write anything there.
Streams of_cluster(std::string_view text, std::size_t piece) {
  Streams streams;
  unsigned asked = 0;
  pipeline::kubernetes_api::PodLogFrames frames(
      keep(streams), [&](std::uint64_t place, std::size_t most) -> std::string {
        if (++asked > 100) return {};
        return std::string(text.substr(std::min<std::uint64_t>(place, text.size()), most));
      });
  feed(frames, text, piece);
  return streams;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto engine = of_engine(text, size + 1);
  if (engine != of_engine(text, 1) || engine != of_engine(text, 11)) __builtin_trap();
  if (engine.first.size() + engine.second.size() > size) __builtin_trap();
  const auto cluster = of_cluster(text, size + 1);
  if (cluster != of_cluster(text, 1) || cluster != of_cluster(text, 11)) __builtin_trap();
  return 0;
}
