-- A scope is one hash:
--   M          meta: flags (1: rejects writes, 2: has segments), life, version, bytes of the values, number of keys,
--              creation time, update time, lifetime after a use (0: unlimited), earliest expiry of a key (0: none), version
--              of the tasks, positions of the oldest item and of the next item, bytes of the history, number of events so
--              far; then, if any, the number of empty positions from the oldest to the next item
--   kKEY       a value
--   xKEY       the expiry of a value, if it has one
--   T, R       the task list as JSON, and the record, if any
--   U          in a scope without a thread, the id of the running response, or of the last response
--   G          records of the last removed or dropped (but not cleared) items, newest last: first 8 bytes of the SHA-1
--              of the item's id, and its position (6 bytes)
--   S          the last compaction, and each stored segment, oldest first: see log.lua
-- Keys of a scope, all in one slot. NAME is the id of the scope's thread, or a digest:
--   :k:NAME    the scope
--   :y:NAME    the history: a stream of POSITION-0 with `t` time, `i` id, `v` value
--   :z:NAME    the ids of the history: position (6 bytes) and fingerprint of the value
--   :s:NAME:N  the items that compaction N replaced, a stream like the history, and :si:NAME:N their ids; both expire
--   :j:NAME    the remembered answers: see records.lua
-- The scope of a thread does not have a TTL. It has the same life as the thread, and ends with the thread.
local SCOPE = '>Bc8I6I4I4I6I6I6I6I6I6I6I6I4'
local SEALED, SCOPE_BYTES, GAPS = 1, 75, '>I6'
-- Maximum number of items that one script drops. Limited, because each item takes about 4 us, and one large new item
-- can displace a hundred thousand small items.
local DROPPED_MAX = 1000
-- Maximum total size in bytes of the items that one write removes. A larger item can be removed alone.
local REMOVED_BYTES_MAX = 1048576

local function pack_scope(s)
  local gaps = s.next - s.first - s.items
  return pack(SCOPE, s.flags, s.life, s.version, s.bytes, s.keys, s.created, s.updated, s.ttl,
    s.due, s.tasks, s.first, s.next, s.history, s.events) .. (gaps > 0 and pack(GAPS, gaps) or '')
end

-- Deletes expired keys. If Redis rejects writes, adds these keys to `s.expired` instead, so that reads skip them.
local function purge(key, s, ahead)
  if s.due == 0 or s.due > now(ahead) then return end
  s.due = 0
  if not may_write(key) then s.expired = {} end
  for _, f in ipairs(call('HKEYS', key)) do
    if byte(f) == 120 then
      local at = unpack_('>I6', call('HGET', key, f))
      if at <= now(ahead) then
        local value = 'k' .. sub(f, 2)
        s.bytes, s.keys = s.bytes - call('HSTRLEN', key, value), s.keys - 1
        if s.expired then s.expired[value], s.expired[f] = true, true else call('HDEL', key, value, f) end
      elseif s.due == 0 or at < s.due then
        s.due = at
      end
    end
  end
  if not s.expired then call('HSET', key, 'M', pack_scope(s)) end
end

local function is_expired(s, f) return s.expired ~= nil and s.expired[f] ~= nil end

local function fields_of(key, s)
  local all = call('HGETALL', key)
  if not s.expired then return all end
  local fields = {}
  for i = 1, #all, 2 do
    if not is_expired(s, all[i]) then fields[#fields + 1], fields[#fields + 2] = all[i], all[i + 1] end
  end
  return fields
end

local function unpack_scope(m)
  local s = {}
  s.flags, s.life, s.version, s.bytes, s.keys, s.created, s.updated, s.ttl, s.due, s.tasks, s.first,
    s.next, s.history, s.events = unpack_(SCOPE, m)
  s.items = s.next - s.first - (#m > SCOPE_BYTES and unpack_(GAPS, m, SCOPE_BYTES + 1) or 0)
  return s
end

local function new_scope(life, ttl, ahead)
  return {flags = 0, life = life, version = 0, bytes = 0, keys = 0, created = now(ahead), ttl = ttl,
    due = 0, tasks = 0, first = 1, next = 1, history = 0, items = 0, events = 0}
end

-- Opens a scope. If `is_use`, also extends its lifetime. Returns four values: the meta of the thread if `k.thread` is
-- given; the scope or nil; whether the keys contain an ended scope; a refusal if the caller may not use the thread.
local function open_scope(k, ahead, is_use, access)
  local thread
  if k.thread then
    thread = living(k.thread, ahead)
    local refusal = owner_refusal(thread, access)
    if not thread or refusal then return nil, nil, false, refusal end
    if is_use then touch(k.thread, ahead, access) end
  end
  local m = call('HGET', k.scope, 'M')
  if not m then return thread, nil, false end
  local s = unpack_scope(m)
  if thread then
    -- a scope with a different life remains from an earlier life, because the end of that life was not noticed
    if sub(thread, LIFE_AT, LIFE_END) ~= s.life then return thread, nil, true end
  else
    local left = call('PTTL', k.scope)
    if left ~= -1 and left <= ahead then return nil, nil, true end
    s.left = left == -1 and -1 or left - ahead
    if s.ttl > 0 and is_use then
      s.left = s.ttl
      for _, key in ipairs({k.scope, k.history, k.ids}) do renew(key, s.ttl + ahead) end
    end
  end
  purge(k.scope, s, ahead)
  return thread, s, false
end

-- Returns the position of the oldest item at or after `from`; if there is no such item, the position of the next new item.
local function oldest_position(history, s, from)
  if s.next - s.first == s.items then return from end
  local oldest = call('XRANGE', history, fmt('%.0f-0', from), '+', 'COUNT', 1)[1]
  return oldest and position_of(oldest) or s.next
end

-- Finds the oldest items with a total size of at least `bytes`, without the items in `gone`. Returns their ids,
-- positions and size, the position after the last of them, and whether the size is enough. Reads one item first and
-- then more at a time, because one old item usually makes enough room, and an item can be large.
local function oldest_items(history, s, bytes, gone)
  local found, portion = {ids = {}, positions = {}, bytes = 0, first = s.first}, 1
  while found.bytes < bytes and #found.ids < DROPPED_MAX do
    local items = call('XRANGE', history, fmt('%.0f-0', found.first), '+', 'COUNT', portion)
    if #items == 0 then
      found.first, found.is_enough = s.next, true
      return found
    end
    for _, item in ipairs(items) do
      if found.bytes >= bytes then break end
      found.first = position_of(item) + 1
      if not gone[item[2][4]] then
        local at = #found.ids + 1
        found.ids[at], found.positions[at], found.bytes = item[2][4], position_of(item), found.bytes + bytes_of(item)
      end
    end
    portion = math.min(2 * portion, 64)
  end
  found.is_enough = found.bytes >= bytes
  return found
end

local function drop_items(k, s, found, ahead)
  in_slices('HDEL', k.ids, found.ids)
  call('XTRIM', k.history, 'MINID', fmt('%.0f-0', found.first))
  record_removed(k.scope, found.ids, found.positions)
  s.first, s.history, s.items = oldest_position(k.history, s, found.first), s.history - found.bytes, s.items - #found.ids
  if s.flags >= SEGMENTED then living_segments(k, s, ahead).put() end
end

-- Returns a history's newest items, newest first: up to `limit` items and REMOVED_BYTES_MAX bytes, but at least one
-- item.
local function newest_items(history, limit)
  local found, bytes, up_to, portion = {}, 0, '+', 1
  while #found < limit do
    local items = call('XREVRANGE', history, up_to, '-', 'COUNT', math.min(portion, limit - #found))
    if #items == 0 then break end
    for _, item in ipairs(items) do
      bytes = bytes + bytes_of(item)
      if #found > 0 and bytes > REMOVED_BYTES_MAX then return found end
      found[#found + 1], up_to = item, '(' .. item[1]
    end
    portion = math.min(2 * portion, 16)
  end
  return found
end

-- Removes items, which are given newest first. Their positions remain empty.
local function remove_items(k, s, items, ahead)
  local entries, ids, positions = {}, {}, {}
  for i, item in ipairs(items) do
    local at = #items + 1 - i
    entries[at], ids[at], positions[at] = item[1], item[2][4], position_of(item)
    s.history = s.history - bytes_of(item)
  end
  call('XDEL', k.history, unpack(entries))
  call('HDEL', k.ids, unpack(ids))
  record_removed(k.scope, ids, positions)
  s.items = s.items - #items
  if s.items == 0 then
    call('UNLINK', k.history, k.ids)
    s.first = s.next
  elseif position_of(items[#items]) == s.first then
    s.first = oldest_position(k.history, s, s.first)
  end
  if s.flags >= SEGMENTED then living_segments(k, s, ahead).put() end
end

-- Plans to append an item. Fields of `plan`: `next`, the position of the item; `ids`, the key of the history's ids, or
-- nil for a new history; `originals`, the keys of the ids of replaced items; `gone`, the ids that the write removes.
-- Fields for the items planned so far: `new`, the items to add; `added`, their bytes; `known`, the position and
-- fingerprint of each item by id; `positions`, the answers as `position repeated`.
local function plan_item(plan, id, value, fingerprint)
  local old = plan.known[id] or plan.ids and not plan.gone[id] and call('HGET', plan.ids, id)
  for _, key in ipairs(plan.originals) do old = old or not plan.gone[id] and call('HGET', key, id) end
  if not old then
    old = pack('>I6', plan.next) .. fingerprint
    plan.known[id], plan.new[#plan.new + 1] = old, {position = plan.next, id = id, value = value, known = old}
    plan.positions[#plan.positions + 1] = fmt('%.0f 0', plan.next)
    plan.added, plan.next = plan.added + #id + #value + 64, plan.next + 1
  elseif sub(old, 7) == fingerprint then
    plan.positions[#plan.positions + 1] = fmt('%.0f 1', (unpack_('>I6', old)))
  else
    return {'R', 'item_id_reused', #plan.positions}
  end
end

-- Returns a refusal if the new items in `plan` cannot fit into the history, which has `bytes` bytes. Otherwise returns
-- nil and, if items must be dropped to make room, the oldest items.
local function make_room(k, s, plan, bytes, max_bytes, drops_oldest)
  if plan.added > 0 and (drops_oldest and plan.added or bytes + plan.added) > max_bytes then
    return {'R', 'history_too_large', bytes + plan.added, bytes}
  end
  if not drops_oldest or bytes + plan.added <= max_bytes then return nil end
  local dropped = oldest_items(k.history, s, bytes + plan.added - max_bytes, plan.gone)
  if not dropped.is_enough then return {'R', 'no_room', plan.added} end
  return nil, dropped
end

local function append_items(k, s, plan, dropped, ahead)
  local ids = {}
  for _, item in ipairs(plan.new) do
    call('XADD', k.history, fmt('%.0f-0', item.position), 't', fmt('%.0f', now(ahead)), 'i', item.id, 'v', item.value)
    ids[#ids + 1] = item.id
    ids[#ids + 1] = item.known
  end
  in_slices('HSET', k.ids, ids)
  s.next, s.history, s.items = plan.next, s.history + plan.added, s.items + #plan.new
  if dropped then drop_items(k, s, dropped, ahead) end
end
