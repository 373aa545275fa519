-- Shared by all scripts. No script decodes a value: JSON is opaque text.
--
-- A thread is one hash:
--   M          meta: format, life, version, bytes of the members, number of keys, created,
--              updated, ttl, end of the absolute lifetime (0: none), number of the next array
--   D          metadata as JSON text, where it was set
--   "key":     a value as JSON text; an array as `[` and its elements, each with a line feed
--              before it; a large array as `A` and its header
--   cI:N       chunk N of array I: the ordinal of its first element, then elements, each with a
--              line feed before it
-- A destroyed thread is a hash with the field T alone until its tombstone time is over.
--
-- A thread lives while its key's time to live is above `ahead`, which only tests set: it shifts
-- the clock, and every expiry that is written, by that many milliseconds.
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local byte, find, sub, fmt = string.byte, string.find, string.sub, string.format
local META = '>Bc8I6I4I4I6I6I5I6I4'
local ARRAY = '>I4I6I6I6I6I4I4I4'
local HEADER_BYTES = 41
local CHUNK_BYTES = 2032

local clock_ms
local function now(ahead)
  if not clock_ms then
    local t = call('TIME')
    clock_ms = t[1] * 1000 + math.floor(t[2] / 1000) + ahead
  end
  return clock_ms
end

-- How long a thread lives from now, given its ttl and the end of its absolute lifetime.
local function lifetime(ttl, ends, ahead)
  if ends == 0 then return ttl end
  return math.max(0, math.min(ttl, ends - now(ahead)))
end

-- The meta of a living thread, its end moved, and how long it lives from now; nil without one.
local function touch(key, ahead)
  local m = call('HGET', key, 'M')
  if not m or call('PTTL', key) <= ahead then return nil end
  local ttl, ends = unpack_('>I5I6', m, 36)
  local left = lifetime(ttl, ends, ahead)
  if left == 0 then return nil end
  call('PEXPIRE', key, left + ahead)
  return m, left
end

-- The header of a chunked array.
local function unpack_array(text)
  local a = {}
  a.id, a.head, a.tail, a.first, a.next, a.skip, a.tail_bytes, a.bytes = unpack_(ARRAY, text, 2)
  return a
end

local function pack_array(a)
  return 'A' .. pack(ARRAY, a.id, a.head, a.tail, a.first, a.next, a.skip, a.tail_bytes, a.bytes)
end

local function chunk_name(id, n)
  return 'c' .. id .. ':' .. fmt('%.0f', n)
end

-- Calls a command with many arguments in slices.
local function in_slices(command, key, args)
  for from = 1, #args, 1000 do
    call(command, key, unpack(args, from, math.min(from + 999, #args)))
  end
end
