#!/bin/sh
# Run once by the image of PostgreSQL, in a new database: the user that the service is, who owns nothing (deploy/roles.sql).
set -eu
psql --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set password="$QUITTANCE_DATABASE_PASSWORD" <<'SQL'
create role quittance_runtime nologin;
create role quittance login password :'password' in role quittance_runtime;
SQL
