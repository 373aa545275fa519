-- Erases some threads of an owner in a bucket, then some lives that have ended. No archive is left, and the owner has a
-- list of the erased lives until their events are purged from the log.
-- KEYS: 1 the owner's threads by their first write, 2 ended lives, 3 erased lives, 4 log, 5 archives, 6 deadlines.
-- ARGV: 1 ahead, 2 tag of the owner, 3 tombstone time in milliseconds, 4 how long the log is kept at most, 5 how many
--       threads and lives at most.
-- Reply: how many threads were ended, and how many archives were deleted.
local ahead, tag, tombstone, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local k = {log = KEYS[4], archives = KEYS[5], deadlines = KEYS[6]}
local bucket = sub(KEYS[1], 1, find(KEYS[1], '}:c:', 1, true))
local CREATED_AT = 24
local LOST_LIFE = '0000000000000000'
local threads, archives = 0, 0
settle(KEYS[1])
write_even_when_full(bucket .. ':t:')

-- Has an id refuse writes, and forget its answers.
local function entomb(id)
  local thread, archive = bucket .. ':t:' .. id, bucket .. ':a:' .. id
  call('UNLINK', bucket .. ':i:' .. id, bucket .. ':j:' .. id)
  if tombstone == 0 or call('HEXISTS', thread, 'M') == 1 then return end
  call('HSET', thread, 'T', '1')
  call('HSET', archive, 'T', fmt('%.0f', now(ahead) + tombstone))
  for _, key in ipairs({thread, archive}) do
    if call('PTTL', key) < tombstone + ahead then call('PEXPIRE', key, tombstone + ahead) end
  end
end

-- `time`: of the first write; of a life whose data was lost, when that was noticed.
local function note_erased(id, life, time)
  call('ZADD', KEYS[3], time, id .. '-' .. life)
end

local function erase_archive(member)
  local id, life = string.match(member, '^(.*)%-(%x+)$')
  local thread = bucket .. ':t:' .. id
  local archive, m = archive_of(bucket .. ':a:' .. id, life)
  local its = m or call('HGET', thread, 'M')
  if its and hex(sub(its, LIFE_AT, LIFE_END)) == life and sub(its, META_BYTES + 1) ~= tag then
    -- this life has another owner now
    call('UNLINK', bucket .. ':i:' .. id, bucket .. ':j:' .. id)
    return
  end
  if m and call('HEXISTS', archive, 'R') == 0 then archives = archives + 1 end
  local stops = m and call('HGET', archive, 'T')
  call('UNLINK', archive)
  if stops and tonumber(stops) > now(ahead) then
    call('HSET', archive, 'T', stops)
    call('PEXPIRE', archive, tonumber(stops) - now(ahead) + ahead)
  end
  for _, kind in ipairs(BESIDE) do call('UNLINK', beside(thread, kind) .. ':' .. life) end
  call('ZREM', k.archives, member)
  local time = m and (unpack_('>I6', m, CREATED_AT)) or 0
  if life == LOST_LIFE then time = call('ZSCORE', KEYS[2], member) end
  note_erased(id, life, time)
  entomb(id)
end

local ids = call('ZRANGE', KEYS[1], 0, most - 1)
for _, id in ipairs(ids) do
  k.thread, k.archive = bucket .. ':t:' .. id, bucket .. ':a:' .. id
  local m, left, dead = living(k.thread, ahead)
  local its = m or dead
  if its and sub(its, META_BYTES + 1) == tag then
    note_erased(id, hex(sub(its, LIFE_AT, LIFE_END)), (unpack_('>I6', its, CREATED_AT)))
    end_life(k, its, ERASED, m and now(ahead) or ended_at(its, left, ahead), ahead, 0)
    entomb(id)
    threads = threads + 1
  else
    if not its then
      -- its data is lost, and the reaper has yet to log that
      drop_scope(k.thread)
      note_erased(id, LOST_LIFE, now(ahead))
      entomb(id)
    end
    unlist_owned(k.thread, id, tag)
  end
end
local members = #ids < most and call('ZRANGE', KEYS[2], 0, most - #ids - 1) or {}
for _, member in ipairs(members) do
  erase_archive(member)
  call('ZREM', KEYS[2], member)
end
call('PEXPIRE', KEYS[3], tonumber(ARGV[4]) + ahead)
return {threads, archives}
