-- Shared by the scripts that read and write scopes. A scope is one hash:
--   M          meta: flags (1: rejects writes), life, version, bytes of the values, number of keys,
--              created, updated, lifetime after a use (0: unlimited), when the first key expires
--              (0: none does), version of the tasks, places of the
--              oldest and of the next item of the history, its bytes, number of its events
--   kKEY       a value
--   xKEY       when it expires, if it does
--   T          the task list as JSON, if there is one
--   R          the record, if there is one
-- Next to it, in its slot:
--   :k:NAME    the scope; of a thread its id, of others a digest
--   :y:NAME    the history: a stream of PLACE-0 with `t` time, `i` id, `v` value
--   :z:NAME    its ids: place (6 bytes) and fingerprint of the value
--   :j:NAME    its remembered answers, as records.lua has them
-- The scope of a thread has no time to live of its own: it has the thread's life, and ends with it.
local SCOPE = '>Bc8I6I4I4I6I6I6I6I6I6I6I6I4'
local SEALED = 1
local NOBODY = '\0\0\0\0\0\0\0\0'
-- Items of a history that one script drops at most: each takes about 4 us, and a large one can take the
-- place of a hundred thousand small ones.
local MOST_DROPPED = 1000

local function pack_scope(s)
  return pack(SCOPE, s.flags, s.life, s.version, s.bytes, s.keys, s.created, s.updated, s.ttl,
    s.due, s.tasks, s.first, s.next, s.history, s.events)
end

-- Forgets keys whose time has passed.
local function purge(key, s, ahead)
  if s.due == 0 or s.due > now(ahead) then return end
  s.due = 0
  -- there may be none: the first key to expire may have got another lifetime
  write_even_when_full(key)
  for _, f in ipairs(call('HKEYS', key)) do
    if byte(f) == 120 then
      local at = unpack_('>I6', call('HGET', key, f))
      if at <= now(ahead) then
        local value = 'k' .. sub(f, 2)
        s.bytes, s.keys = s.bytes - call('HSTRLEN', key, value), s.keys - 1
        call('HDEL', key, value, f)
      elseif s.due == 0 or at < s.due then
        s.due = at
      end
    end
  end
  call('HSET', key, 'M', pack_scope(s))
end

-- The scope, its end moved if this is a use; or nil, and whether something is in its place that is
-- over, and the refusal if the caller may not use its thread. Before that the meta of the thread, where `k.thread` is
-- there.
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
  local s = {}
  s.flags, s.life, s.version, s.bytes, s.keys, s.created, s.updated, s.ttl, s.due, s.tasks, s.first,
    s.next, s.history, s.events = unpack_(SCOPE, m)
  if thread then
    -- else it is of a life whose end nobody saw
    if sub(thread, LIFE_AT, LIFE_END) ~= s.life then return thread, nil, true end
  else
    local left = call('PTTL', k.scope)
    if left ~= -1 and left <= ahead then return nil, nil, true end
    s.left = left == -1 and -1 or left - ahead
    if s.ttl > 0 and is_use then
      s.left = s.ttl
      for _, key in ipairs({k.scope, k.history, k.ids}) do call('PEXPIRE', key, s.ttl + ahead) end
    end
  end
  purge(k.scope, s, ahead)
  return thread, s, false
end

-- The oldest items of a history, as many as have these bytes: their ids and bytes, the place of the
-- first one after them, and whether they are enough. They are read in ever larger portions: most items
-- take the place of one, and each of them can be large.
local function oldest_items(history, s, bytes)
  local found, portion = {ids = {}, bytes = 0, first = s.first}, 1
  while found.bytes < bytes and #found.ids < MOST_DROPPED do
    local items = call('XRANGE', history, fmt('%.0f-0', found.first), '+', 'COUNT', portion)
    if #items == 0 then
      found.first, found.bytes = s.next, s.history
      break
    end
    for _, item in ipairs(items) do
      if found.bytes >= bytes then break end
      local id, value = item[2][4], item[2][6]
      found.ids[#found.ids + 1] = id
      found.first, found.bytes = found.first + 1, found.bytes + #id + #value + 64
    end
    portion = math.min(2 * portion, 64)
  end
  found.is_enough = found.bytes >= bytes
  return found
end

local function drop_items(k, s, found)
  in_slices('HDEL', k.ids, found.ids)
  call('XTRIM', k.history, 'MINID', fmt('%.0f-0', found.first))
  s.first, s.history = found.first, s.history - found.bytes
end
