-- A key may expire, and may be limited to a number of requests per minute.
ALTER TABLE keys ADD COLUMN expires_at timestamptz(3);
ALTER TABLE keys ADD COLUMN per_minute integer;
