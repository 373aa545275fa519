-- Restores an ended thread from its archive.
-- KEYS: 1 thread, 2 log, 3 archive, 4 archives, 5 watch.
-- ARGV: 1 packed: `ahead`, maximum age (0: none), new life, lifetime and retention of archives; 2 the ended life in hex, or
--   empty for the most recent; 3 trace or empty.
-- Reply: nil, or meta, metadata, milliseconds to live, current time, owner or nil; or a refusal as in write.lua.
trace = ARGV[3]
local ahead, max_age, life, archive_ms, retention_ms = unpack_('>I6I6c8I6I6', ARGV[1])
local k = {thread = KEYS[1], log = KEYS[2], archive = KEYS[3], archives = KEYS[4]}
local m, left, dead = living(k.thread, ahead)
if m then
  local its_life, version = unpack_(LIFE, m, LIFE_AT)
  return {'R', 'version_mismatch', version, its_life}
end
if dead then end_life(k, dead, EXPIRED, ended_at(dead, left, ahead), ahead, archive_ms) end

local from = k.archive
m = call('HGET', from, 'M')
if ARGV[2] ~= '' and not (m and hex(sub(m, LIFE_AT, LIFE_END)) == ARGV[2]) then
  from = from .. ':' .. ARGV[2]
  m = call('HGET', from, 'M')
end
if not m or call('HEXISTS', from, 'R') == 1 then return false end
local archived = unpack_('>I6', call('HGET', from, 'E'), 8)
if archived + retention_ms <= now(ahead) then return false end

local _, its_life, version, bytes, keys, created, _, ttl, _, next_array, grace, sequence = unpack_(META, m)
local id, ends = id_of(k.thread), max_age > 0 and now(ahead) + max_age or 0
-- later lives have continued the count of events
sequence = math.max(sequence, events_before(k.archive)) + 1
version = version + 1
settle(k.thread)
-- copies the archive instead of moving it, because a reader that has not received the end event yet needs the state
call('UNLINK', k.thread)
local lives = lifetime(ttl, ends, ahead)
-- this call precedes the restoration of the scope, because it deletes the scope if an earlier life's data was lost
begin_life(k, now(ahead) + lives, ahead)
call('COPY', from, k.thread)
call('HDEL', k.thread, 'E', 'P', 'S', 'T', 'U')
call('HSET', from, 'R', '1')
-- the archive must no longer refer to a history
call('HDEL', from, 'S')
if call('HEXISTS', k.archive, 'T') == 1 then call('HDEL', k.archive, 'T') end
call('ZREM', k.archives, id .. '-' .. hex(its_life))
drop_scope(k.thread)
local scope_key = beside(k.thread, ':k:')
local kept_scope = scope_key .. ':' .. hex(its_life)
for _, moved in ipairs(segments_of(kept_scope).move(scope_key)) do
  call('PEXPIRE', moved[1], math.max(1, moved[2] - now(ahead) + ahead))
end
-- moves the scope's keys, because readers do not need them in the archive, and copying 100,000 items would take 0.1 s
for _, kind in ipairs(SCOPE_KEY_KINDS) do
  local to = beside(k.thread, kind)
  local kept = to .. ':' .. hex(its_life)
  if call('EXISTS', kept) == 1 then
    call('RENAME', kept, to)
    call('PERSIST', to)
  end
end
local effects = beside(k.thread, ':f:')
local kept_effects = effects .. ':' .. hex(its_life)
local effects_meta = call('HGET', kept_effects, 'M')
if effects_meta and sub(effects_meta, 1, 8) == its_life then
  call('RENAME', kept_effects, effects)
  call('PERSIST', effects)
  call('HSET', effects, 'M', life .. sub(effects_meta, 9))
end
local scope = call('HGET', beside(k.thread, ':k:'), 'M')
if scope then
  call('HSET', beside(k.thread, ':k:'), 'M', sub(scope, 1, 1) .. life .. sub(scope, 10))
end
local owner = sub(m, META_BYTES + 1)
m = pack(META, owner == '' and PLAIN or OWNED, life, version, bytes, keys, created, now(ahead), ttl, ends, next_array, grace,
  sequence, watched_until(KEYS[5], ahead)) .. owner
call('HSET', k.thread, 'M', m)
if owner ~= '' then list_owned(k.thread, id, owner, created, now(ahead)) end
call('PEXPIRE', k.thread, lives + grace * 1000 + ahead)
log_event(k.log, CREATED, 1, now(ahead), version, sequence, life, id, names(call('HKEYS', k.thread)), ahead)
return {m, call('HGET', k.thread, 'D') or '{}', lives, fmt('%.0f', now(ahead)), call('HGET', k.thread, 'O')}
