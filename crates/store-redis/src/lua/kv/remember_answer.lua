-- Remembers the answer to a namespace request, or looks up a remembered answer. Used by requests that run several
-- scripts.
-- KEYS: 1 remembered answers. ARGV: 1 `ahead`, 2 idempotency key, 3 kind of answer, 4 the number in the answer, or
--   empty to only look up an answer.
-- Reply: kind, replayed flag and number; an empty array if no answer is remembered; or a refusal as in write.lua.
local ahead = tonumber(ARGV[1])
local given, memory = recall(KEYS[1], ARGV[2], ahead, ARGV[3])
if given then return given end
if ARGV[4] == '' then return {} end
local answer = {ARGV[3], 0, tonumber(ARGV[4])}
remember(memory, answer, 8, REMEMBERED_MS, ahead)
return answer
