-- Has a turn last longer. KEYS: 1 thread. ARGV: 1 ahead, 2 token, 3 how long it lasts from now.
-- Reply: as that of take_turn.lua, or a refusal.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m = touch(key, ahead)
local turn = m and call('HGET', key, 'U')
if not turn then return {'R', 'turn_lost'} end
local token, ends, flags = unpack_(TURN, turn)
if token ~= ARGV[2] or ends == 0 then return {'R', 'turn_lost'} end
ends = now(ahead) + tonumber(ARGV[3])
call('HSET', key, 'U', pack(TURN, token, ends, flags))
set_format(key, m, flags % 2 == 1 and WITH_TURN or PLAIN)
return {'U', 0, token, fmt('%.0f', ends)}
