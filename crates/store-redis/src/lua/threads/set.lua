-- Fast path: sets one value that is not chunked in each of some living threads that are not watched. Each write has its own
-- outcome: one that is rejected or fails changes nothing, and the others take place. Two writes to the same thread take place
-- one after the other.
-- KEYS: the threads. ARGV: policy, field and value of each.
-- Reply: the outcome of one write, or an array with those of several: 0 when it is for write.lua; the new meta, and when the
-- thread was last written to before; a refusal as write.lua has it; or an error.
--
-- Lines `--+ name` are where fast.lua has its parts.
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
