-- Copies a thread within its bucket.
-- KEYS: 1 source, 2 its scope, 3 history, 4 ids of the history, 5 new thread, 6 its remembered answers, 7 log, 8 its
--   archive, 9 archives, 10 its watch, 11 checkpoints of the source, 12 its effects.
-- ARGV: 1 packed: `ahead`, life, ttl (0: that of the source), maximum age (0: none), grace in seconds, lifetime of an
--   archive, parts to copy: 1 state, 2 keys and tasks, 4 history; 2 precondition; 3 idempotency key and request, or
--   empty; 4 turn token of the source, or empty; 5 `access`; 6 and 7 strings to put before and after the version of
--   the source to form the new metadata; 8 the metadata of the source on which the new metadata is based, or empty; 9
--   `+` or `-` for whether the owner may have another thread, then tag and name of the new owner, or nothing to keep
--   the owner of the source; 10 maximum number of history items; 11 number of the checkpoint from which state and
--   metadata are copied, or empty; 12 trace or empty.
-- Reply: `W` as write.lua describes a thread; `B` if the history exceeds limit 10; or a refusal as in write.lua.
trace = ARGV[12]
local ahead, life, ttl, max_age, grace, archive_ms, parts = unpack_('>I6c8I5I6I4I6B', ARGV[1])
local function has(flag) return math.floor(parts / flag) % 2 == 1 end
local source, key = KEYS[1], KEYS[5]
local k = {thread = key, log = KEYS[7], archive = KEYS[8], archives = KEYS[9], watch = KEYS[10]}
local given, memory = recall(KEYS[6], ARGV[3], ahead, 'W')
if given then return given end
local m, s, _, refusal = open_scope({thread = source, scope = KEYS[2], history = KEYS[3], ids = KEYS[4]}, ahead, false, ARGV[5])
if refusal then return refusal end
if ARGV[4] ~= '' then
  refusal = turn_refusal(source, m, ARGV[4], ahead)
  if refusal then return refusal end
end
local version, its_life = 0, NO_LIFE
if m then its_life, version = unpack_(LIFE, m, LIFE_AT) end
if not is_met(ARGV[2], version, its_life) then return {'R', 'version_mismatch', version, its_life} end
if not m then return {'R', 'thread_not_found'} end
local from = source
if ARGV[11] ~= '' then
  from = KEYS[11] .. ':' .. ARGV[11]
  local saved = newest_of(KEYS[11], m) and call('HEXISTS', KEYS[11], ARGV[11]) == 1 and call('HGET', from, 'M')
  if not saved then return {'R', 'checkpoint_not_found'} end
  _, version = unpack_(LIFE, saved, LIFE_AT)
end
if ARGV[8] ~= '' and (call('HGET', from, 'D') or '{}') ~= ARGV[8] then return {'R', 'changed'} end
local metadata = ARGV[6] .. fmt('%.0f', version) .. ARGV[7]
if s and has(4) and s.items > tonumber(ARGV[10]) then return {'B'} end
local refused, living_already, left, dead = vacancy(key, ahead)
if refused then return refused end
if living_already then return {'R', 'thread_exists'} end
local _, _, _, bytes, keys, _, _, its_ttl, _, next_array = unpack_(META, m)
if from ~= source then _, _, _, bytes, keys, _, _, _, _, next_array = unpack_(META, call('HGET', from, 'M')) end
local owner, owner_text = sub(m, META_BYTES + 1), call('HGET', source, 'O') or ''
if #ARGV[9] > 1 then owner, owner_text = sub(ARGV[9], 2, 33), sub(ARGV[9], 34) end
if owner ~= '' and byte(ARGV[9]) == 45 then return {'R', 'no_reservation'} end
settle(key)
free_id(k, dead, left, ahead, archive_ms)
if ttl == 0 then ttl = its_ttl end
if not has(1) then bytes, keys, next_array = 0, 0, 0 end
local ends = max_age > 0 and now(ahead) + max_age or 0
begin_life(k, now(ahead) + lifetime(ttl, ends, ahead), ahead)
drop_scope(key)
if has(1) then
  call('COPY', from, key)
  call('HDEL', key, 'O', 'U', 'N')
end
if s and (has(2) or has(4)) then
  local scope = beside(key, ':k:')
  if has(2) then
    call('COPY', KEYS[2], scope)
    call('HDEL', scope, 'R', 'G', 'S')
  else
    s.bytes, s.keys, s.due, s.tasks = 0, 0, 0, 0
  end
  if has(4) then
    call('COPY', KEYS[3], beside(key, ':y:'))
    call('COPY', KEYS[4], beside(key, ':z:'))
  else
    s.first, s.history, s.items = s.next, 0, 0
  end
  -- original items of compactions are not copied
  s.life, s.events, s.flags = life, 0, s.flags % 2
  call('HSET', scope, 'M', pack_scope(s))
end
if has(4) and copy_effects(KEYS[12], m, beside(key, ':f:'), life) then
  call('HSET', key, 'N', pack(NUMBERS, 0, 0, 1) .. '\0\0\0\0')
end
local answer, lives = begin_with(k, {life = life, version = 1, bytes = bytes, keys = keys, created = now(ahead),
  updated = now(ahead), ttl = ttl, ends = ends, next_array = next_array, grace = grace, owner = owner,
  owner_text = owner_text, metadata = metadata}, id_of(source) .. ' ' .. fmt('%.0f', version), ahead)
touch(source, ahead, '')
if memory then remember(memory, answer, #metadata + #owner_text, lives, ahead) end
return answer
