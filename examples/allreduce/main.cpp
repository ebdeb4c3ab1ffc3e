// Four processes on two nodes fit a line to points. Each has a quarter of the points, and in each
// round all get the sum of all gradients over sockets: `allreduce run -o local`, or in containers
// `allreduce run`.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <vector>

#include <pipeline/pipeline.hpp>

namespace pl = pipeline;

namespace {

int check(int result, const char* call) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), call);
  return result;
}

/// The processes of a step. Rank 0 has a connection to each of the others.
class Group {
 public:
  explicit Group(const pl::StepContext& context)
      : rank_(context.rank()), peers_(context.rank() == 0 ? context.world_size() - 1 : 1) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(context.port()));
    check(::inet_pton(AF_INET, context.addresses().front().c_str(), &address.sin_addr),
          "inet_pton");
    const auto* at = reinterpret_cast<const sockaddr*>(&address);
    const int own = check(::socket(AF_INET, SOCK_STREAM, 0), "socket");
    if (rank_ == 0) {
      const int on = 1;
      ::setsockopt(own, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      check(::bind(own, at, sizeof address), "bind");
      check(::listen(own, SOMAXCONN), "listen");
    }
    context.barrier();  // From here on, rank 0 listens.
    if (rank_ > 0) {
      check(::connect(own, at, sizeof address), "connect");
      send(peers_.front() = own, &rank_, sizeof rank_);
      return;
    }
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      const int peer = check(::accept(own, nullptr, nullptr), "accept");
      unsigned rank = 0;
      receive(peer, &rank, sizeof rank);
      peers_.at(rank - 1) = peer;
    }
    ::close(own);
  }
  ~Group() {
    for (const int peer : peers_) ::close(peer);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  /// Replaces the values by their sums over all processes. Rank 0 adds them in the order of the
  /// ranks, so that all have the same sums to the last bit, in every run.
  void all_reduce(std::vector<double>& values) const {
    const auto size = values.size() * sizeof(double);
    std::vector<double> others(rank_ == 0 ? values.size() : 0);
    if (rank_ > 0) send(peers_.front(), values.data(), size);
    for (const int peer : peers_) {
      if (rank_ > 0) return receive(peer, values.data(), size);
      receive(peer, others.data(), size);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += others[i];
    }
    for (const int peer : peers_) send(peer, values.data(), size);
  }

 private:
  static void send(int peer, const void* bytes, std::size_t size) {
    check(static_cast<int>(::send(peer, bytes, size, MSG_NOSIGNAL)), "send");
  }
  static void receive(int peer, void* bytes, std::size_t size) {
    const auto count = check(static_cast<int>(::recv(peer, bytes, size, MSG_WAITALL)), "recv");
    if (static_cast<std::size_t>(count) < size)
      throw std::system_error(ECONNRESET, std::generic_category(), "a process has ended");
  }

  unsigned rank_;
  std::vector<int> peers_;
};

}  // namespace

struct Line {
  double slope = 0, offset = 0;
};

/// Fits a line to the points (x, 3 x + 1) by gradient descent.
Line fit(int points, int rounds, pl::StepContext& context) {
  const Group group(context);
  Line line;
  const double rate = 0.5;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> sums(3);  // Of the gradient's two parts, and of the squared errors.
    for (int i = static_cast<int>(context.rank()); i < points;
         i += static_cast<int>(context.world_size())) {
      const double x = double(i) / points;
      const double error = line.slope * x + line.offset - (3 * x + 1);
      sums[0] += error * x;
      sums[1] += error;
      sums[2] += error * error;
    }
    group.all_reduce(sums);
    line.slope -= rate * sums[0] / points;
    line.offset -= rate * sums[1] / points;
    context.metric("loss", sums[2] / points, round);
  }
  std::printf("y = %.17g x + %.17g\n", line.slope, line.offset);
  return line;
}

double error_of(const Line& line) { return std::abs(line.slope - 3) + std::abs(line.offset - 1); }

int main(int argc, char** argv) {
  pl::Pipeline lines{"allreduce",
                     {.description = "Processes on several nodes fit a line together, over sockets",
                      .docker = {.parent_image = "debian:bookworm-slim"}}};
  auto line = lines.add(
      pl::step<fit>({.arguments = {"points", "rounds"}, .nodes = {.count = 2, .processes = 2}}),
      1000, pl::param("rounds", 500));
  lines.add(pl::step<error_of>({.arguments = {"line"}}), line);
  return pl::run_main(lines, argc, argv);
}
