-- Shared by all scripts. No script decodes a value: JSON is opaque text.
--
-- A thread is one hash:
--   M          meta: format, life, version, bytes of the members, number of keys, created,
--              updated, ttl, end of the absolute lifetime (0: none), number of the next array,
--              grace in seconds, number of its events so far, until when its changes are logged; then the
--              tag of its owner, if it has one
--   D          metadata as JSON text, if it was set
--   O          its owner, if it has one: see owners.lua
--   U          the last turn, if there was one: see turns.lua
--   P          in the archive: the numbers of its checkpoints, if it had any
--   E          in the archive: why it ended (as the flags of the event), when, when archived
--   S          in the archive: the meta of its scope, if it had one
--   T          in the archive: until when a write is refused that comes from this life or an earlier
--              one, where the thread was destroyed
--   R          in the archive: it was restored, and exists only for the event of the end
--   "key":     a value as JSON text; an array as `[` and its elements, each with a line feed
--              before it; a large array as `A` and its header
--   cI:N       chunk N of array I: the ordinal of its first element, then elements, each with a
--              line feed before it
-- A destroyed thread is a hash with only the field T until its tombstone time is over; T is `R` if the thread has another
-- id now.
--
-- A thread exists while its key's time to live is above its grace: after that it has expired, but its data stays until
-- it is ended. `ahead`, which only tests set, shifts the clock, and every expiry that is written, by that many
-- milliseconds.
--
-- Next to the threads of a bucket, all in its slot:
--   :d         deadlines: ids by the time of their next check, which not every use moves
--   :n         the same ids, in their order
--   :o:TAG     the threads of an owner, by the first write of the span of time in which the last was: see `move_owned`;
--              and :c:TAG, by their first
--   :oa:TAG    lives of an owner's threads that have ended, or got another owner, as ID-LIFE by that time: see
--              log.lua
--   :v:LIFE    the ids of a life that has moved, by when it left them, while something can be left under them; the one
--              that it has now is the last
--   :oe:TAG    lives that were erased, by the time of their first write, while the log may name their keys; life 0
--              is one whose data was lost until then
--   :e         the log, a stream of entries as log_event in log.lua writes them
--   :ec :eb    a copy of the log without erased lives, while one is made, and the name of its maker
--   :h         the newest position that was deleted from the log
--   :a:ID      the archive of the last life of a thread: its hash, with E
--   :a:ID:LIFE that of an earlier life
--   :x         archives: ID-LIFE by when it was archived, so that those of one time are sorted by
--              id and life: no character of an id is below `-`
--   :k: :y: :z: :j: scopes: see scope.lua
--   :u: :ue: :ud :ul: responses: see responses.lua
--   :p:ID      the checkpoints of a thread, and :p:ID:N each of them: see checkpoints.lua
--   :l:ID:NAME counters of a thread's or another scope's rate limits: see rates.lua
--   :m:NAME:KIND what an import prepares, of one name for all calls of one import: `t` its thread, `k` the scope, `y` the
--              history, `z` the ids of that, `p` the index of the checkpoints and `p:N` each of them; each with an expiry of
--              a minute
--   :w:ID      exists while a thread is watched, so that a life which begins meanwhile is too
-- Names in capitals are constants, which are replaced by their values when scripts are loaded.
local call, pack, unpack_ = redis.call, struct.pack, struct.unpack
local byte, find, sub, fmt = string.byte, string.find, string.sub, string.format
local META = '>Bc8I6I4I4I6I6I5I6I4I4I4I6'
-- Their bytes, and those of the packed policy of a write, behind which `access` is: see `touch`.
local META_BYTES, POLICY_BYTES = 64, 48
-- Parts of the meta, and the byte that each begins at: life and version; ttl, end of the absolute lifetime,
-- number of the next array and grace.
local LIFE, LIFE_AT, LIFE_END, VERSION_END = '>c8I6', 2, 9, 15
local TIMES, TIMES_AT = '>I5I6I4I4', 36
-- When it was last written to.
local WRITTEN, WRITTEN_AT = '>I6', 30
-- The parts of the meta that a single write needs: version, bytes, keys, created, updated, ttl, end of the absolute lifetime,
-- grace, and until when changes are logged; and the byte that what does not change begins at.
local FAST_META, FAST_META_AT, REST_AT = '>I6I4I4I6I6I5I6xxxxI4xxxxI6', 10, 36
-- A thread with at least this ttl keeps its end when a single write would move it by less than this.
local LEAST_TTL_MS, LEAST_MOVE_MS = 60000, 1000
local ARRAY = '>I4I6I6I6I6I4I4I4'
local HEADER_BYTES = 41
local CHUNK_BYTES = 2032
-- A single push fills the chunks of an array of fewer bytes only so far: a push costs what it reads and writes of the last
-- chunk and of the first, and a read of so few chunks little more than of half as many.
local SHORT_ARRAY_BYTES, SHORT_CHUNK_BYTES = 16384, 1016

-- Fails while the slot of a key moves to another node of a cluster: no script can create a key there that it has just
-- dropped, or rename one. Call it before any change.
local function settle(key) call('EXISTS', key, key .. ':') end

local clock_ms
local function now(ahead)
  if not clock_ms then
    local t = call('TIME')
    clock_ms = t[1] * 1000 + math.floor(t[2] / 1000) + ahead
  end
  return clock_ms
end

-- Moves a thread in the set of its owner, if it has one, for a write now, given when the last one was. Only the first
-- write in a span of time moves it: lists read the time of the last write from the thread.
local SPAN_MS = 10000
local function move_owned(thread, tag, written, ahead)
  if tag == '' then return end
  local since = now(ahead) - (written - written % SPAN_MS)
  if since >= 0 and since < SPAN_MS then return end
  local at = find(thread, '}:t:', 1, true)
  call('ZADD', sub(thread, 1, at) .. ':o:' .. tag, now(ahead), sub(thread, at + 4))
end

-- How long a thread lives from now, given its ttl and the end of its absolute lifetime.
local function lifetime(ttl, ends, ahead)
  if ends == 0 then return ttl end
  return math.max(0, math.min(ttl, ends - now(ahead)))
end

-- Does a write that a read can do without: if Redis refuses writes because its disk is full or too few replicas are
-- connected, the read succeeds. It fails on a replica, which may lag behind.
local function try_to(...)
  local done = redis.pcall(...)
  if type(done) == 'table' and not find(done.err, 'MISCONF', 1, true) and not find(done.err, 'NOREPLICAS', 1, true) then
    call(...)
  end
end

-- Extends the lifetime of a key that is read.
local function renew(key, lives) try_to('PEXPIRE', key, lives) end

-- Fails like a write on a replica, and changes nothing: so a read that extends no lifetime is as exact as others.
local function check_writable(hash) try_to('HDEL', hash, '') end

-- The meta of a living thread, its end moved unless `peeks` is `g`, and how long it lives from now; nil without one.
-- `access`: the threads that the caller may use: nothing when all, `-` those without an owner, or the tag of an owner,
-- whose and those without one. If the thread is not among them, nil and the refusal; else false instead of it, which is
-- the reply nil.
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

-- The text of a field, or the header of a chunked array and its chunks.
local function whole(key, text)
  if not text or byte(text) ~= 65 then return text end
  local a = unpack_array(text)
  local chunks = {text}
  for n = a.head, a.tail do
    chunks[#chunks + 1] = call('HGET', key, chunk_name(a.id, n))
  end
  return chunks
end

-- When its memory is full, Redis refuses commands that take some, but not to a script that has written before. A
-- script that frees memory in the end begins with this on a hash, which changes nothing.
local function write_even_when_full(hash)
  call('HDEL', hash, '')
end

-- Like `write_even_when_full`, for a script that also works without writes. Returns whether Redis accepts writes.
local function may_write(hash)
  return type(redis.pcall('HDEL', hash, '')) == 'number'
end

-- Calls a command with many arguments in slices.
local function in_slices(command, key, args)
  for from = 1, #args, 1000 do
    call(command, key, unpack(args, from, math.min(from + 999, #args)))
  end
end
