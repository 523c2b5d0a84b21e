-- A small shop: foreign keys, a UNIQUE index, an index with two columns, a table without rowids, a table without any
-- index, rows with overflow chains, a view and a trigger.
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT UNIQUE, city TEXT COLLATE NOCASE);
CREATE TABLE orders(id INTEGER PRIMARY KEY AUTOINCREMENT, customer_id INTEGER NOT NULL REFERENCES customer(id), total REAL NOT NULL, note TEXT);
CREATE INDEX orders_customer ON orders(customer_id, total);
CREATE TABLE kv(k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID;
CREATE TABLE log(line TEXT);
CREATE VIEW big AS SELECT * FROM orders WHERE total > 50;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45)
INSERT INTO customer SELECT i, printf('%s %d', substr('Ada Bo Cem Dea Eli Fay Gus', 1 + 4 * (i % 7), 3), i), CASE WHEN i % 5 THEN printf('u%d@example.org', i) END,
  substr('Oslo Bern Kyiv Rome', 1 + 5 * (i % 4), 4) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 110)
INSERT INTO orders SELECT i, 1 + (i * 7) % 45, (i * 37 % 1000) / 10.0, CASE WHEN i % 3 THEN printf('order %d of %s', i, substr('amber birch copper drift ebb', 1 + i % 15, 9)) END FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
INSERT INTO kv SELECT printf('key %03d', i * 13 % 97), CAST(printf('value %d %.*c', i, i % 30, 'v') AS BLOB) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45)
INSERT INTO log SELECT CASE WHEN i % 20 = 10 THEN printf('long %d %.*c', i, 1300 + i, 'x') ELSE printf('line %d, nothing else to say', i) END FROM n;
CREATE TRIGGER positive BEFORE INSERT ON orders WHEN new.total < 0 BEGIN SELECT RAISE(ABORT, 'negative'); END;
