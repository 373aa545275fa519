-- Namespaces, all in one slot:
--   names    by name: creation time, whether entries have a default lifetime, and that lifetime; for a namespace that ends
--            when idle, also its idle time and its end
--   newest   creation time and name of each, in byte order
--   idle     names of those that end when idle, by end
--   ended    names whose entries await deletion, by a time: entries last put before it ended with the namespace. It lies
--            between the last use and the end, so a node whose clock is late by less than half of the idle time puts no
--            entry that seems to have ended
-- A process records at most one use per LATE milliseconds, so an end comes up to LATE late.
local RECORD_BYTES, IDLE_BYTES, IDLE, IDLE_AT, LATE = 13, 25, '>I6I6', 14, 2000

local function namespace_keys()
  return {names = KEYS[1], newest = KEYS[2], idle = KEYS[3], ended = KEYS[4]}
end

-- Unlists a namespace. HDEL comes first, because it frees memory.
local function close(k, name, record)
  call('HDEL', k.names, name)
  call('ZREM', k.newest, sub(record, 1, 6) .. name)
  call('ZREM', k.idle, name)
end

-- Returns the record of a namespace, or false. Ends the namespace if its idle time is over.
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

-- Postpones the end of a namespace that is used now. Returns its record.
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
