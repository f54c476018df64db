-- Run once, when PostgreSQL's volume is new; by compose too.
CREATE DATABASE prefect;
CREATE DATABASE mlflow;
\connect prefect
CREATE EXTENSION IF NOT EXISTS pg_trgm;
