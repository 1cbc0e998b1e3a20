#!/bin/sh
# Makes .env from .env.example, for its owner alone, and a key wherever one is missing: the two that the stack needs, and those that
# are named. Prints no key.
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
  echo "compose/.env: made $name"
done
