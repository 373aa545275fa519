-- Releases a turn, and publishes the release if another caller is waiting for the turn.
-- KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 token, 4 channel. Reply: `U`, or a refusal.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m, refusal = touch(key, ahead, ARGV[2])
if not m then return refusal or {'U'} end
local turn = call('HGET', key, 'U')
if not turn then return {'U'} end
local token, ends, flags = unpack_(TURN, turn)
if token ~= ARGV[3] then
  return ends > now(ahead) and {'R', 'turn_lost'} or {'U'}
end
write_even_when_full(key)
call('HSET', key, 'U', pack(TURN, token, 0, flags % 2) .. last_response(turn))
set_format(key, m, false)
-- pcall, because the user may lack access to the channel
if flags >= 2 then redis.pcall('PUBLISH', ARGV[4], id_of(key)) end
return {'U'}
