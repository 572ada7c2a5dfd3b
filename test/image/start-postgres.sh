#!/bin/sh
# Does what the PostgreSQL image does at its first start: creates a cluster for POSTGRES_USER, runs /docker-entrypoint-initdb.d, starts the server.
set -eu
export PATH="/usr/lib/postgresql/15/bin:$PATH" PGDATA=/var/lib/postgresql/data
echo "$POSTGRES_PASSWORD" > /tmp/password
initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 --auth-local=trust --encoding=UTF8 > /dev/null
rm /tmp/password
echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
pg_ctl start --wait --silent --options="-c listen_addresses='' -k /tmp"
export PGHOST=/tmp
psql --quiet --username "$POSTGRES_USER" --dbname postgres --command "create database $POSTGRES_DB"
for script in /docker-entrypoint-initdb.d/*.sh; do sh "$script"; done
pg_ctl stop --wait --silent --mode=fast
exec postgres -c listen_addresses='*' -k /tmp
