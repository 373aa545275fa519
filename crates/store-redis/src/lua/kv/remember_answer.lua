-- Remembers the answer to a request about a namespace that took several steps, or looks it up.
-- KEYS: 1 remembered answers. ARGV: 1 ahead, 2 idempotency key, 3 kind, 4 number, or empty to only look it up.
-- Reply: kind, replayed flag and number; empty without an answer; or a refusal as in write.lua.
local ahead = tonumber(ARGV[1])
local given, memory = recall(KEYS[1], ARGV[2], ahead, ARGV[3])
if given then return given end
if ARGV[4] == '' then return {} end
local answer = {ARGV[3], 0, tonumber(ARGV[4])}
remember(memory, answer, 8, REMEMBERED_MS, ahead)
return answer
