. "$(dirname "$0")/l.sh" `x` $((1<<2)) <<EOF
y
EOF
