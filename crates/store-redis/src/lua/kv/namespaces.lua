-- Namespaces, all in one slot:
--   names    a hash by name: creation time, whether entries have a default lifetime, and that lifetime. If the namespace
--            ends when idle, also the idle time and the end
--   newest   a sorted set: creation time and name of each namespace, in byte order
--   idle     a sorted set: names of namespaces that end when idle, by end
--   ended    a sorted set: names of namespaces whose entries await deletion, by a time. Entries that were last put before
--            that time ended with the namespace. The time is half the idle time before the end, so that an entry put by a
--            node whose clock lags by less than that never seems to have ended
-- A process records at most one use per LATE milliseconds, so a namespace may end up to LATE milliseconds too late.
local RECORD_BYTES, IDLE_BYTES, IDLE, IDLE_AT, LATE = 13, 25, '>I6I6', 14, 2000

local function namespace_keys()
  return {names = KEYS[1], newest = KEYS[2], idle = KEYS[3], ended = KEYS[4]}
end

-- Removes a namespace from the lists. HDEL comes first, because it frees memory, and a full Redis accepts it.
local function close(k, name, record)
  call('HDEL', k.names, name)
  call('ZREM', k.newest, sub(record, 1, 6) .. name)
  call('ZREM', k.idle, name)
end

-- Returns the record of a namespace, or false. Ends the namespace if its idle time has elapsed.
local function record_of(k, name, ahead)
  local record = call('HGET', k.names, name)
  if not record or #record ~= IDLE_BYTES then return record end
  local ttl, ends = unpack_(IDLE, record, IDLE_AT)
  if ends > now(ahead) then return record end
  settle(k.names)
  close(k, name, record)
  call('ZADD', k.ended, fmt('%.0f', ends - math.floor(ttl / 2)), name)
  return false
end

-- Extends the lifetime of a namespace that is being used. Returns its record.
local function note_use(k, name, record, ahead)
  if #record ~= IDLE_BYTES then return record end
  local ttl, ends = unpack_(IDLE, record, IDLE_AT)
  local later = now(ahead) + ttl + LATE
  if later <= ends then return record end
  -- a full Redis must still answer reads
  write_even_when_full(k.names)
  local new = sub(record, 1, RECORD_BYTES) .. pack(IDLE, ttl, later)
  call('HSET', k.names, name, new)
  call('ZADD', k.idle, fmt('%.0f', later), name)
  return new
end
