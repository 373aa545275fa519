-- Reads the turn of a thread. KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`.
-- Reply: nil, a refusal, or the end of the turn if it is held, and whether it is exclusive.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m, refusal = touch(key, ahead, ARGV[2])
if not m then return refusal end
local turn = call('HGET', key, 'U')
if not turn then return false end
local _, ends, flags = unpack_(TURN, turn)
if ends <= now(ahead) then return false end
return {fmt('%.0f', ends), flags % 2}
