-- A store of layout 1 as a Crow of that time wrote it, killed in the middle of a question.
PRAGMA application_id = 1131573111;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE former_texts (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    tag TEXT NOT NULL,
    optional INTEGER NOT NULL,
    time INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);
INSERT INTO "former_texts" VALUES(1,21,1,'file_changing',0,1794832148559,'{"event":"file_changing","call_id":"t1-c1","path":"/project/nest.py","before":{"text":"material = ''twig''\n# ä\n","encoding":"utf-8","mark":false}}');
INSERT INTO "former_texts" VALUES(1,28,1,'file_changing',0,1794832148568,'{"event":"file_changing","call_id":"t1-c2","path":"/project/nest.py","before":{"text":"material = ''branch''\n# ä\n","encoding":"utf-8","mark":false}}');
INSERT INTO "former_texts" VALUES(1,35,1,'file_changing',0,1794832148573,'{"event":"file_changing","call_id":"t1-c3","path":"/project/new.txt","before":null}');
CREATE TABLE records (
    session INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    tag TEXT NOT NULL,
    optional INTEGER NOT NULL,
    time INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session, seq)
);
INSERT INTO "records" VALUES(1,1,1,'option_chosen',0,1794832148545,'{"event":"option_chosen","option":"mode","value":"ask"}');
INSERT INTO "records" VALUES(1,2,1,'option_chosen',0,1794832148545,'{"event":"option_chosen","option":"model","value":"scripted/test"}');
INSERT INTO "records" VALUES(1,3,1,'title_changed',1,1794832148545,'{"event":"title_changed","title":"rename it"}');
INSERT INTO "records" VALUES(1,4,1,'turn_started',0,1794832148545,'{"event":"turn_started","turn_id":"t1"}');
INSERT INTO "records" VALUES(1,5,1,'user_said',0,1794832148545,'{"event":"user_said","message_id":"t1-m1","sent":[{"sent":"text","text":"rename it"},{"sent":"resource","uri":"file:///b.py","text":"x = 1\n","blob":null,"mime_type":"text/x-python"}],"parts":[{"part":"text","text":"rename it"},{"part":"text","text":"Attached: file:///b.py\n```\nx = 1\n```"}]}');
INSERT INTO "records" VALUES(1,6,1,'thought_delta',0,1794832148557,'{"event":"thought_delta","message_id":"t1-m2","text":"Two edits.","origin":"scripted"}');
INSERT INTO "records" VALUES(1,7,1,'text_delta',0,1794832148557,'{"event":"text_delta","message_id":"t1-m3","text":"I will."}');
INSERT INTO "records" VALUES(1,8,1,'call_opened',0,1794832148557,'{"event":"call_opened","call_id":"t1-c1","tool":"edit","kind":"edit","title":"Edit","own":false}');
INSERT INTO "records" VALUES(1,9,1,'call_opened',0,1794832148557,'{"event":"call_opened","call_id":"t1-c2","tool":"edit","kind":"edit","title":"Edit","own":false}');
INSERT INTO "records" VALUES(1,10,1,'call_opened',0,1794832148557,'{"event":"call_opened","call_id":"t1-c3","tool":"write","kind":"edit","title":"Write","own":false}');
INSERT INTO "records" VALUES(1,11,1,'call_previewed',1,1794832148557,'{"event":"call_previewed","call_id":"t1-c1","title":"Edit nest.py","locations":[{"path":"/project/nest.py","line":null}],"display":[]}');
INSERT INTO "records" VALUES(1,12,1,'call_requested',0,1794832148557,'{"event":"call_requested","call_id":"t1-c1","tool":"edit","arguments":"{\"path\":\"nest.py\",\"edits\":[{\"old\":\"twig\",\"new\":\"branch\"}]}","own":false}');
INSERT INTO "records" VALUES(1,13,1,'call_previewed',1,1794832148557,'{"event":"call_previewed","call_id":"t1-c2","title":"Edit nest.py","locations":[{"path":"/project/nest.py","line":null}],"display":[]}');
INSERT INTO "records" VALUES(1,14,1,'call_requested',0,1794832148557,'{"event":"call_requested","call_id":"t1-c2","tool":"edit","arguments":"{\"path\":\"nest.py\",\"edits\":[{\"old\":\"branch\",\"new\":\"reed\"}]}","own":false}');
INSERT INTO "records" VALUES(1,15,1,'call_previewed',1,1794832148557,'{"event":"call_previewed","call_id":"t1-c3","title":"Write new.txt","locations":[{"path":"/project/new.txt","line":null}],"display":[]}');
INSERT INTO "records" VALUES(1,16,1,'call_requested',0,1794832148557,'{"event":"call_requested","call_id":"t1-c3","tool":"write","arguments":"{\"path\":\"new.txt\",\"content\":\"new\"}","own":false}');
INSERT INTO "records" VALUES(1,17,1,'call_described',1,1794832148557,'{"event":"call_described","call_id":"t1-c1","kind":"edit","title":"Edit nest.py","locations":[{"path":"/project/nest.py","line":1}]}');
INSERT INTO "records" VALUES(1,18,1,'permission_asked',0,1794832148557,'{"event":"permission_asked","call_id":"t1-c1","reason":"/project/nest.py would be changed.","display":[{"block":"diff","path":"/project/nest.py","operation":"modify","old_text":"material = ''twig''\n# ä\n","new_text":"material = ''branch''\n# ä\n"}]}');
INSERT INTO "records" VALUES(1,19,1,'permission_answered',0,1794832148558,'{"event":"permission_answered","call_id":"t1-c1","allowed":true,"option":"once"}');
INSERT INTO "records" VALUES(1,20,1,'call_started',0,1794832148559,'{"event":"call_started","call_id":"t1-c1"}');
INSERT INTO "records" VALUES(1,22,1,'file_written',0,1794832148563,'{"event":"file_written","call_id":"t1-c1","path":"/project/nest.py","digest":"482f8cfe2ace3e2512f258d65eb94e618c45e5d3d7dd920de2289e58efaa0338"}');
INSERT INTO "records" VALUES(1,23,1,'call_settled',0,1794832148563,'{"event":"call_settled","call_id":"t1-c1","result":{"ok":true,"text":"Edited nest.py (+1 −1).","message":"+1 −1","display":[{"block":"diff","path":"/project/nest.py","operation":"modify","old_text":"material = ''twig''\n# ä\n","new_text":"material = ''branch''\n# ä\n"}],"images":[],"says":"","still_running":false}}');
INSERT INTO "records" VALUES(1,24,1,'call_described',1,1794832148566,'{"event":"call_described","call_id":"t1-c2","kind":"edit","title":"Edit nest.py","locations":[{"path":"/project/nest.py","line":1}]}');
INSERT INTO "records" VALUES(1,25,1,'permission_asked',0,1794832148566,'{"event":"permission_asked","call_id":"t1-c2","reason":"/project/nest.py would be changed.","display":[{"block":"diff","path":"/project/nest.py","operation":"modify","old_text":"material = ''branch''\n# ä\n","new_text":"material = ''reed''\n# ä\n"}]}');
INSERT INTO "records" VALUES(1,26,1,'permission_answered',0,1794832148567,'{"event":"permission_answered","call_id":"t1-c2","allowed":true,"option":"once"}');
INSERT INTO "records" VALUES(1,27,1,'call_started',0,1794832148567,'{"event":"call_started","call_id":"t1-c2"}');
INSERT INTO "records" VALUES(1,29,1,'file_written',0,1794832148570,'{"event":"file_written","call_id":"t1-c2","path":"/project/nest.py","digest":"427a7377370ba915be4a582072105d0a39565c0dd2453200808f765e20d0be28"}');
INSERT INTO "records" VALUES(1,30,1,'call_settled',0,1794832148570,'{"event":"call_settled","call_id":"t1-c2","result":{"ok":true,"text":"Edited nest.py (+1 −1).","message":"+1 −1","display":[{"block":"diff","path":"/project/nest.py","operation":"modify","old_text":"material = ''branch''\n# ä\n","new_text":"material = ''reed''\n# ä\n"}],"images":[],"says":"","still_running":false}}');
INSERT INTO "records" VALUES(1,31,1,'call_described',1,1794832148571,'{"event":"call_described","call_id":"t1-c3","kind":"edit","title":"Write new.txt","locations":[{"path":"/project/new.txt","line":1}]}');
INSERT INTO "records" VALUES(1,32,1,'permission_asked',0,1794832148571,'{"event":"permission_asked","call_id":"t1-c3","reason":"/project/new.txt would be changed.","display":[{"block":"diff","path":"/project/new.txt","operation":"add","old_text":"","new_text":"new"}]}');
INSERT INTO "records" VALUES(1,33,1,'permission_answered',0,1794832148572,'{"event":"permission_answered","call_id":"t1-c3","allowed":true,"option":"once"}');
INSERT INTO "records" VALUES(1,34,1,'call_started',0,1794832148572,'{"event":"call_started","call_id":"t1-c3"}');
INSERT INTO "records" VALUES(1,36,1,'file_written',0,1794832148574,'{"event":"file_written","call_id":"t1-c3","path":"/project/new.txt","digest":"11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"}');
INSERT INTO "records" VALUES(1,37,1,'call_settled',0,1794832148574,'{"event":"call_settled","call_id":"t1-c3","result":{"ok":true,"text":"Created new.txt (+1 −0).","message":"+1 −0","display":[{"block":"diff","path":"/project/new.txt","operation":"add","old_text":"","new_text":"new"}],"images":[],"says":"","still_running":false}}');
INSERT INTO "records" VALUES(1,38,1,'reply_ended',0,1794832148576,'{"event":"reply_ended"}');
INSERT INTO "records" VALUES(1,39,1,'text_delta',0,1794832148576,'{"event":"text_delta","message_id":"t1-m4","text":"Done."}');
INSERT INTO "records" VALUES(1,40,1,'reply_ended',0,1794832148576,'{"event":"reply_ended"}');
INSERT INTO "records" VALUES(1,41,1,'turn_ended',0,1794832148576,'{"event":"turn_ended","turn_id":"t1","stop_reason":"end_turn","error":"","rejected":false}');
INSERT INTO "records" VALUES(1,42,1,'turn_started',0,1794832148578,'{"event":"turn_started","turn_id":"t2"}');
INSERT INTO "records" VALUES(1,43,1,'user_said',0,1794832148578,'{"event":"user_said","message_id":"t2-m1","sent":[{"sent":"text","text":"look"},{"sent":"media","kind":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==","mime_type":"image/png","uri":""}],"parts":[{"part":"text","text":"look"},{"part":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==","mime_type":"image/png"}]}');
INSERT INTO "records" VALUES(1,44,1,'text_delta',0,1794832148579,'{"event":"text_delta","message_id":"t2-m2","text":"I see."}');
INSERT INTO "records" VALUES(1,45,1,'reply_ended',0,1794832148579,'{"event":"reply_ended"}');
INSERT INTO "records" VALUES(1,46,1,'turn_ended',0,1794832148579,'{"event":"turn_ended","turn_id":"t2","stop_reason":"end_turn","error":"","rejected":false}');
INSERT INTO "records" VALUES(1,47,1,'turn_started',0,1794832148581,'{"event":"turn_started","turn_id":"t3"}');
INSERT INTO "records" VALUES(1,48,1,'user_said',0,1794832148581,'{"event":"user_said","message_id":"t3-m1","sent":[{"sent":"text","text":"outside"}],"parts":[{"part":"text","text":"outside"}]}');
INSERT INTO "records" VALUES(1,49,1,'call_opened',0,1794832148583,'{"event":"call_opened","call_id":"t3-c1","tool":"read","kind":"read","title":"Read","own":false}');
INSERT INTO "records" VALUES(1,50,1,'call_requested',0,1794832148583,'{"event":"call_requested","call_id":"t3-c1","tool":"read","arguments":"{\"path\":\"/etc/hostname\"}","own":false}');
INSERT INTO "records" VALUES(1,51,1,'call_described',1,1794832148583,'{"event":"call_described","call_id":"t3-c1","kind":"read","title":"Read /etc/hostname","locations":[{"path":"/etc/hostname","line":1}]}');
INSERT INTO "records" VALUES(1,52,1,'permission_asked',0,1794832148583,'{"event":"permission_asked","call_id":"t3-c1","reason":"/etc/hostname lies outside the workspace.","display":[]}');
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    roots TEXT NOT NULL,
    title TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    listed INTEGER NOT NULL,
    running INTEGER NOT NULL,
    owner TEXT NOT NULL,
    epoch INTEGER NOT NULL
);
INSERT INTO "sessions" VALUES(1,'01234567890a-00112233445566aa','/project','[]','rename it',1794832148533,1794832148581,1,1794832148581,'1-0011223344556677',1);
CREATE INDEX sessions_by_time ON sessions (updated DESC, id DESC) WHERE listed = 1;
CREATE INDEX sessions_by_folder ON sessions (cwd, updated DESC, id DESC) WHERE listed = 1;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('sessions',1);
COMMIT;
