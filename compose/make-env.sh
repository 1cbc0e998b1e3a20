#!/bin/sh
# Create .env from .env.example, readable only by its owner, with a key for each empty variable: the two that the stack needs,
# and the variables in the arguments. Print no key.
set -eu
cd "$(dirname "$0")"
umask 077
[ -e .env ] || cp .env.example .env
chmod 600 .env
for name in KB_API_KEY KB_MCP_API_KEY "$@"; do
  grep -q "^$name=." .env && continue
  key=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
  { grep -v "^$name=" .env || :; printf '%s=%s\n' "$name" "$key"; } >.env.new
  mv .env.new .env
  echo "compose/.env: created $name"
done
