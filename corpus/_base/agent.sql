-- The shape of an agent's store: sessions, messages, two external-content search indexes with their triggers.
CREATE TABLE sessions(id TEXT PRIMARY KEY, source TEXT NOT NULL, started_at REAL NOT NULL, title TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL, content TEXT, timestamp REAL NOT NULL);
CREATE UNIQUE INDEX idx_sessions_title ON sessions(title) WHERE title IS NOT NULL;
CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
CREATE VIRTUAL TABLE messages_fts USING fts5(content, content=messages, content_rowid=id);
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5(content, content=messages, content_rowid=id, tokenize='trigram');
CREATE TRIGGER mi AFTER INSERT ON messages BEGIN
  INSERT INTO messages_fts(rowid, content) VALUES(new.id, new.content);
  INSERT INTO messages_fts_trigram(rowid, content) VALUES(new.id, new.content); END;
CREATE TRIGGER md AFTER DELETE ON messages BEGIN
  INSERT INTO messages_fts(messages_fts, rowid, content) VALUES('delete', old.id, old.content);
  INSERT INTO messages_fts_trigram(messages_fts_trigram, rowid, content) VALUES('delete', old.id, old.content); END;
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12)
INSERT INTO sessions SELECT printf('%04x-%d', i * 2654435 % 65536, i), substr('cli crontele', 1 + 4 * (i % 3), 4), 1760000000.5 + i * 60, CASE WHEN i % 3 THEN printf('talk %d', i) END FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
INSERT INTO messages(session_id, role, content, timestamp)
SELECT printf('%04x-%d', (1 + i % 12) * 2654435 % 65536, 1 + i % 12), CASE i % 3 WHEN 0 THEN 'user' WHEN 1 THEN 'tool' ELSE 'assistant' END,
  CASE WHEN i % 11 = 5 THEN NULL ELSE printf('message %d: %s über %s', i, substr('the quick brown fox jumps over the lazy dog by the river', 1 + i % 20, 8 + i % 24), substr('東京から大阪まで', 1 + i % 5, 3)) END,
  1760000000.25 + i FROM n;
COMMIT;
