-- Reads the turn of a thread. KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`.
-- Reply: nil, a refusal, or the number of the last turn; then, while the turn is held, its end and whether it is exclusive.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m, refusal = touch(key, ahead, ARGV[2])
if not m then return refusal end
local turn, numbers = unpack(call('HMGET', key, 'U', 'N'))
local number = numbers_of(turn, numbers)
if not turn then return {number} end
local _, ends, flags = unpack_(TURN, turn)
if ends <= now(ahead) then return {number} end
return {number, fmt('%.0f', ends), flags % 2}
