CREATE TABLE rate0(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
CREATE TABLE rate1(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
CREATE TABLE rate2(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
CREATE TABLE rate3(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
CREATE TABLE rate4(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
CREATE TABLE rate5(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
CREATE TABLE rate6(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
CREATE TABLE rate7(code TEXT UNIQUE, percent REAL NOT NULL, valid_until TEXT);
