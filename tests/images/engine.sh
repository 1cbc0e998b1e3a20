#!/usr/bin/env bash
# Runs a command where Docker with compose can be had:  tests/images/engine.sh make test-images
#
# With a Docker engine at hand it only runs the command. Otherwise it takes everything from Debian's packages, as root:
# Docker, compose, and a base image with Debian's Python, for no registry may be within reach. The engine it starts lives
# in a folder of its own and ends with the command. Exit status 75: there is none, and none could be started.
set -eEuo pipefail
docker info >/dev/null 2>&1 && docker compose version >/dev/null 2>&1 && exec "$@"

SUITE=trixie # the first with compose v2; Python 3.13
BASE=kb-base:$SUITE
work=$(mktemp -d)
export DOCKER_HOST=unix://$work/docker.sock DOCKER_CONFIG=$work/config

main() {
  trap finish EXIT
  trap 'echo "no Docker engine can be had here" >&2; exit 75' ERR
  install_packages
  install_plugins
  start_engine
  make_base
  trap - ERR
  # Build steps use the host's network, which is known to reach the package indexes.
  PATH=$PATH:$work/packages/usr/bin PYTHON_IMAGE=$BASE KB_BUILD_NETWORK=host "$@"
}

finish() {
  [ ! -f "$work/pid" ] || { kill "$(cat "$work/pid")" && tail --pid="$(cat "$work/pid")" -f /dev/null; }
  rm -rf "$work"
}

install_packages() {
  command -v dockerd >/dev/null && command -v mmdebstrap >/dev/null && command -v iptables >/dev/null && return
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker.io mmdebstrap iptables >/dev/null
}

# compose, buildx and a registry for images are single files: they are taken out of their packages, so that the machine's own
# suite stays what it is, and no service starts.
install_plugins() {
  local apt=$work/apt options
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$work/packages" "$DOCKER_CONFIG/cli-plugins"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $SUITE main" >"$apt/sources.list"
  options=(-o "Dir::State::Lists=$apt/lists" -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
    -o "Dir::Cache::Archives=$apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update -qq
  (cd "$work/packages" && apt-get "${options[@]}" download -qq docker-compose docker-buildx docker-registry && for package in *.deb; do
    dpkg -x "$package" .
  done)
  cp "$work"/packages/usr/libexec/docker/cli-plugins/* "$DOCKER_CONFIG/cli-plugins/"
}

# Where this machine's own packages come from.
mirror() {
  apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | grep -v security | head -1
}

start_engine() {
  setsid dockerd --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" -H "$DOCKER_HOST" \
    >"$work/log" 2>&1 </dev/null &
  for _ in $(seq 120); do
    docker info >/dev/null 2>&1 && return
    sleep 0.5
  done
  tail -20 "$work/log" >&2
  return 1
}

make_base() {
  mmdebstrap --quiet --mode=root --variant=minbase --include=ca-certificates,python3-pip \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --customize-hook='rm "$1"/usr/lib/python3*/EXTERNALLY-MANAGED' \
    --customize-hook='copy-in /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs' $SUITE "$work/base.tar" "$(mirror)"
  docker import "$work/base.tar" $BASE >/dev/null
}

main "$@"
