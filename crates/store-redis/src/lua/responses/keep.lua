-- Renews the lease of a response's driver. A duration of 0 releases the response, even if the driver has lost the turn.
-- KEYS: 1 response, 2 its thread, if any. ARGV: 1 `ahead`, 2 token of the driver, 3 scope, 4 duration.
-- Reply: `K`, or a refusal.
local key, thread, ahead = KEYS[1], KEYS[2], tonumber(ARGV[1])
local r = open_response(key, ahead)
if r and not is_in(key, r, ARGV[3], thread) then return {'R', 'turn_lost'} end
local refusal = driver_refusal(r, ARGV[2], thread, thread and living(thread, ahead))
local may_release = tonumber(ARGV[4]) == 0 and r and not r.has_ended and r.token == ARGV[2]
if refusal and not may_release then return refusal end
settle_response(key, r)
write_even_when_full(key)
r.lease = now(ahead) + tonumber(ARGV[4])
call('HSET', key, 'M', pack_response(r))
keep(key, r, ahead)
if refusal or not thread then return {'K'} end
touch(thread, ahead, '')
if r.turn == r.token then
  local turn = call('HGET', thread, 'U')
  local token, _, flags = unpack_(TURN, turn)
  call('HSET', thread, 'U', pack(TURN, token, r.lease, flags) .. last_response(turn))
end
return {'K'}
