-- Replaces the state and metadata of a thread with those of a checkpoint.
-- KEYS: 1 thread, 2 remembered answers, 3 checkpoints, 4 log.
-- ARGV: 1 policy, 2 precondition, 3 idempotency key and request, 4 turn token, 5 owner change, all as in write.lua; 6
--   number of the checkpoint, 7 `d` to describe the thread, 8 trace or empty.
-- Reply: as in write.lua, without the operations' answers.
local key, index = KEYS[1], KEYS[3]
trace = ARGV[8]
local ahead, _, _, _, _, _, _, _, _, log_all = unpack_('>I6I5I6I4I4I4c8I4I6B', ARGV[1])
local m, answer, memory, lives =
  open_thread(key, KEYS[2], 'W', ahead, sub(ARGV[1], POLICY_BYTES + 1), ARGV[3], ARGV[2], ARGV[4])
if not m then return answer or {'R', 'thread_not_found'} end
settle(key)
local copy = index .. ':' .. ARGV[6]
local saved = newest_of(index, m) and call('HEXISTS', index, ARGV[6]) == 1 and call('HGET', copy, 'M')
if not saved then return {'R', 'checkpoint_not_found'} end
local format, life, version, _, keys, created, written, ttl, ends, _, grace, sequence, watched = unpack_(META, m)
local _, _, _, saved_bytes, saved_keys, _, _, _, _, next_array = unpack_(META, saved)
local owner, its_owner = sub(m, META_BYTES + 1), sub(m, META_BYTES + 1)

local kept = call('HMGET', key, 'O', 'U', 'N')
if owner == '' and ARGV[5] ~= '' then
  if byte(ARGV[5], 2) == 45 then return {'R', 'no_reservation'} end
  its_owner, kept[1] = sub(ARGV[5], 3, 34), sub(ARGV[5], 35)
end
local is_logged, changed = log_all == 1 or watched > now(ahead), '!'
if is_logged and keys <= NAMED_MAX and saved_keys <= NAMED_MAX then
  local fields = call('HKEYS', key)
  for _, field in ipairs(call('HKEYS', copy)) do fields[#fields + 1] = field end
  changed = names(fields)
end
-- if Redis is full, this first write fails before the script has changed anything
call('HSET', key, 'M', m)
if its_owner ~= owner then
  list_owned(key, id_of(key), its_owner, created, now(ahead))
else
  move_owned(key, its_owner, written, ahead)
end
-- unlinks the old hash, because COPY would free its memory synchronously when it replaces the hash, which takes longer
call('UNLINK', key)
call('COPY', copy, key)
if is_logged then sequence = sequence + 1 end
m = pack(META, format_of(its_owner, format % 2 == 0), life, version + 1, saved_bytes, saved_keys, created, now(ahead), ttl,
  ends, next_array, grace, sequence, watched) .. its_owner
call('HSET', key, 'M', m)
for i, field in ipairs({'O', 'U', 'N'}) do
  if kept[i] then call('HSET', key, field, kept[i]) end
end
call('PEXPIRE', key, lives + grace * 1000 + ahead)
if is_logged then log_event(KEYS[4], UPDATED, 1, now(ahead), version + 1, sequence, life, id_of(key), changed, ahead) end
answer = {'W', 0, m, ''}
local cost = 0
if ARGV[7] == 'd' then
  answer[5], answer[6], answer[7], answer[8] = call('HGET', key, 'D') or '{}', lives, fmt('%.0f', now(ahead)), kept[1] or ''
  cost = #answer[5] + #answer[8]
end
if memory then remember(memory, answer, cost, lives, ahead) end
return answer
