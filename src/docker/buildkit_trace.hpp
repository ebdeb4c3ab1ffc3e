/// @file
/// Decodes BuildKit's build trace (moby.buildkit.v1.StatusResponse in protobuf's wire format), as
/// POST /build?version=2 sends it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeline::docker {

/// One step of a build's graph. The engine sends a vertex again whenever its state has changed.
struct TraceVertex {
  std::string digest, name, error;
  bool cached = false, started = false, completed = false;
};
/// Output of a vertex. `vertex` is the digest of the vertex.
struct TraceLog {
  std::string vertex, text;
};
/// One message of the trace: the vertexes whose state has changed, and new output.
struct TraceUpdate {
  std::vector<TraceVertex> vertexes;
  std::vector<TraceLog> logs;
};

/// Returns nothing for bytes that are not such a message; ignores unknown fields.
std::optional<TraceUpdate> decode_trace(std::string_view bytes);

}  // namespace pipeline::docker
