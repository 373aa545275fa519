-- Writes to a scope atomically. The script computes all changes in tables first, because Redis does not roll back.
-- KEYS: 1 scope, 2 history, 3 ids of the history, 4 remembered answers, 5 log, 6 the thread of the scope, if any.
-- ARGV:
--   1 packed: ahead, life for a new scope, lifetime after a use (0: no extension), new lifetime (0: unchanged), maximum
--     bytes of values, maximum keys, maximum bytes of the history, flags: 1 creates, 2 requires the scope, 4 clears the
--     history, 8 ends writes, 16 drops the oldest items to make room, 32 logs all changes, 64 only adds items and sets
--     absent keys
--   2 precondition and 3 idempotency key, both as in write.lua
--   4 scope as text
--   5 new tasks or empty
--   6 version and life of the tasks on which the new tasks are based, or empty
--   7 `=` and the new record, or empty
--   8 `=` and the record on which the new record is based, or empty
--   9 turn token or empty
--   10 access
--   11 items to remove: empty, `I` and an id, or `N` and the number of newest items
--   12 trace or empty
--   then operations `S` key value ttl (0: none) `a` if absent, `D` key, `I` key by, `C`; then items `H` id value fingerprint
-- Reply: `K`, replayed flag, meta, answers of the operations as `kind value;`..., answers of the items as `position
--   repeated;`..., number of items removed, then position, time, id and value of the removed newest items, oldest first; or
--   a refusal as in write.lua. The refusal `no_room` contains the size of the new items. It means that the write
--   must drop more old items than one script may drop: see make_room.lua.
local MOVES_AFTER_MS = 1000
trace = ARGV[12]
local ahead, life, ttl, lives, max_bytes, max_keys, max_history, flags = unpack_('>I6c8I6I6I4I4I6B', ARGV[1])
local function has(flag) return math.floor(flags / flag) % 2 == 1 end
--+ keys
local k = {scope = KEYS[1], history = KEYS[2], ids = KEYS[3], thread = KEYS[6]}
local thread_left
local thread, s, is_over, refused = open_scope(k, ahead, false, ARGV[10])
--+ step
if refused then return refused end
local given, memory = recall(KEYS[4], ARGV[3], ahead, 'K')
if given then return given end
if ARGV[9] ~= '' or thread and byte(thread) % 2 == 0 then
  local refusal = turn_refusal(k.thread, thread, ARGV[9], ahead)
  if refusal then return refusal end
end
if thread and is_unbound(thread, ARGV[10]) then return {'R', 'no_thread'} end
local exists = s ~= nil
if exists then
  if has(1) then return {'R', 'scope_exists'} end
  if s.flags % 2 == SEALED then return {'R', 'scope_ended'} end
else
  if has(2) and not has(1) then return {'R', 'scope_not_found'} end
  s = new_scope(thread and sub(thread, LIFE_AT, LIFE_END) or life, ttl, ahead)
end
s.ttl = ttl
local its_life = exists and s.life or NO_LIFE
if not is_met(ARGV[2], s.version, its_life) then return {'R', 'version_mismatch', s.version, its_life} end
if ARGV[8] ~= '' then
  local record = exists and call('HGET', k.scope, 'R')
  if not record or record ~= sub(ARGV[8], 2) then return {'R', 'changed'} end
end
if ARGV[6] ~= '' and ARGV[6] ~= pack('>I6', s.tasks) .. its_life then return {'R', 'changed'} end

-- Fields of an entry: `exists`, whether the key exists; `stored`, whether the hash has the field; `text`, the value to
-- write; `expires`, the time of its expiry (0: never; nil: unchanged).
local entries, order, cleared = {}, {}, false
local answers = {}

local function load(f)
  local e = entries[f]
  if not e then
    e = {size = 0}
    if exists and not cleared then
      e.size = call('HSTRLEN', k.scope, 'k' .. f)
      e.exists = e.size > 0 or call('HEXISTS', k.scope, 'k' .. f) == 1
      e.stored = e.exists
    end
    entries[f], order[#order + 1] = e, f
  end
  return e
end

local function put(e, text, expires)
  if e.exists then s.bytes, s.keys = s.bytes - e.size, s.keys - 1 end
  e.exists, e.text, e.size, e.expires, e.dirty = text ~= nil, text, text and #text or 0, expires, true
  if text then s.bytes, s.keys = s.bytes + #text, s.keys + 1 end
end

local function increment(op, f, by)
  local e = load(f)
  local old = not e.exists and '0' or e.text or call('HGET', k.scope, 'k' .. f)
  if not find(old, '^%-?%d+$') then return {'R', 'not_an_integer', op} end
  old = string.gsub(old, '^(%-?)0+(%d)', '%1%2')
  if is_past_64_bits(old) then return {'R', 'integer_overflow', op} end
  if old == '-0' then old = '0' end
  local sum = add(old, by)
  if is_past_64_bits(sum) then return {'R', 'integer_overflow', op} end
  put(e, sum, not e.exists and 0 or e.expires)
  return nil, 'v' .. sum
end

local i, n, op = 13, #ARGV, 0
while i <= n and ARGV[i] ~= 'H' do
  local code, f, refusal, answer = ARGV[i], ARGV[i + 1], nil, nil
  if code == 'S' then
    local e = load(f)
    if e.exists and ARGV[i + 4] == 'a' then
      answer = 's0'
    else
      local lasts = tonumber(ARGV[i + 3])
      put(e, ARGV[i + 2], lasts > 0 and now(ahead) + lasts or 0)
      answer = 's1'
    end
    i = i + 5
  elseif code == 'D' then
    local e = load(f)
    answer = e.exists and 'd1' or 'd0'
    if e.exists then put(e, nil, 0) end
    i = i + 2
  elseif code == 'I' then
    refusal, answer = increment(op, f, ARGV[i + 2])
    i = i + 3
  else
    cleared, entries, order, s.bytes, s.keys, answer = true, {}, {}, 0, 0, 'c'
    i = i + 1
  end
  if refusal then return refusal end
  op = op + 1
  answers[op] = answer
end
if s.bytes > max_bytes then return {'R', 'kv_too_large', s.bytes} end
if s.keys > max_keys then return {'R', 'too_many_keys'} end

-- Returns the keys as JSON strings separated by commas, or `!` if an event cannot contain that many keys.
local function key_names(keys)
  local named, seen, bytes = {}, {}, 0
  for _, key in ipairs(keys) do
    if not seen[key] then
      local name = cjson.encode(key)
      seen[key], bytes, named[#named + 1] = true, bytes + #name, name
      if #named > NAMED_MAX or bytes > NAMED_BYTES_MAX then return '!' end
    end
  end
  return table.concat(named, ',')
end

local takes_newest = sub(ARGV[11], 1, 1) == 'N'
-- history items to remove, all ids to remove, the history's size after the removal, and the original item to remove
local removed, gone_ids, history, original = {}, {}, has(4) and 0 or s.history, nil
if exists and takes_newest then
  removed = newest_items(k.history, tonumber(sub(ARGV[11], 2)))
elseif exists and ARGV[11] ~= '' then
  local old = call('HGET', k.ids, sub(ARGV[11], 2))
  local position = old and fmt('%.0f-0', (unpack_('>I6', old)))
  if old then
    removed = call('XRANGE', k.history, position, position)
  else
    original = s.flags >= SEGMENTED and living_segments(k, s, ahead).find(sub(ARGV[11], 2))
    if original then gone_ids[sub(ARGV[11], 2)] = true end
  end
end
for _, item in ipairs(removed) do
  gone_ids[item[2][4]], history = true, history - bytes_of(item)
end
local removed_count = has(4) and s.items or original and 1 or #removed
local removes, keeps_some = has(4) or removed_count > 0, exists and not has(4)
local plan = {next = s.next, ids = keeps_some and k.ids,
  originals = keeps_some and s.flags >= SEGMENTED and living_segments(k, s, ahead).ids() or {},
  gone = gone_ids, new = {}, added = 0, known = {}, positions = {}}
while i <= n do
  local refusal = plan_item(plan, ARGV[i + 1], ARGV[i + 2], ARGV[i + 3])
  if refusal then return refusal end
  i = i + 4
end
local adds_keys = false
for _, f in ipairs(order) do
  adds_keys = adds_keys or entries[f].dirty and entries[f].text ~= nil
end
local is_change = not (has(64) and #plan.new == 0 and not adds_keys and exists)
local room_refusal, dropped
if is_change then room_refusal, dropped = make_room(k, s, plan, history, max_history, has(16)) end
if room_refusal and room_refusal[2] ~= 'no_room' then return room_refusal end
if k.thread and not thread then return {'R', 'no_thread'} end

-- Builds the reply, and remembers it for `left`, the remaining lifetime of the scope or thread (-1: no expiry).
local function reply(left)
--+ done
  local answer = {'K', 0, pack_scope(s), table.concat(answers, ';'), table.concat(plan.positions, ';'), removed_count}
  local cost = 8 * (#answers + #plan.positions)
  for j = takes_newest and #removed or 0, 1, -1 do
    local item, at = removed[j], #answer
    answer[at + 1], answer[at + 2] = fmt('%.0f', position_of(item)), item[2][2]
    answer[at + 3], answer[at + 4] = item[2][4], item[2][6]
    cost = cost + bytes_of(item)
  end
  if memory then remember(memory, answer, cost, left < 0 and LONGEST_MS or left, ahead) end
  return answer
end

if not is_change then
  -- a write that changes nothing still extends the lifetime
  if thread then
    thread, thread_left = touch(k.thread, ahead, '')
    return reply(thread_left)
  end
  local _, used = open_scope(k, ahead, true)
  return reply(used.left)
end
if room_refusal then return room_refusal end

-- if the write adds data, it begins with a command that uses memory, so that a full Redis rejects it before any change
local adds = adds_keys or #plan.new > 0 or ARGV[5] ~= '' or ARGV[7] ~= ''
if is_over or removes then settle(k.scope) end
s.version, s.updated = s.version + 1, now(ahead)
if adds and (cleared or removes) then call('HSET', k.scope, 'M', pack_scope(s)) end
if is_over then segments_of(k.scope).drop() end
if is_over then call('UNLINK', k.scope, k.history, k.ids) end
-- moves the thread to the top of its owner's list, but at most once per second
if thread and #thread > META_BYTES and #plan.new > 0
  and now(ahead) >= unpack_(WRITTEN, thread, WRITTEN_AT) + MOVES_AFTER_MS then
  move_owned(k.thread, sub(thread, META_BYTES + 1), (unpack_(WRITTEN, thread, WRITTEN_AT)), ahead)
  thread = sub(thread, 1, WRITTEN_AT - 1) .. pack(WRITTEN, now(ahead)) .. sub(thread, TIMES_AT)
  call('HSET', k.thread, 'M', thread)
end
local logged = has(32)
local announces = thread and #plan.new > 0 and (logged or unpack_('>I6', thread, WATCHED_AT) > now(ahead))
local changed, gone, puts = {}, {}, {}
if cleared and exists then
  for _, f in ipairs(call('HKEYS', k.scope)) do
    local kind = byte(f)
    if kind == 107 or kind == 120 then gone[#gone + 1] = f end
    if kind == 107 then changed[#changed + 1] = sub(f, 2) end
  end
  s.due = 0
end
for _, f in ipairs(order) do
  local e = entries[f]
  if e.dirty then
    changed[#changed + 1] = f
    if e.text then
      puts[#puts + 1] = 'k' .. f
      puts[#puts + 1] = e.text
    elseif e.stored then
      gone[#gone + 1] = 'k' .. f
    end
    if e.expires and e.expires > 0 then
      puts[#puts + 1] = 'x' .. f
      puts[#puts + 1] = pack('>I6', e.expires)
      if s.due == 0 or e.expires < s.due then s.due = e.expires end
    elseif e.expires and e.stored then
      gone[#gone + 1] = 'x' .. f
    end
  end
end
if cleared or not adds then
  in_slices('HDEL', k.scope, gone)
  gone = {}
end
if ARGV[5] ~= '' then
  puts[#puts + 1] = 'T'
  puts[#puts + 1] = ARGV[5]
  s.tasks = s.version
end
if ARGV[7] ~= '' then
  puts[#puts + 1] = 'R'
  puts[#puts + 1] = sub(ARGV[7], 2)
end
if has(8) then s.flags = s.flags - s.flags % 2 + SEALED end
if has(4) then
  if s.flags >= SEGMENTED then living_segments(k, s, ahead).clear() end
  call('UNLINK', k.history, k.ids)
  s.first, s.history, s.items = s.next, 0, 0
end
if #removed > 0 then remove_items(k, s, removed, ahead) end
if original then living_segments(k, s, ahead).remove(sub(ARGV[11], 2)) end
append_items(k, s, plan, dropped, ahead)
if not thread and (s.ttl > 0 or lives > 0) then
  s.left = s.ttl > 0 and s.ttl or lives
end
if logged or announces then
  local events = thread and unpack_('>I4', thread, EVENTS_AT) or s.events
  local function log_change(kind, version, more)
    events = events + 1
    local subject = thread and id_of(k.thread) or ARGV[4]
    log_event(KEYS[5], kind, 0, now(ahead), version, events, s.life, subject, more, ahead)
  end
  if logged and #changed > 0 then log_change(KV, s.version, key_names(changed)) end
  if logged and ARGV[5] ~= '' then log_change(TASKS, s.version, '') end
  if announces then
    local _, version = unpack_(LIFE, thread, LIFE_AT)
    log_change(APPENDED, version, fmt('%.0f %.0f', s.next - #plan.new, s.next - 1))
  end
  if thread then
    call('HSET', k.thread, 'M', sub(thread, 1, EVENTS_AT - 1) .. pack('>I4', events) .. sub(thread, WATCHED_AT))
  else
    s.events = events
  end
end
puts[#puts + 1] = 'M'
puts[#puts + 1] = pack_scope(s)
in_slices('HSET', k.scope, puts)
in_slices('HDEL', k.scope, gone)
if thread then thread, thread_left = touch(k.thread, ahead, '') end
if not thread and s.left and s.left >= 0 then
  for _, key in ipairs({k.scope, k.history, k.ids}) do call('PEXPIRE', key, s.left + ahead) end
end
return reply(thread_left or s.left or -1)
