-- The turn that is held. KEYS: 1 thread. ARGV: 1 ahead.
-- Reply: nil, or when it ends, and whether it is exclusive.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local turn = touch(key, ahead) and call('HGET', key, 'U')
if not turn then return false end
local _, ends, flags = unpack_(TURN, turn)
if ends <= now(ahead) then return false end
return {fmt('%.0f', ends), flags % 2}
