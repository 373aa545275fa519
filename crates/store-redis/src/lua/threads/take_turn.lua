-- Grants a turn. With an idempotency key, returns the turn that was granted to an earlier request with this key.
-- KEYS: 1 thread, 2 remembered answers, 3 effects.
-- ARGV: 1 `ahead`, 2 `access`, 3 idempotency key or empty, 4 token, 5 duration, 6 flags: 1 exclusive, 2 the caller is
--   waiting, 4 only look up an earlier turn.
-- Reply: `U`, replayed flag, token, end, number, number of effects in doubt; a refusal; or nil if there is no earlier turn.
local key, ahead, access, flags = KEYS[1], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[6])
local refusal = owner_refusal(access ~= '' and living(key, ahead), access)
if refusal then return refusal end
local given, memory = recall(KEYS[2], ARGV[3], ahead, 'U')
if given or flags == 4 then return given or false end
local m, left = touch(key, ahead, access)
if not m or is_unbound(m, access) then return {'R', 'no_thread'} end
local turn = call('HGET', key, 'U')
if turn then
  local token, ends, its_flags = unpack_(TURN, turn)
  if ends > now(ahead) then
    if flags >= 2 and its_flags < 2 then
      call('HSET', key, 'U', pack(TURN, token, ends, its_flags + 2) .. last_response(turn))
    end
    return {'R', 'turn_taken', fmt('%.0f', ends), fmt('%.0f', ends - now(ahead))}
  end
end
local ends = now(ahead) + tonumber(ARGV[5])
local number, has_effects = grant_turn(key, turn, ARGV[4], ends, flags % 2)
set_format(key, m, flags % 2 == 1)
local g = has_effects == 1 and effects_of(KEYS[3], m)
-- each open effect belongs to an earlier turn
local answer = {'U', 0, ARGV[4], fmt('%.0f', ends), fmt('%.0f', number), g and g.open or 0}
if memory then remember(memory, answer, 0, left, ahead) end
return answer
