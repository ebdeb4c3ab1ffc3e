// A result without a codec.
// expect: check_result
// expect: T = Connection
// expect: static assertion failed: pipeline: this result of a step has no pipeline::Codec
#include <pipeline/pipeline.hpp>

class Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}

 private:
  int socket_;
};
Connection open_database();

void declare(pipeline::Pipeline& pipeline) { pipeline.add(pipeline::step<open_database>()); }
