-- Renews a turn. KEYS: 1 thread, 2 effects. ARGV: 1 `ahead`, 2 `access`, 3 token, 4 duration from now.
-- Reply: as in take_turn.lua.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m, refusal = touch(key, ahead, ARGV[2])
if not m then return refusal or {'R', 'turn_lost'} end
local turn = call('HGET', key, 'U')
if not turn then return {'R', 'turn_lost'} end
local token, ends, flags = unpack_(TURN, turn)
if token ~= ARGV[3] or ends == 0 then return {'R', 'turn_lost'} end
ends = now(ahead) + tonumber(ARGV[4])
call('HSET', key, 'U', pack(TURN, token, ends, flags) .. last_response(turn))
set_format(key, m, flags % 2 == 1)
local number, _, has_effects = numbers_of(turn, call('HGET', key, 'N'))
local g = has_effects == 1 and effects_of(KEYS[2], m)
return {'U', 0, token, fmt('%.0f', ends), fmt('%.0f', number), g and g.open - (g.turn == number and g.running or 0) or 0}
