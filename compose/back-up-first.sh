#!/bin/sh
# Makes a backup in the running engine if another image is about to replace it:  back-up-first.sh docker compose -f FILE
# The stack stays as it is if the backup fails. Without a folder for backups, and with PostgreSQL, there is none to make.
set -eu
running=$("$@" ps --quiet --status running engine | head -n 1)
[ -n "$running" ] || exit 0
new=$("$@" config --images | grep -m 1 '^kb-engine')
[ "$(docker inspect --format '{{.Image}}' "$running")" != "$(docker image inspect --format '{{.Id}}' "$new")" ] || exit 0
"$@" exec -T engine sh -c '[ -z "$KB_BACKUP_DIR" ] || [ -n "$KB_DATABASE_URL" ] || kb backup "$KB_BACKUP_DIR"' || {
  echo "The backup failed, so the engine was not replaced. KB_BACKUP_DIR= in compose/.env turns backups off." >&2
  exit 1
}
