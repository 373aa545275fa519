-- Shared by the scripts on namespaces, all of which are in one slot:
--   names    by name: when it was made, whether its entries have a default lifetime, and which; of a namespace that
--            ends when it is idle also after how long, and when it ends if nothing is used
--   newest   time and name of each, in the order of their bytes
--   idle     names of those that end when they are idle, by that end
--   ended    names whose entries wait for their deletion, by a time: entries last put before it have ended with the
--            namespace. It is between the last use and the end, so that a node whose clock is behind by less than
--            half of the idle time puts nothing that seems to have ended
-- A process notes a use only if it has noted none for LATE milliseconds, so the end comes up to that much later.
local RECORD_BYTES, IDLE_BYTES, IDLE, IDLE_AT, LATE = 13, 25, '>I6I6', 14, 2000

local function namespace_keys()
  return {names = KEYS[1], newest = KEYS[2], idle = KEYS[3], ended = KEYS[4]}
end

-- Takes a namespace off the list. It frees memory first.
local function close(k, name, record)
  call('HDEL', k.names, name)
  call('ZREM', k.newest, sub(record, 1, 6) .. name)
  call('ZREM', k.idle, name)
end

-- The record of a namespace, or false; ends it if its idle time is over.
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

-- Moves the end of a namespace that is used now, and returns its record.
local function note_use(k, name, record, ahead)
  if #record ~= IDLE_BYTES then return record end
  local ttl, ends = unpack_(IDLE, record, IDLE_AT)
  local later = now(ahead) + ttl + LATE
  if later <= ends then return record end
  -- a full Redis still answers reads
  write_even_when_full(k.names)
  local new = sub(record, 1, RECORD_BYTES) .. pack(IDLE, ttl, later)
  call('HSET', k.names, name, new)
  call('ZADD', k.idle, fmt('%.0f', later), name)
  return new
end
