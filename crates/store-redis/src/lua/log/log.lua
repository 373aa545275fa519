local CREATED, UPDATED, DESTROYED, COMPLETED, KV, TASKS, APPENDED, ROTATED, FORKED, FIRST = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local EXPIRED, DESTROYED_BY_HAND, LOST, ERASED = 0, 1, 2, 3
local NAMED_MAX, NAMED_BYTES_MAX = 1000, 65536
local NO_LIFE = '\0\0\0\0\0\0\0\0'

-- The `traceparent` of the request, or empty. Scripts that log events for a request set this variable.
local trace = ''

-- Returns the position for the next event when tests shift the clock by `ahead`. Computed here, because XADD cannot
-- generate a position for a given time (`MS-*`) before Redis 7.
local function next_position(log, ahead)
  local last = call('EXISTS', log) == 1 and call('XINFO', 'STREAM', log)[8] or '0-0'
  local ms, number = string.match(last, '^(%d+)-(%d+)$')
  local at = math.max(now(ahead), tonumber(ms))
  return fmt('%.0f-%.0f', at, at == tonumber(ms) and number + 1 or 0)
end

-- Appends an event to a log. Returns the time in the event's position, which never decreases, even if the clock goes
-- back. The stream entry has two fields. Field `e` contains type, flags, time, version, sequence, life, and the id of
-- the thread, or the scope as a string if it is not in a thread. The other field contains key names; for a fork, the id
-- and version of the source; for other types, their data. Its name is `k`, followed by the request's trace, which older
-- server versions ignore. Events of expired threads do not have a trace. Flags: for a creation, 1 restored; for an
-- update, 1 metadata; for an end, 0 expired, 1 destroyed, 2 expired and its data lost, 3 erased.
local function log_event(log, kind, flags, time, version, sequence, life, id, more, ahead)
  local is_expiry = kind == DESTROYED and (flags == EXPIRED or flags == LOST)
  local position = call('XADD', log, ahead == 0 and '*' or next_position(log, ahead),
    'e', pack('>BBI6I6I4c8', kind, flags, time, version, sequence, life) .. id, is_expiry and 'k' or 'k' .. trace, more)
  return tonumber(string.match(position, '^%d+'))
end

-- Logs the creation of a thread's first life in fewer bytes. Used only while nothing listens to the log, because
-- earlier server versions cannot read this form. Field `e` contains type, flags, life and packed id. The event has the
-- time of its position, version 1 and sequence number 1. Returns false, and logs nothing, if the log has an event at or
-- after `time`, because two threads were created in the same millisecond or the clock went back.
local function log_first_life(log, time, life, id, more)
  local position = redis.pcall('XADD', log, fmt('%.0f-0', time), 'e', pack('>BBc8', FIRST, 0, life) .. pack_id(id),
    'k' .. trace, more)
  return type(position) == 'string'
end

local function id_of(key)
  return sub(key, find(key, '}:t:', 1, true) + 4)
end

-- Returns the keys of `fields` as JSON strings separated by commas, or `!` if an event cannot contain that many keys.
local function names(fields)
  local keys, seen, bytes = {}, {}, 0
  for _, f in ipairs(fields) do
    if byte(f) == 34 and not seen[f] then
      seen[f], bytes, keys[#keys + 1] = true, bytes + #f - 1, sub(f, 1, -2)
      if #keys > NAMED_MAX or bytes > NAMED_BYTES_MAX then return '!' end
    end
  end
  return table.concat(keys, ',')
end

-- Offsets in a thread's meta (field M): the number of events so far, and the time until which changes are logged.
local EVENTS_AT, WATCHED_AT = 55, 59

-- Returns three values: the meta of a living thread, or false; the TTL of the key; and, if the thread has expired but
-- has not been ended yet, its meta.
local function living(key, ahead)
  local left, m = call('PTTL', key), call('HGET', key, 'M')
  if not m then return false, left end
  local ttl, ends, _, grace = unpack_(TIMES, m, TIMES_AT)
  if left > grace * 1000 + ahead and lifetime(ttl, ends, ahead) > 0 then return m, left end
  return false, left, m
end

-- Returns the time at which a dead thread expired.
local function ended_at(m, left, ahead)
  local _, ends, _, grace = unpack_(TIMES, m, TIMES_AT)
  local at = now(ahead) + left - ahead - grace * 1000
  return ends > 0 and math.min(at, ends) or at
end

-- Returns the number of events that earlier lives of a thread logged, or 0 if the last life does not have an archive.
local function events_before(archive)
  local m = call('HGET', archive, 'M')
  return m and (unpack_('>I4', m, EVENTS_AT)) or 0
end

-- Returns whether `life` has ended and the thread was destroyed recently.
local function is_past(archive, m, life, ahead)
  if m and sub(m, LIFE_AT, LIFE_END) == life then return false end
  local stops = call('HGET', archive, 'T')
  return stops and tonumber(stops) > now(ahead)
end

local function watched_until(watch, ahead)
  local left = call('PTTL', watch)
  return left > ahead and now(ahead) + left - ahead or 0
end

local function hex(bytes)
  return (string.gsub(bytes, '.', function(c) return fmt('%02x', byte(c)) end))
end

-- Parts of the names of the keys that store a thread's scope: see scope.lua. The keys are in the thread's hash slot.
local SCOPE_KEY_KINDS = {':k:', ':y:', ':z:'}

local function beside(thread, kind)
  local at = find(thread, '}:t:', 1, true)
  return sub(thread, 1, at) .. kind .. sub(thread, at + 4)
end

-- The packed form of a segment (items that a compaction replaced): number, position of the first item, last replaced
-- position, number and total bytes of the items, time of the replacement, expiry, and length of the ids of the summary
-- items. These ids follow, separated by spaces.
local SEGMENT, SEGMENT_BYTES = '>I4I6I6I6I6I6I6I2', 42
-- The packed form of the last compaction, which precedes the segments.
local SEGMENTS, SEGMENTS_BYTES = '>I4I6I2', 12

-- Returns the segments of a scope's history as a table that also contains functions. The functions are defined in this
-- function, because each top-level function costs time in every call of a script.
local function segments_of(scope)
  local text, at = call('HGET', scope, 'S') or '', SEGMENTS_BYTES + 1
  -- the last compaction: its number, the last position that it replaced, and the number of items that it added
  local segments = {list = {}, last = 0, through = 0, new = 0}
  if text ~= '' then segments.last, segments.through, segments.new = unpack_(SEGMENTS, text) end
  while at < #text do
    local g, bytes = {}, 0
    g.number, g.first, g.through, g.count, g.bytes, g.made, g.ends, bytes = unpack_(SEGMENT, text, at)
    at = at + SEGMENT_BYTES
    g.ids = sub(text, at, at + bytes - 1)
    at, segments.list[#segments.list + 1] = at + bytes, g
  end
  -- Returns the key of a segment's items and the key of their ids. `of` is the segment's scope, by default this scope.
  function segments.keys(number, of)
    local base = of or scope
    local from = find(base, '}:k:', 1, true)
    local start, name = sub(base, 1, from), sub(base, from + 4) .. ':' .. number
    return start .. ':s:' .. name, start .. ':si:' .. name
  end
  function segments.drop()
    for _, g in ipairs(segments.list) do call('UNLINK', segments.keys(g.number)) end
  end
  -- Moves the keys of all segments to another scope in the same hash slot. Returns each new key with its expiry.
  function segments.move(to)
    local moved = {}
    for _, g in ipairs(segments.list) do
      local old, new = {segments.keys(g.number)}, {segments.keys(g.number, to)}
      for i = 1, 2 do
        if call('EXISTS', old[i]) == 1 then
          call('RENAME', old[i], new[i])
          moved[#moved + 1] = {new[i], g.ends}
        end
      end
    end
    return moved
  end
  return segments
end

-- Deletes the checkpoints of a thread. Returns their numbers in ascending order, separated by commas.
local function drop_checkpoints(thread)
  local index = beside(thread, ':p:')
  local fields, numbers, keys = call('HKEYS', index), {}, {index}
  for _, field in ipairs(fields) do
    if field ~= 'L' then
      numbers[#numbers + 1], keys[#keys + 1] = tonumber(field), index .. ':' .. field
    end
  end
  if #fields > 0 then call('UNLINK', unpack(keys)) end
  table.sort(numbers)
  return table.concat(numbers, ',')
end

-- Deletes the scope, the effects and the checkpoints of a thread without checking to which life they belong.
local function drop_scope(thread)
  segments_of(beside(thread, ':k:')).drop()
  local keys = {}
  for i, kind in ipairs(SCOPE_KEY_KINDS) do keys[i] = beside(thread, kind) end
  call('UNLINK', beside(thread, ':f:'), unpack(keys))
  drop_checkpoints(thread)
end

-- Archives the effects and the scope of an ended thread: adds the life to the names of their keys, and the scope's meta to
-- the archive.
local function archive_scope(thread, archive, life, archive_ms)
  local effects = beside(thread, ':f:')
  if call('HEXISTS', effects, 'M') == 1 then
    call('RENAME', effects, effects .. ':' .. hex(life))
    call('PEXPIRE', effects .. ':' .. hex(life), archive_ms)
  end
  local m = call('HGET', beside(thread, ':k:'), 'M')
  if not m then return end
  if sub(m, LIFE_AT, LIFE_END) ~= life then return drop_scope(thread) end
  call('HSET', archive, 'S', m)
  local scope = beside(thread, ':k:')
  -- original items expire by themselves, no later than the archive
  for _, moved in ipairs(segments_of(scope).move(scope .. ':' .. hex(life))) do
    if call('PTTL', moved[1]) > archive_ms then call('PEXPIRE', moved[1], archive_ms) end
  end
  for _, kind in ipairs(SCOPE_KEY_KINDS) do
    local from = beside(thread, kind)
    if call('EXISTS', from) == 1 then
      local to = from .. ':' .. hex(life)
      call('RENAME', from, to)
      call('PEXPIRE', to, archive_ms)
    end
  end
end

-- Returns the key of a life's archive, and the archive's meta if it exists. `last` is the key of the thread id's most
-- recent archive.
local function archive_of(last, life)
  local m = call('HGET', last, 'M')
  if m and hex(sub(m, LIFE_AT, LIFE_END)) == life then return last, m end
  last = last .. ':' .. life
  return last, call('HGET', last, 'M')
end

-- Returns how long data of a life in the list of `list_ended` can remain. The data is the life's archive or, if the
-- thread continues with another owner or id, remembered answers, which expire within two days.
local function remains_ms(archive_ms) return math.max(archive_ms, 172800000) end

-- Adds a life to an owner's list of lives that have ended or have changed their owner or id. An erasure uses the list
-- to find the archives, remembered answers and logged key names of these lives. The list expires when none of that data
-- can exist. Each call drops up to two old lives that do not have an archive.
local function list_ended(thread, id, life, tag, ahead, archive_ms)
  archive_ms = remains_ms(archive_ms)
  local list = owned_key(thread, ':oa:', tag)
  local old = call('ZRANGEBYSCORE', list, '-inf', now(ahead) - archive_ms, 'LIMIT', 0, 2)
  for _, member in ipairs(old) do
    local ended_id, ended_life = string.match(member, '^(.*)%-(%x+)$')
    local _, m = archive_of(owned_key(thread, ':a:', ended_id), ended_life)
    if not m then call('ZREM', list, member) end
  end
  call('ZADD', list, now(ahead), id .. '-' .. hex(life))
  if call('PTTL', list) < archive_ms + ahead then call('PEXPIRE', list, archive_ms + ahead) end
end

-- Ends a life: logs the end, and renames the thread's hash to the archive. First renames the archive of an earlier
-- life, if any. An archive has the same time as its end event, so the oldest event in the log shows which archives
-- readers of the log may need. An erased thread does not leave an archive.
local function end_life(k, m, flags, ended, ahead, archive_ms)
  local id, life, version = id_of(k.thread), unpack_(LIFE, m, LIFE_AT)
  settle(k.thread)
  index_of(k.thread).remove(id)
  if #m > META_BYTES then
    local tag = sub(m, META_BYTES + 1)
    if flags ~= ERASED then list_ended(k.thread, id, life, tag, ahead, archive_ms) end
    unlist_owned(k.thread, id, tag)
  end
  if call('PTTL', k.thread) <= ahead then
    -- the data is lost: the key has expired, or tests have shifted the clock past its expiry
    call('UNLINK', k.thread)
    drop_scope(k.thread)
    log_event(k.log, DESTROYED, LOST, ended, 0, 0, NO_LIFE, id, '', ahead)
    return
  end
  local sequence = unpack_('>I4', m, EVENTS_AT) + 1
  local archived = log_event(k.log, DESTROYED, flags, ended, version, sequence, life, id, '', ahead)
  if flags == ERASED then
    call('UNLINK', k.thread)
    return drop_scope(k.thread)
  end
  local earlier, stops = unpack(call('HMGET', k.archive, 'M', 'T'))
  if earlier then call('RENAME', k.archive, k.archive .. ':' .. hex(sub(earlier, LIFE_AT, LIFE_END))) end
  call('RENAME', k.thread, k.archive)
  if stops then call('HSET', k.archive, 'T', stops) end
  call('HSET', k.archive, 'M', sub(m, 1, EVENTS_AT - 1) .. pack('>I4I6', sequence, 0) .. sub(m, META_BYTES + 1),
    'E', pack('>BI6I6', flags, ended, archived))
  local numbers = drop_checkpoints(k.thread)
  if numbers ~= '' then call('HSET', k.archive, 'P', numbers) end
  call('PEXPIRE', k.archive, archive_ms + ahead)
  archive_scope(k.thread, k.archive, life, archive_ms + ahead)
  call('ZADD', k.archives, archived, id .. '-' .. hex(life))
end

-- Adds a new life to the index. If the index already has the thread id, logs that an earlier life's data was lost.
local function begin_life(k, deadline, ahead)
  local index, id = index_of(k.thread), id_of(k.thread)
  local lost = index.add(id, deadline)
  if lost then index.check_at(id, deadline) end
  lost = index.remove_earlier(id) or lost
  if not lost then return end
  drop_scope(k.thread)
  log_event(k.log, DESTROYED, LOST, lost, 0, 0, NO_LIFE, id, '', ahead)
end
