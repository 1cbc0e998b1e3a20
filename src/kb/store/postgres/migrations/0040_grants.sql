-- What people granted to programs that sign in by OAuth. The codes and tokens are not here, only their SHA-256.
CREATE TABLE grants (
  id text COLLATE "C" PRIMARY KEY,
  family text NOT NULL UNIQUE,
  key_name text NOT NULL,
  key_digest text NOT NULL,
  client_id text NOT NULL,
  client_name text NOT NULL,
  scopes text NOT NULL,
  resource text NOT NULL,
  redirect_uri text NOT NULL,
  challenge text NOT NULL,
  created_at text NOT NULL,
  next_digest text NOT NULL,
  until text NOT NULL,
  used_at text,
  access_digest text,
  access_scopes text,
  access_until text
);
