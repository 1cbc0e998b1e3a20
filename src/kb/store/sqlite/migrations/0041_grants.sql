-- What people granted to programs that sign in by OAuth. The codes and tokens are not here, only their SHA-256.
CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  family TEXT NOT NULL UNIQUE,
  key_name TEXT NOT NULL,
  key_digest TEXT NOT NULL,
  client_id TEXT NOT NULL,
  client_name TEXT NOT NULL,
  scopes TEXT NOT NULL,
  resource TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  challenge TEXT NOT NULL,
  created_at TEXT NOT NULL,
  next_digest TEXT NOT NULL,
  until TEXT NOT NULL,
  used_at TEXT,
  access_digest TEXT,
  access_scopes TEXT,
  access_until TEXT
) WITHOUT ROWID;
