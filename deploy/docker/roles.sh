#!/bin/sh
# The PostgreSQL image runs this script once, in a new database. It creates the service's user, which owns nothing (deploy/roles.sql).
set -eu
psql --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$QUITTANCE_DATABASE_PASSWORD" <<'SQL'
create role quittance_runtime nologin;
create role quittance login password :'password' in role quittance_runtime;
SQL
