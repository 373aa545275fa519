-- Erases an owner's threads in a bucket, and then the archives of ended lives, up to a maximum number of ids. Does not
-- create archives. Lists the erased lives until their events have been purged from the log.
-- KEYS: 1 the owner's threads by first write, 2 ended lives, 3 erased lives, 4 log, 5 archives.
-- ARGV: 1 `ahead`, 2 tag of the owner, 3 lifetime of tombstones in milliseconds, 4 maximum retention of the log, 5 maximum
--   number of ids.
-- Reply: number of threads ended, and number of archives deleted.
local ahead, tag, tombstone, budget = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])
local k = {log = KEYS[4], archives = KEYS[5]}
local bucket = sub(KEYS[1], 1, find(KEYS[1], '}:c:', 1, true))
local CREATED_AT = 24
local LOST_LIFE = '0000000000000000'
local threads, archives = 0, 0
settle(KEYS[1])
write_even_when_full(bucket .. ':t:')

local function forget_answers(id)
  call('UNLINK', bucket .. ':i:' .. id, bucket .. ':j:' .. id)
end

-- Deletes an id's remembered answers, and leaves a tombstone, which makes writes to the id fail. If the id already has
-- the tombstone of a moved thread, does not change it.
local function leave_tombstone(id)
  local thread, archive = bucket .. ':t:' .. id, bucket .. ':a:' .. id
  forget_answers(id)
  if tombstone == 0 or call('HEXISTS', thread, 'M') == 1 then return end
  call('HSETNX', thread, 'T', '1')
  call('HSET', archive, 'T', fmt('%.0f', now(ahead) + tombstone))
  for _, key in ipairs({thread, archive}) do
    if call('PTTL', key) < tombstone + ahead then call('PEXPIRE', key, tombstone + ahead) end
  end
end

-- Adds an erased life to the list of erased lives. `time` is the time of the life's first write or, if the data of the
-- life was lost, the time at which the loss was noticed.
local function note_erased(id, life, time)
  call('ZADD', KEYS[3], time, id .. '-' .. life)
end

-- Returns the key of a sorted set with the ids that a life has had. Its last member is the current id.
local function ids_of_life(life) return bucket .. ':v:' .. life end

-- Erases the data of a life under all ids except `id`. Returns whether all of this data is erased. If it is not, the
-- next call continues.
local function erase_other_ids(id, life, time)
  local ids = ids_of_life(life)
  for _, other in ipairs(call('ZRANGE', ids, 0, budget)) do
    if other ~= id then
      if budget <= 0 then return false end
      note_erased(other, life, time)
      leave_tombstone(other)
      call('ZREM', ids, other)
      budget = budget - 1
    end
  end
  call('UNLINK', ids)
  return true
end

-- Erases responses of a life. Returns whether all responses of the life are erased.
local function erase_responses(life)
  local list = bucket .. ':ul:' .. life
  local ids = call('ZRANGE', list, 0, budget - 1)
  for _, id in ipairs(ids) do
    local key = bucket .. ':u:' .. id
    local r = open_response(key, ahead)
    -- a response that was started again in a different life remains
    if not r or hex(r.life) == life then
      call('UNLINK', key, events_of(key))
      call('ZREM', bucket .. ':ud', id)
    end
    call('ZREM', list, id)
  end
  budget = budget - #ids
  return budget > 0
end

-- Deletes remembered answers of a life that has been given to another owner. Answers under `id` or under earlier ids
-- may name the old owner. If there are too many ids for one call, lists the id at which the next call continues.
local function forget_old_owner(id, life, present, time)
  forget_answers(present)
  local ids = ids_of_life(life)
  local rank = call('ZRANK', ids, id)
  if not rank then return forget_answers(id) end
  local from = math.max(0, rank - budget)
  for _, other in ipairs(call('ZRANGE', ids, from, rank)) do forget_answers(other) end
  budget = budget - (rank - from)
  if from > 0 then call('ZADD', KEYS[2], time, call('ZRANGE', ids, from - 1, from - 1)[1] .. '-' .. life) end
end

-- Erases the data that an ended life has under the id in `member`. Returns whether all of that data is erased.
local function erase_ended(member)
  local id, life = string.match(member, '^(.*)%-(%x+)$')
  local present = call('ZREVRANGE', ids_of_life(life), 0, 0)[1] or id
  local archive, m = archive_of(bucket .. ':a:' .. present, life)
  local current = m or call('HGET', bucket .. ':t:' .. present, 'M')
  current = current and hex(sub(current, LIFE_AT, LIFE_END)) == life and current
  local noted = call('ZSCORE', KEYS[2], member)
  if current and sub(current, META_BYTES + 1) ~= tag then
    forget_old_owner(id, life, present, noted)
    return true
  end
  if not erase_responses(life) then return false end
  local time = current and (unpack_('>I6', current, CREATED_AT)) or 0
  if m and id == present then
    if not erase_other_ids(id, life, time) then return false end
    if call('HEXISTS', archive, 'R') == 0 then archives = archives + 1 end
    local stops = call('HGET', archive, 'T')
    call('UNLINK', archive)
    if stops and tonumber(stops) > now(ahead) then
      call('HSET', archive, 'T', stops)
      call('PEXPIRE', archive, tonumber(stops) - now(ahead) + ahead)
    end
  end
  segments_of(bucket .. ':k:' .. id .. ':' .. life).drop()
  for _, kind in ipairs(SCOPE_KEY_KINDS) do call('UNLINK', bucket .. kind .. id .. ':' .. life) end
  call('UNLINK', bucket .. ':f:' .. id .. ':' .. life)
  call('ZREM', k.archives, member)
  note_erased(id, life, life == LOST_LIFE and noted or time)
  leave_tombstone(id)
  return true
end

for _, id in ipairs(call('ZRANGE', KEYS[1], 0, budget - 1)) do
  k.thread, k.archive = bucket .. ':t:' .. id, bucket .. ':a:' .. id
  local m, left, dead = living(k.thread, ahead)
  local current = m or dead
  if current and sub(current, META_BYTES + 1) == tag then
    local life, created = hex(sub(current, LIFE_AT, LIFE_END)), unpack_('>I6', current, CREATED_AT)
    if budget <= 0 or not (erase_responses(life) and erase_other_ids(id, life, created)) then break end
    note_erased(id, life, created)
    end_life(k, current, ERASED, m and now(ahead) or ended_at(current, left, ahead), ahead, 0)
    leave_tombstone(id)
    threads = threads + 1
  else
    if not current then
      -- the thread's data is lost, and the process that ends expired threads has not logged the loss yet
      drop_scope(k.thread)
      note_erased(id, LOST_LIFE, now(ahead))
      leave_tombstone(id)
    end
    unlist_owned(k.thread, id, tag)
  end
  budget = budget - 1
end
local members = budget > 0 and call('ZRANGE', KEYS[2], 0, budget - 1) or {}
for _, member in ipairs(members) do
  if budget <= 0 or not erase_ended(member) then break end
  call('ZREM', KEYS[2], member)
  budget = budget - 1
end
call('PEXPIRE', KEYS[3], tonumber(ARGV[4]) + ahead)
return {threads, archives}
