#!/bin/sh
# Create the database at the first start, set the password of the role kb at each start, and run the server with the given options.
set -eu
umask 077

# Run statements without a server. An empty line ends each one, and an error ends the script.
run() {
  postgres --single -j -c exit_on_error=on -D "$1" "$2" >/dev/null
}

if [ ! -d "$PGDATA" ]; then
  rm -rf "$PGDATA.part" # from an interrupted start
  # Use PostgreSQL's own order of letters. The C library's order may change with the image and make indexes wrong.
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
