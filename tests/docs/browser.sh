#!/usr/bin/env bash
# Runs a command where a browser and its driver can be had:  tests/docs/browser.sh make test-docs
#
# With both at hand it only runs the command. Otherwise it takes them from Debian's packages, as root. Exit status 75:
# there are none, and none could be installed.
set -euo pipefail
if ! command -v chromedriver >/dev/null; then
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    chromium chromium-driver; } >/dev/null || { echo "no browser can be had here: the docs are not looked at" >&2; exit 75; }
fi
exec "$@"
