-- Namespaces. The keys for all namespaces are in one hash slot:
--   names    a hash by name: creation time, whether entries have a default lifetime, and that lifetime. If the
--            namespace ends when idle, also its idle time and the time of its end
--   newest   a sorted set: creation time and name of each namespace, in byte order
--   idle     a sorted set: names of namespaces that end when idle, by the time of their end
--   ended    a sorted set: names of ended namespaces whose entries await deletion, each with a cutoff time. Entries
--            last put before the cutoff ended with the namespace. The cutoff is half the idle time before the end, so
--            that an entry of a later namespace with this name is kept even if the clock of the entry's node lags
-- A process records at most one use every LATE milliseconds. The end is therefore LATE milliseconds later than the idle
-- time requires, so that unrecorded uses do not end a namespace too early.
local RECORD_BYTES, IDLE_BYTES, IDLE, IDLE_AT, LATE = 13, 25, '>I6I6', 14, 2000

local function namespace_keys()
  return {names = KEYS[1], newest = KEYS[2], idle = KEYS[3], ended = KEYS[4]}
end

-- Removes a namespace. HDEL comes first, because a full Redis accepts HDEL, and then also the other commands of the
-- script.
local function close(k, name, record)
  call('HDEL', k.names, name)
  call('ZREM', k.newest, sub(record, 1, 6) .. name)
  call('ZREM', k.idle, name)
end

-- Returns the record of a namespace, or false if it does not exist. Ends the namespace if its idle time has elapsed.
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

-- Postpones the end of a namespace that is being used, if the namespace ends when idle. Returns its record.
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
