-- Ends expired threads. If a use has extended a thread's lifetime, corrects the deadline of that thread in the index.
-- KEYS: 1 log, 2 archives, then the thread and the archive of each id.
-- ARGV: 1 `ahead`, 2 lifetime of an archive, then ids.
-- Reply: number of threads that ended, number of threads whose data was already lost, number of corrected deadlines.
local ahead, archive_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local k = {log = KEYS[1], archives = KEYS[2]}
local ended, lost, moved = 0, 0, 0
local function archived_at(archive)
  local e = call('HGET', archive, 'E')
  return e and unpack_('>I6', e, 8) or 0
end
for i = 3, #ARGV do
  local id = ARGV[i]
  k.thread, k.archive = KEYS[2 * i - 3], KEYS[2 * i - 2]
  local index = index_of(k.thread)
  local check = index.check_of(id)
  if check then
    local m, left, dead = living(k.thread, ahead)
    if m then
      local ttl, ends, _, grace = unpack_(TIMES, m, TIMES_AT)
      local deadline = now(ahead) + left - ahead - grace * 1000
      if ends > 0 then deadline = math.min(deadline, ends) end
      -- if a full Redis rejected the correction, no thread would end
      if deadline - deadline % 1000 ~= check - check % 1000 then
        write_even_when_full(k.thread)
        index.check_at(id, deadline)
        moved = moved + 1
      end
    elseif dead then
      if left > ahead then ended = ended + 1 else lost = lost + 1 end
      end_life(k, dead, EXPIRED, ended_at(dead, left, ahead), ahead, archive_ms)
    else
      index.remove(id)
      -- otherwise, an earlier server version, which does not know the index, has ended or moved the thread
      if call('HEXISTS', k.thread, 'T') == 0 and archived_at(k.archive) < check then
        drop_scope(k.thread)
        log_event(k.log, DESTROYED, LOST, check, 0, 0, NO_LIFE, id, '', ahead)
        lost = lost + 1
      end
    end
  end
end
return {ended, lost, moved}
