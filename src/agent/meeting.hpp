/// @file
/// The connections between the agents of a step's nodes. The agents use them to begin, restart and
/// end the step's processes on all nodes together.
#pragma once

#include <string>
#include <vector>

#include <poll.h>

namespace pipeline::agent {

std::vector<std::string> split_at_commas(const std::string& text);

/// The agent of node 0 listens, and the agents of the other nodes connect to its IP address. Each
/// agent tells node 0 the state of its processes. Node 0 sends a command to all agents once all
/// have the same state, or as soon as a process has failed. The port may get connections from
/// others, who do not know `id`: node 0 closes these, and has room for an agent at any time.
class Meeting {
 public:
  enum class State {
    waits,     ///< The node is ready to start its processes.
    failed,    ///< A process has failed, and all nodes are to restart theirs.
    has_ended  ///< All processes of the node have succeeded.
  };
  enum class Command {
    none,   ///< There is no command at present.
    begin,  ///< Start the processes.
    stop,   ///< End the processes, and wait for the next `begin`.
    end     ///< All nodes have succeeded: exit.
  };

  /// @param id a word that agents of other attempts do not know
  Meeting(unsigned node, unsigned nodes, std::string id);
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// Listens at, or connects to, the port of node 0. Returns an empty text on success, else the
  /// reason; the caller may try again.
  std::string connect(const char* address, const char* port);
  bool is_connected() const { return is_connected_; }
  /// Returns the IP address of each node, by node: that at which the node and node 0 have reached
  /// one another. Empty before the first Command::begin.
  const std::vector<std::string>& addresses() const { return addresses_; }
  /// Returns whether this agent's connections hold: on node 0 those to all nodes, on others the one
  /// to node 0.
  bool is_whole() const;

  /// Tells node 0 the state of this node's processes. Node 0 sends `begin` when all nodes wait,
  /// `stop` when one has failed, and `end` when all have ended.
  void tell(State state);
  /// Appends the listening socket and the connections, for poll(2).
  void watch(std::vector<pollfd>& files) const;
  /// Reads from all connections without waiting, and returns the next command for this node.
  Command next();

 private:
  struct Peer {
    int file = -1;
    unsigned node = 0;       ///< On node 0: 0 until the peer has said which node it is.
    std::string bytes = {};  ///< The beginning of a line whose end has not arrived.
  };
  bool read(Peer& peer);
  void accept_all();
  void drop_stranger();
  void handle_lines(Peer& peer);
  bool is_connected_to(unsigned long node) const;
  void record_state(unsigned node, State state);
  std::string begin_text();
  void send_to_all(const std::string& command);

  const unsigned node_, nodes_;
  const std::string id_;
  int listener_ = -1;
  bool is_connected_ = false;
  bool is_broken_ = false;    ///< The connection to a node has ended.
  bool is_stopping_ = false;  ///< Node 0 has sent `stop`, and the nodes do not all wait yet.
  std::vector<Peer> peers_;   ///< On node 0 all other nodes and strangers, elsewhere node 0.
  std::vector<char> states_;  ///< Used on node 0 only: the letter of each node's state; 0: unknown.
  std::vector<Command> commands_;
  std::vector<std::string> addresses_;
};

}  // namespace pipeline::agent
