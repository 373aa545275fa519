-- Grants a turn.
-- KEYS: 1 thread, 2 its remembered answers.
-- ARGV: 1 ahead, 2 idempotency key or nothing, 3 token, 4 how long it lasts, 5 flags: 1 exclusive, 2 the caller waits.
-- Reply: `U`, whether it was replayed, token, when it ends; or a refusal.
local key, ahead, flags = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[5])
local given, memory = recall(KEYS[2], ARGV[2], ahead, 'U')
if given then return given end
local m, left = touch(key, ahead)
if not m then return {'R', 'no_thread'} end
local turn = call('HGET', key, 'U')
if turn then
  local token, ends, its_flags = unpack_(TURN, turn)
  if ends > now(ahead) then
    if flags >= 2 and its_flags < 2 then call('HSET', key, 'U', pack(TURN, token, ends, its_flags + 2)) end
    return {'R', 'turn_taken', fmt('%.0f', ends), fmt('%.0f', ends - now(ahead))}
  end
end
local ends = now(ahead) + tonumber(ARGV[4])
call('HSET', key, 'U', pack(TURN, ARGV[3], ends, flags % 2))
set_format(key, m, flags % 2 == 1 and WITH_TURN or PLAIN)
local answer = {'U', 0, ARGV[3], fmt('%.0f', ends)}
if memory then remember(memory, answer, 0, left, ahead) end
return answer
