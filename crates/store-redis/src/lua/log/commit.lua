-- Records how far a consumer has progressed through the event log. Rejects the commit if the caller does not hold the lease, or if
-- events were erased after the caller read the consumer's ledger.
-- KEYS: 1 pool of leases, 2 ledger, 3 pending events, 4 parked events, 5 order of the parked events.
-- ARGV: 1 `ahead`, 2 number of the lease, 3 name of the caller, 4 number of erasures that the caller has seen, 5
--   maximum number of parked events; then changes: `c` bucket position (move a cursor), `p` event record (make
--   pending), `d` event (drop from pending), `k` event record (park), `n` record (set the note).
-- Reply: 1 and the number of parked events dropped because they exceeded the maximum; or two zeros if the commit was
--   rejected or the consumer does not exist.
local expires, by = string.match(call('HGET', KEYS[1], 's' .. ARGV[2]) or '', '^(%d+) (.*)$')
if by ~= ARGV[3] or tonumber(expires) <= now(tonumber(ARGV[1])) then return {0, 0} end
if call('EXISTS', KEYS[2]) == 0 or (call('HGET', KEYS[2], 'erasures') or '0') ~= ARGV[4] then return {0, 0} end
-- a full Redis must accept a commit, because the log can then delete the handled events and so free memory
write_even_when_full(KEYS[2])
-- Returns whether `position` is after `other`. Prevents a delayed commit from moving a cursor back.
local function is_past(position, other)
  if not other then return true end
  local ms, n = string.match(position, '^(%d+)-(%d+)$')
  local other_ms, other_n = string.match(other, '^(%d+)-(%d+)$')
  ms, other_ms = tonumber(ms), tonumber(other_ms)
  return ms > other_ms or ms == other_ms and tonumber(n) > tonumber(other_n)
end

local i = 6
while ARGV[i] do
  local code, event = ARGV[i], ARGV[i + 1]
  if code == 'c' then
    if is_past(ARGV[i + 2], call('HGET', KEYS[2], event)) then
      call('HSET', KEYS[2], event, ARGV[i + 2])
    end
    i = i + 3
  elseif code == 'p' then
    call('HSET', KEYS[3], event, ARGV[i + 2])
    i = i + 3
  elseif code == 'd' then
    call('HDEL', KEYS[3], event)
    i = i + 2
  elseif code == 'k' then
    call('HDEL', KEYS[3], event)
    call('HSET', KEYS[4], event, ARGV[i + 2])
    call('ZADD', KEYS[5], 0, event)
    i = i + 3
  else
    call('HSET', KEYS[2], 'note', event)
    i = i + 2
  end
end
local excess = call('ZCARD', KEYS[5]) - tonumber(ARGV[5])
if excess > 0 then
  local oldest = call('ZRANGE', KEYS[5], 0, excess - 1)
  in_slices('HDEL', KEYS[4], oldest)
  in_slices('ZREM', KEYS[5], oldest)
end
return {1, math.max(0, excess)}
