-- Moves a thread with all its data to another id in the same bucket, and leaves a tombstone under the old id.
-- KEYS: 1 thread, 2 remembered answers, 3 log, 4 and 5 thread and remembered answers of the new id.
-- ARGV: 1 `ahead`, 2 `access`, 3 idempotency key or empty, 4 precondition, 5 turn token or empty, 6 lifetime of the
--   tombstone in milliseconds, 7 lifetime of an archive, 8 trace or empty.
-- Reply: `X`, replayed flag, the new id, and if there is a thread, meta, metadata, milliseconds to live, current time,
--   owner; or a refusal.
local key, answers, to, to_answers = KEYS[1], KEYS[2], KEYS[4], KEYS[5]
trace = ARGV[8]
local ahead, tombstone, archive_ms = tonumber(ARGV[1]), tonumber(ARGV[6]), tonumber(ARGV[7])
local k = {thread = key, log = KEYS[3]}
local id, to_id = id_of(key), id_of(to)
local m, answer, memory, lives = open_thread(key, answers, 'X', ahead, ARGV[2], ARGV[3], ARGV[4], ARGV[5])
if answer then return answer end
if not m then
  answer = {'X', 0, to_id}
  if memory then remember(memory, answer, 0, 0, ahead) end
  return answer
end
-- unlikely, because the id is random
if call('EXISTS', to) == 1 then return {'R', 'changed'} end

settle(key)
-- this write comes first, because a failure here changes nothing
local threads = index_of(key)
threads.add(to_id, threads.check_of(id) or now(ahead) + lives)
threads.remove(id)
local _, life, version, _, _, created, updated, _, _, _, grace, sequence = unpack_(META, m)
local owner = sub(m, META_BYTES + 1)
if owner ~= '' then
  list_owned(to, to_id, owner, created, updated)
  -- an erasure needs this list if the thread's data is lost later
  list_ended(key, id, life, owner, ahead, archive_ms)
  unlist_owned(key, id, owner)
end
-- records both ids, because an erasure must search all ids of a life
local ids, remain_ms = owned_key(key, ':v:', hex(life)), remains_ms(archive_ms)
local old = call('ZRANGEBYSCORE', ids, '-inf', now(ahead) - remain_ms, 'LIMIT', 0, 2)
if #old > 0 then call('ZREM', ids, unpack(old)) end
call('ZADD', ids, now(ahead), id, '+inf', to_id)
call('PEXPIRE', ids, remain_ms + ahead)

local function move(from, target)
  if call('EXISTS', from) == 1 then call('RENAME', from, target) end
end

call('RENAME', key, to)
sequence = sequence + 1
m = sub(m, 1, EVENTS_AT - 1) .. pack('>I4', sequence) .. sub(m, EVENTS_AT + 4)
call('HSET', to, 'M', m)
call('PEXPIRE', to, lives + grace * 1000 + ahead)
segments_of(beside(key, ':k:')).move(beside(to, ':k:'))
for _, kind in ipairs({':k:', ':y:', ':z:', ':j:', ':w:', ':f:'}) do move(beside(key, kind), beside(to, kind)) end
local index, to_index = beside(key, ':p:'), beside(to, ':p:')
for _, field in ipairs(call('HKEYS', index)) do
  if field ~= 'L' then move(index .. ':' .. field, to_index .. ':' .. field) end
end
move(index, to_index)
move(answers, to_answers)
if tombstone > 0 then
  -- `R` rejects all writes, even from clients that may begin a new life under the id of a destroyed thread
  call('HSET', key, 'T', 'R')
  call('PEXPIRE', key, tombstone + ahead)
end
log_event(k.log, ROTATED, 0, now(ahead), version, sequence, life, id, to_id, ahead)
local metadata, its_owner = unpack(call('HMGET', to, 'D', 'O'))
answer = {'X', 0, to_id, m, metadata or '{}', lives, fmt('%.0f', now(ahead)), its_owner or ''}
if memory then
  local cost = #answer[5] + #answer[8]
  -- a retry may name either id
  remember({key = answers, digest = memory.digest, request = memory.request, first = 0, next = 0, cost = 0}, answer, cost,
    tombstone, ahead)
  memory.key = to_answers
  remember(memory, answer, cost, lives, ahead)
end
return answer
