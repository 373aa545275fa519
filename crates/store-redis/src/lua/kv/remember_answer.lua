-- Remembers the answer to a request about a namespace whose work was not one step, or looks for it.
-- KEYS: 1 the remembered answers of the namespace. ARGV: 1 ahead, 2 idempotency key, 3 what kind of answer it is,
-- 4 a number, or nothing to look only.
-- Reply: the kind, whether it was replayed, and the number; nothing without an answer; or a refusal as in write.lua.
local ahead = tonumber(ARGV[1])
local given, memory = recall(KEYS[1], ARGV[2], ahead, ARGV[3])
if given then return given end
if ARGV[4] == '' then return {} end
local answer = {ARGV[3], 0, tonumber(ARGV[4])}
remember(memory, answer, 8, REMEMBERED_MS, ahead)
return answer
