-- Releases a turn, and publishes the release if another caller is waiting for the turn.
-- KEYS: 1 thread. ARGV: 1 `ahead`, 2 `access`, 3 token, 4 channel, 5 `i` if the work of the turn is
--   incomplete. Reply: `U`, or a refusal.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m, refusal = touch(key, ahead, ARGV[2])
if not m then return refusal or {'U'} end
local turn = call('HGET', key, 'U')
if not turn then return {'U'} end
local token, ends = unpack_(TURN, turn)
if token ~= ARGV[3] then
  return ends > now(ahead) and {'R', 'turn_lost'} or {'U'}
end
write_even_when_full(key)
local is_awaited = release_turn(key, turn, ARGV[5] ~= 'i')
set_format(key, m, false)
-- pcall, because the user may lack access to the channel
if is_awaited then redis.pcall('PUBLISH', ARGV[4], id_of(key)) end
return {'U'}
