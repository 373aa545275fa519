-- Fast path: sets one plain value in each of several living threads that are not watched. Each write has its own outcome: a
-- refused or failed write changes nothing, and does not affect the other writes. Two writes to one thread run in order. A
-- line `--+ name` inserts a part of fast.lua.
-- KEYS: threads. ARGV: for each thread, policy, field and value.
-- Reply: the outcome, or an array of several outcomes: 0 if write.lua must do the write; new meta and time of the previous
--   write; a refusal as in write.lua; or an error.
local try, outcomes, clock = redis.pcall, {}, nil
for i = 1, #KEYS do
  local at, outcome = 3 * (i - 1), 0
  repeat
--+ open
    local old = call('HSTRLEN', key, f)
    if old == HEADER_BYTES and byte(call('HGET', key, f)) == 65 then break end
    if old > 0 then
      bytes = bytes - old + #v
    else
      bytes, keys = bytes + #f + #v + 1, keys + 1
    end
--+ check
    local set = try('HSET', key, f, v, 'M', m)
    if type(set) == 'table' then outcome = set break end
    outcome = {m, written}
--+ end
  until true
--+ outcome
end
return #KEYS == 1 and outcomes[1] or outcomes
