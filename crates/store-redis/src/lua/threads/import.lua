-- Creates a thread from staged keys. The staged thread hash does not have meta, owner or metadata, and the staged scope
-- hash does not have a meta. The history and its ids are complete.
-- KEYS: 1 thread, 2 remembered answers, 3 log, 4 archive, 5 archives, 6 watch, then staged: 7 thread, 8 scope, 9
--   history, 10 ids of the history, 11 index of the checkpoints, 12 effects; the key of checkpoint N has the suffix `:N`.
-- ARGV: 1 packed: `ahead`, life, ttl, maximum age (0: none), grace in seconds, lifetime of an archive, version, bytes
--   of the members, number of keys, creation time (0: now), update time, number of the next array, number of staged
--   fields; 2 idempotency key and request, or empty; 3 if the thread exists: `f` fail, `r` replace it, `s` keep it; 4
--   turn token or empty; 5 `+` or `-` for whether the owner may have another thread, then tag and name of the owner;
--   or empty; 6 metadata; 7 id and version of the copied thread, or empty; 8 meta of the scope without its life, or
--   empty; 9 to 11 numbers of staged scope fields, items and index fields; 12 number and fields of each staged
--   checkpoint; 13 `p` to ask whether an import would succeed, before anything is staged; 14 trace or empty; 15 meta of
--   the effects without its life, or empty; 16 number of staged fields of the effects.
-- Reply: `W` as write.lua describes a thread; `S` and the description of the thread that was kept; `G` if an import would
--   succeed; `L` if staged data is missing; or a refusal as in write.lua.
trace = ARGV[14]
local ahead, life, ttl, max_age, grace, archive_ms, version, bytes, keys, created, updated, next_array, fields =
  unpack_('>I6c8I5I6I4I6I6I4I4I6I6I4I4', ARGV[1])
local AHEAD_MAX_MS = 60000
local key = KEYS[1]
local k = {thread = key, log = KEYS[3], archive = KEYS[4], archives = KEYS[5], watch = KEYS[6]}
local prepared = {KEYS[8], KEYS[9], KEYS[10]}
local given, memory = recall(KEYS[2], ARGV[2], ahead, 'W')
if given then return given end
if created > now(ahead) + AHEAD_MAX_MS then return {'R', 'created_ahead'} end
local refusal, m, left, dead = vacancy(key, ahead)
if refusal then return refusal end
if m and ARGV[3] == 'f' then return {'R', 'thread_exists'} end
if m and ARGV[3] == 's' then
  local _, ends, _, its_grace = unpack_(TIMES, m, TIMES_AT)
  local lives = left - its_grace * 1000 - ahead
  if ends > 0 then lives = math.min(lives, ends - now(ahead)) end
  return {'S', 0, m, '', call('HGET', key, 'D') or '{}', lives, fmt('%.0f', now(ahead)), call('HGET', key, 'O') or ''}
end
if m and (ARGV[4] ~= '' or byte(m) % 2 == 0) then
  refusal = turn_refusal(key, m, ARGV[4], ahead)
  if refusal then return refusal end
end
local owner = sub(ARGV[5], 2, 33)
if byte(ARGV[5]) == 45 and not (m and sub(m, META_BYTES + 1) == owner) then return {'R', 'no_reservation'} end
if ARGV[13] == 'p' then return {'G'} end
local items, checkpoints = tonumber(ARGV[10]), {}
for at = 1, #ARGV[12], 8 do
  local number, its_fields = unpack_('>I4I4', ARGV[12], at)
  checkpoints[#checkpoints + 1] = number
  if call('HLEN', KEYS[11] .. ':' .. number) ~= its_fields then return {'L'} end
end
if call('HLEN', KEYS[7]) ~= fields or call('HLEN', KEYS[8]) ~= tonumber(ARGV[9])
  or call('XLEN', KEYS[9]) ~= items or call('HLEN', KEYS[10]) ~= items
  or call('HLEN', KEYS[11]) ~= tonumber(ARGV[11]) or call('HLEN', KEYS[12]) ~= tonumber(ARGV[16]) then
  return {'L'}
end

settle(key)
if m then
  end_life(k, m, DESTROYED_BY_HAND, now(ahead), ahead, archive_ms)
  if forget_soon(KEYS[2], REMEMBERED_MS, ahead) and memory then memory.left = REMEMBERED_MS + ahead end
  forget_soon(beside(key, ':j:'), REMEMBERED_MS, ahead)
else
  free_id(k, dead, left, ahead, archive_ms)
end
local ends = max_age > 0 and now(ahead) + max_age or 0
if created == 0 then created, updated = now(ahead), now(ahead) end
begin_life(k, now(ahead) + lifetime(ttl, ends, ahead), ahead)
drop_scope(key)
if fields > 0 then call('RENAME', KEYS[7], key) end
if ARGV[8] ~= '' then
  for i, kind in ipairs(SCOPE_KEY_KINDS) do
    if call('EXISTS', prepared[i]) == 1 then
      local to = beside(key, kind)
      call('RENAME', prepared[i], to)
      call('PERSIST', to)
    end
  end
  call('HSET', beside(key, ':k:'), 'M', sub(ARGV[8], 1, 1) .. life .. sub(ARGV[8], 2))
end
if ARGV[11] ~= '0' then
  local index = beside(key, ':p:')
  call('RENAME', KEYS[11], index)
  call('PERSIST', index)
  for _, number in ipairs(checkpoints) do
    local copy = index .. ':' .. number
    call('RENAME', KEYS[11] .. ':' .. number, copy)
    call('PERSIST', copy)
  end
end
if ARGV[15] ~= '' then
  local effects = beside(key, ':f:')
  call('RENAME', KEYS[12], effects)
  call('PERSIST', effects)
  call('HSET', effects, 'M', life .. ARGV[15])
end
local answer, lives = begin_with(k, {life = life, version = version, bytes = bytes, keys = keys, created = created,
  updated = updated, ttl = ttl, ends = ends, next_array = next_array, grace = grace, owner = owner,
  owner_text = sub(ARGV[5], 34), metadata = ARGV[6]}, ARGV[7], ahead)
if memory then remember(memory, answer, #ARGV[6] + #ARGV[5], lives, ahead) end
return answer
