-- Records how a tool call ended.
-- KEYS: 1 thread, 2 effects.
-- ARGV: 1 `ahead`, 2 `access`, 3 turn token or empty, 4 id, 5 fence or empty, 6 state, 7 result or error.
-- Reply: as in effects.lua, then 1 if the effect was already settled with this value; or a refusal.
local key, ahead = KEYS[1], tonumber(ARGV[1])
local m = living(key, ahead)
local refusal = owner_refusal(m, ARGV[2])
if refusal then return refusal end
if not m then return {'R', 'effect_not_found', 0} end
local turn, numbers = unpack(call('HMGET', key, 'U', 'N'))
local g, s = effects_of(KEYS[2], m), {id = ARGV[4], fence = ARGV[5], state = ARGV[6], text = ARGV[7]}
local e, repeated
refusal, e, repeated = settlement_refusal(g, s, turn, numbers, ARGV[3], ahead, {})
if not refusal and not repeated then
  -- even a full store accepts the results of open effects, which are at most 4 MiB in a thread
  write_even_when_full(KEYS[2])
  settle_effect(g, e, s, (numbers_of(turn, numbers)))
end
touch(key, ahead, '')
if refusal then return refusal end
local reply = effect_reply(g, e, letter_of(e))
reply[5] = repeated and 1 or 0
return reply
