#!/bin/sh
# mpi.sh SLOTS PROGRAM [ARGUMENT]...: starts SLOTS processes of an MPI program on each node of a step, by Open MPI's mpirun on the first.
# mpirun would reach the others by ssh. Here each of them waits, in the folder that all have, for the command that mpirun has for it.
set -e
launch=$PIPE_CHECKPOINT/launch-$PIPE_RENDEZVOUS_ID

if [ "$1" = --on ]; then # mpirun calls this in place of `ssh HOST COMMAND...`
  node=0
  for address in $(echo "$PIPE_NODE_ADDRESSES" | tr , ' '); do
    [ "$address" != "$2" ] || break
    node=$((node + 1))
  done
  shift 2
  echo "$*" >"$launch.$node.new"
  mv "$launch.$node.new" "$launch.$node"
elif [ "$PIPE_NODE_RANK" != 0 ]; then
  until [ -f "$launch.$PIPE_NODE_RANK" ]; do sleep 0.1; done
  exec sh -c "$(cat "$launch.$PIPE_NODE_RANK")"
else
  slots=$1
  shift
  printf '#!/bin/sh\nexec sh "%s" --on "$@"\n' "$PWD/mpi.sh" >"$launch.ssh"
  chmod +x "$launch.ssh"
  hosts=$(echo "$PIPE_NODE_ADDRESSES" | sed "s/,/:$slots,/g"):$slots
  exec mpirun --allow-run-as-root --leave-session-attached --mca plm_rsh_agent "$launch.ssh" --host "$hosts" "$@"
fi
