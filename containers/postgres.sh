#!/bin/sh
# Makes the database at the first start, gives the role kb its password at each one, and runs the server with what options are given.
set -eu
umask 077

# Runs statements without a server; an empty line ends each. A mistake ends all.
run() {
  postgres --single -j -c exit_on_error=on -D "$1" "$2" >/dev/null
}

if [ ! -d "$PGDATA" ]; then
  rm -rf "$PGDATA.part" # of a start that was cut off
  # PostgreSQL's own order of letters: that of the C library may change with the image, and then indexes are wrong.
  initdb --pgdata "$PGDATA.part" --auth-local peer --auth-host scram-sha-256 --encoding UTF8 \
    --locale C --locale-provider builtin --builtin-locale C.UTF-8
  echo "host all all all scram-sha-256" >>"$PGDATA.part/pg_hba.conf"
  run "$PGDATA.part" postgres <<END
CREATE ROLE kb LOGIN;

CREATE DATABASE kb OWNER kb;

END
  mv "$PGDATA.part" "$PGDATA"
fi

run "$PGDATA" kb <<END
ALTER ROLE kb PASSWORD '${KB_POSTGRES_PASSWORD:?the engines send it}';

CREATE EXTENSION IF NOT EXISTS vector;

ALTER EXTENSION vector UPDATE;

END

exec postgres -c listen_addresses='*' -c unix_socket_directories="$PGHOST" "$@"
