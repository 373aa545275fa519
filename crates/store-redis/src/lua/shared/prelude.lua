-- All scripts include this file. Scripts treat JSON as opaque text, and never decode it.
-- A life is one existence of a thread, from creation to end. A new or restored thread under the same id has a new life, and
-- therefore a different random life number. A thread is one hash:
--   M          meta: format, life, version, bytes of the members, number of keys, creation time, update time, ttl, end of
--              the absolute lifetime (0: none), number of the next array, grace in seconds, number of events so far, time
--              until which changes are logged; then the tag of the owner, if any
--   D          metadata as JSON text, if set
--   O          the owner, if any: see owners.lua
--   U          the last turn, if any: see turns.lua
--   N          the numbers of the turns, if any: see turns.lua
--   P          in the archive: the numbers of the checkpoints, if any
--   E          in the archive: why the thread ended (flags of the event), when it ended, when it was archived
--   S          in the archive: the meta of the scope, if any
--   T          in the archive of a destroyed thread: time until which writes from this life or an earlier life are refused
--   R          in the archive: the thread was restored, and the archive remains only for the end event
--   "key":     a value as JSON text; an array as `[` and elements, each after a line feed; a large one as `A` and a header
--   cI:N       chunk N of array I: the ordinal of its first element, then elements, each after a line feed
-- The tombstone of a destroyed thread is a hash with only the field T. T is `R` if the thread has moved to another id.
--
-- A thread lives while the TTL of its key exceeds its grace. After that, its data remains until a script ends
-- the thread. `ahead`, an argument of most scripts, is 0 in production. Tests use it to shift the clock: the script adds
-- `ahead` milliseconds to the time, and to each expiry that it sets.
--
-- Keys of a bucket, all in the slot of its threads:
--   :g :gx     threads by id, and by the time of their next check, which a use may postpone: see index.lua
--   :c:TAG     threads of an owner by their first write
--   :o:TAG     threads of an owner by the first write in the time span of their last write: see `move_owned`
--   :oa:TAG    lives of an owner's threads that ended or changed owner, as ID-LIFE by that time: see log.lua
--   :oe:TAG    erased lives by first write, while the log may name their keys; life 0: the data had already been lost
--   :v:LIFE    ids of a life whose thread was moved, by the time of the move, while data may remain
--   :e         the log, a stream of entries as log_event in log.lua writes them
--   :ec :eb    a copy of the log without erased lives, while the copy is being made, and the name of its maker
--   :h         the newest position that was deleted from the log
--   :a:ID      the archive of a thread's last life: its hash, with E; :a:ID:LIFE is the archive of an earlier life
--   :x         archives: ID-LIFE by time, then by id and life, because no character of an id sorts below `-`
--   :k: :y: :z: :j:    scopes: see scope.lua
--   :f:ID      the effects of a thread: see effects.lua; :f:ID:LIFE those of an archived life
--   :u: :ue: :ud :ul:  responses: see responses.lua
--   :p:ID      the index of a thread's checkpoints, and :p:ID:N each checkpoint: see checkpoints.lua
--   :l:ID:NAME counters of the rate limits of a thread or another scope: see rates.lua
--   :m:NAME:X  staging keys of import NAME, with an expiry of a minute: X is `t` thread, `k` scope, `y` history, `z` its
--              ids, `p` index of the checkpoints, `p:N` a checkpoint, `f` its effects
--   :w:ID      exists while a thread is watched, so that a life that begins during that time is also watched
-- Names in capitals are constants. They are inlined when the scripts are loaded.
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local byte, find, sub, fmt = string.byte, string.find, string.sub, string.format
local META = '>Bc8I6I4I4I6I6I5I6I4I4I4I6'
-- Sizes in bytes of the meta, and of the packed policy of a write. `access` follows the policy: see `touch`.
local META_BYTES, POLICY_BYTES = 64, 48
-- Parts of the meta, and the first byte of each part: life and version; ttl to grace; time of the last write.
local LIFE, LIFE_AT, LIFE_END, VERSION_END = '>c8I6', 2, 9, 15
local TIMES, TIMES_AT = '>I5I6I4I4', 36
local WRITTEN, WRITTEN_AT = '>I6', 30
-- The part of the meta that a single write reads, without array number and events. Bytes from REST_AT do not change.
local FAST_META, FAST_META_AT, REST_AT = '>I6I4I4I6I6I5I6xxxxI4xxxxI6', 10, 36
-- If the ttl is at least TTL_MS_MIN, single writes do not postpone a thread's end by less than MOVE_MS_MIN.
local TTL_MS_MIN, MOVE_MS_MIN = 60000, 1000
local ARRAY = '>I4I6I6I6I6I4I4I4'
local HEADER_BYTES = 41
local CHUNK_BYTES = 2032
-- Maximum sizes of a small array and of its chunks for single pushes. The cost of a push grows with the size of the
-- chunk that it changes, whereas more chunks slow reads down only a little.
local SHORT_ARRAY_BYTES, SHORT_CHUNK_BYTES = 16384, 1016

-- Fails while the hash slot of a key is migrating, because scripts can then neither rename a key nor recreate a deleted
-- key. Call this function before any change.
local function settle(key) call('EXISTS', key, key .. ':') end

local clock_ms
local function now(ahead)
  if not clock_ms then
    local t = call('TIME')
    clock_ms = t[1] * 1000 + math.floor(t[2] / 1000) + ahead
  end
  return clock_ms
end

-- Updates the position of a thread in its owner's set, if any, for a write at the current time. `written` is the time
-- of the previous write. Only the first write in a time span changes the set, because lists read the exact time of the
-- last write from the thread.
local SPAN_MS = 10000
local function move_owned(thread, tag, written, ahead)
  if tag == '' then return end
  local since = now(ahead) - (written - written % SPAN_MS)
  if since >= 0 and since < SPAN_MS then return end
  local at = find(thread, '}:t:', 1, true)
  call('ZADD', sub(thread, 1, at) .. ':o:' .. tag, now(ahead), sub(thread, at + 4))
end

-- Returns how long a thread lives from now.
local function lifetime(ttl, ends, ahead)
  if ends == 0 then return ttl end
  return math.max(0, math.min(ttl, ends - now(ahead)))
end

-- Runs a write on behalf of a read. The read does not depend on the write, so errors caused by a full disk or missing
-- replicas are ignored. The error of a replica is raised, because the replica's data may be outdated.
local function try_to(...)
  local done = redis.pcall(...)
  if type(done) == 'table' and not find(done.err, 'MISCONF', 1, true) and not find(done.err, 'NOREPLICAS', 1, true) then
    call(...)
  end
end

local function renew(key, lives) try_to('PEXPIRE', key, lives) end

-- Fails on a replica, like a write, but changes nothing. As a result, a read that does not extend the lifetime never
-- returns outdated data from a replica.
local function check_writable(hash) try_to('HDEL', hash, '') end

-- Returns the meta of a living thread and its remaining lifetime. Otherwise, returns nil and a refusal. The refusal is
-- false if the thread does not exist; Redis converts false to a nil reply. Extends the lifetime unless `peeks` is `g`.
-- `access` says which threads the caller may use. An empty string allows all threads, and `-` allows threads without an
-- owner. An owner's tag allows that owner's threads, and threads without an owner.
local function touch(key, ahead, access, peeks)
  local m = call('HGET', key, 'M')
  if not m then return nil, false end
  local ttl, ends, _, grace = unpack_(TIMES, m, TIMES_AT)
  local kept = grace * 1000 + ahead
  local lives = call('PTTL', key) - kept
  if lives <= 0 then return nil, false end
  local left = lifetime(ttl, ends, ahead)
  if left == 0 then return nil, false end
  if access ~= '' and #m > META_BYTES and access ~= sub(m, META_BYTES + 1) then
    return nil, {'R', access == '-' and 'owner_required' or 'not_the_owner'}
  end
  if peeks == 'g' then
    check_writable(key)
    return m, math.min(lives, left)
  end
  renew(key, left + kept)
  return m, left
end

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

-- Returns the content of a field. For a chunked array, returns an array of its header and its chunks.
local function whole(key, text)
  if not text or byte(text) ~= 65 then return text end
  local a = unpack_array(text)
  local chunks = {text}
  for n = a.head, a.tail do
    chunks[#chunks + 1] = call('HGET', key, chunk_name(a.id, n))
  end
  return chunks
end

-- Changes nothing, but counts as a write. Once a script has written, even a full Redis accepts commands that use
-- memory. Scripts that free memory must call this function first.
local function write_even_when_full(hash)
  call('HDEL', hash, '')
end

-- Like `write_even_when_full`, but does not fail if Redis rejects writes. Returns whether Redis accepts writes.
local function may_write(hash)
  return type(redis.pcall('HDEL', hash, '')) == 'number'
end

local function in_slices(command, key, args)
  for from = 1, #args, 1000 do
    call(command, key, unpack(args, from, math.min(from + 999, #args)))
  end
end
