#!/bin/sh
# Uploads what `make release` made:  publish.sh FOLDER [IMAGES]
#
# The packages go to the index at UV_PUBLISH_URL, with UV_PUBLISH_TOKEN or what else `uv publish` takes. It must be named, so
# that nothing is published by accident. The images go to IMAGES, as in registry.example.org/kb, if it is given.
set -eu
cd "$1"
sha256sum --quiet --check SHA256SUMS
: "${UV_PUBLISH_URL:?names the package index to publish to}"
uv publish ./*.whl ./*.tar.gz
[ -n "${2-}" ] || exit 0
for image in kb-engine kb-mcp; do
  docker tag "$image:$KB_VERSION" "$2/$image:$KB_VERSION"
  docker push --quiet "$2/$image:$KB_VERSION"
done
